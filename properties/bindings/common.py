"""What binds an operator of `spark_impl` to cohorts: which columns its records travel in, how it is called, and how its
values come back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ...reference.aggregates import Aggregate
from ...reference.errors import BadInput
from ...reference.histories import History
from ...reference.records import Key, Record, Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY, TIMESTAMP, ORDER, INPUT, VALUE = "key", "timestamp", "order", "input", "value"
"""The columns that every cohort has: the prefixed key, event time in ms, the order of arrival, the input."""


class Field(NamedTuple):
    """A further column of a cohort.

    Attributes:
        name: Its name.
        type: Its arrow type.
        of: Gives its value for a record; keys that a value names are to be prefixed by the function handed over.
        pusher: What the row that pushes the clock holds.
    """

    name: str
    type: pa.DataType
    of: Callable[[Record, Callable[[Key], Key]], Any]
    pusher: Any = None


def of_key_column(table: pa.Table) -> list[Key | None]:
    """The keys of a changelog whose key is one column of that name."""
    return list(table.column(KEY).to_pylist())


def _nothing_of(history: History) -> None:
    return None


@dataclass(frozen=True)
class Native:
    """How Spark's own operator is asked, where it has one that can mean the same.

    Attributes:
        check: Refuses a definition that it can't serve, by a `BadInput` that says why.
        build: Of a definition, the cohort's streaming input and all its batches: the changelog.
        check_history: Refuses a history of such a definition that it can't serve, likewise.
    """

    check: Callable[[Any], None]
    build: Callable[[Any, DataFrame, Sequence[pa.Table]], DataFrame]
    check_history: Callable[[History], None] = _nothing_of


@dataclass(frozen=True)
class Binding:
    """How an operator is asked.

    Attributes:
        fields: Of a definition and all records of a cohort: the further columns.
        build: Of a definition, the cohort's streaming input, the maker of a logic (None for the operator's own) and the
            number of state groups: the changelog, as `spark_impl.keyed.keyed` gives it.
        decode: Of a definition and a value of the changelog: the value as the reference tells it.
        keys: Of what was written: the prefixed keys, as the reference tells them.
        native: How Spark's own operator is asked; None where Spark has none.
    """

    fields: Callable[[Any, Sequence[Record]], list[Field]]
    build: Callable[[Any, DataFrame, Any, int | None], DataFrame]
    decode: Callable[[Any, Any], Value]
    keys: Callable[[pa.Table], list[Key | None]] = of_key_column
    native: Native | None = None


# The same few texts come again and again.
read_json = lru_cache(maxsize=100_000)(json.loads)


def as_json(name: str = VALUE) -> Field:
    """A value of any kind, as JSON text; null stays null, and equal values have equal texts."""

    def text(record: Record, prefixed: Callable[[Key], Key]) -> str | None:
        return None if record.value is None else json.dumps(record.value, sort_keys=True)

    return Field(name, pa.string(), text)


def from_json(text: str | None) -> Value:
    """Undo `as_json`."""
    return None if text is None else read_json(text)


def pair_from_json(value: dict[str, str | None] | None) -> Value:
    """A joined value whose sides are JSON texts."""
    return None if value is None else [from_json(value["left"]), from_json(value["right"])]


def on(frame: DataFrame, name: str) -> DataFrame:
    """The rows of one input."""
    from pyspark.sql import functions as F

    return frame.filter(F.col(INPUT) == name)


def aggregated_field(aggregate: Aggregate, values: Sequence[Value], name: str = VALUE) -> Field:
    """The column that carries values to an aggregate.

    Raises:
        BadInput: `min` or `max` is to compare strings with numbers.
    """

    def same(record: Record, prefixed: Callable[[Key], Key]) -> Value:
        return record.value

    if aggregate.name == "count":
        return Field(name, pa.int32(), lambda record, prefixed: None)
    if aggregate.name == "list":
        return Field(name, pa.string(), lambda record, prefixed: json.dumps(record.value), "0")
    kinds = {type(value) for value in values}
    if kinds <= {int}:
        return Field(name, pa.int64(), same, 0)
    if kinds <= {int, float}:
        return Field(name, pa.float64(), same, 0.0)
    if kinds == {str}:
        return Field(name, pa.string(), same, "0")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise BadInput(f"values of several types ({names}) can't share a column on Spark: use one type of value")


def from_aggregate(aggregate: Aggregate, value: Any) -> Value:
    """Undo `aggregated_field` in a result: the members of a list are JSON texts."""
    return [from_json(member) for member in value] if aggregate.name == "list" and value is not None else value
