"""How the framework calls an operator on Spark: the columns of the records, the call, and the decoding of values. The
operator runs on cohorts: many histories in one query, each with its own prefix before its keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import pyarrow as pa

from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ...reference.core.records import Key, Record, Value
from ...reference.definitions.aggregates import Aggregate
from .shared import Shared, decode_sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ...spark_impl.runtime.inputs import JoinInput

KEY, TIMESTAMP, ORDER, INPUT, VALUE = "key", "timestamp", "order", "input", "value"
"""The columns of every cohort: the key with its history's prefix, event time in ms, the order of arrival, the input,
the value.
"""
FOREIGN_KEY = "foreign_key"
"""The column of the foreign key, with its history's prefix."""
KEYED: Mapping[str, Any] = {"key": KEY, "timestamp": TIMESTAMP}
"""The columns that every operator of one input on Spark uses."""


class Field(NamedTuple):
    """An additional column in a cohort's input.

    Attributes:
        name: Its name.
        type: Its arrow type.
        of: Returns the column's value for a record. Its second argument is a function that adds the history's prefix to
            a key.
        for_driver: The value in the reserved key's row, which moves the watermark.
        holds: The kind of values that the law *columns* may put into the column: any value, a list's member, a number,
            a key.
    """

    name: str
    type: pa.DataType
    of: Callable[[Record, Callable[[Key], Key]], Any]
    for_driver: Any = None
    holds: Literal["value", "member", "number", "key"] | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of a call to an operator.

    Attributes:
        key_parts: The suffixes that form the names of a key's columns, also of foreign keys and groups.
        order: The column of the order of arrival; None if there is none.
        report_dropped: Whether the changelog also contains dropped rows.
    """

    key_parts: tuple[str, ...] = ("",)
    order: str | None = ORDER
    report_dropped: bool = True

    def of(self, name: str) -> list[str]:
        """Return the names of a key's columns."""
        return [f"{name}{part}" for part in self.key_parts]


OF_COHORT = Columns()
"""The columns of cohorts, except in the law *columns*: a key of one column, an order of arrival, dropped rows."""


def of_key_column(table: pa.Table) -> list[Key | None]:
    """Return the keys of a changelog with the single key column `key`."""
    return list(table.column(KEY).to_pylist())


@dataclass(frozen=True)
class NativeProfile:
    """A set of options for checking Spark's own operator.

    Attributes:
        options: The options.
        settings: Spark settings of its queries, in addition to the settings for all of Spark's own operators.
        without_late_data: Whether the clock stands still in the histories that check it, so that no record is late.
    """

    options: Mapping[str, Any]
    settings: Mapping[str, str] = field(default_factory=dict)
    without_late_data: bool = False


def _refuse_nothing(of: Any) -> None:
    return None


@dataclass(frozen=True)
class Native:
    """The call of Spark's own operator, if Spark has an operator with the same meaning.

    Attributes:
        check: Refuses a definition that Spark's operator doesn't support: raises a `BadInput` with the reason.
        build: Returns the changelog, given a definition, the cohort's streaming input and all its batches.
        sentence: The end of the sentence of the law *native*, after "Spark's own".
        profiles: The definitions to check, by name.
        check_history: Refuses a history that Spark's operator doesn't support, also with a `BadInput`.
        prepared: Converts a drawn history to a history that Spark's operator supports.
        accepted: Removes from a history the records that Spark drops as late, but the reference may accept.
        goals: Additional coverage goals, for each of `profiles`.
        met: Returns those of the additional goals that a history covers.
    """

    check: Callable[[Any], None]
    build: Callable[[Any, DataFrame, Sequence[pa.Table]], DataFrame]
    sentence: str
    profiles: Mapping[str, NativeProfile]
    check_history: Callable[[History], None] = _refuse_nothing
    prepared: Callable[[History], History] = lambda history: history
    accepted: Callable[[History], History] = lambda history: history
    goals: tuple[str, ...] = ()
    met: Callable[[History], Iterable[str]] = lambda history: ()


# Cached, because the same few texts occur again and again.
read_json = lru_cache(maxsize=100_000)(json.loads)


def as_json(name: str = VALUE) -> Field:
    """Declare a column of values of any kind, as JSON text; null stays null, and equal values have equal texts."""

    def text(record: Record, prefixed: Callable[[Key], Key]) -> str | None:
        return None if record.value is None else json.dumps(record.value, sort_keys=True)

    return Field(name, pa.string(), text, holds="value")


def from_json(text: Any) -> Value:
    """Undo `as_json`; a value that isn't JSON text, from a wrong operator, becomes a text that no history contains."""
    if text is None:
        return None
    try:
        if isinstance(text, str):
            return read_json(text)
    except ValueError:
        pass
    return f"not a drawn value: {text!r}"


def pair_from_json(value: dict[str, Any] | None) -> Value:
    """Return a joined value whose sides are JSON texts."""
    return None if value is None else [from_json(value["left"]), from_json(value["right"])]


class AskedOptions(NamedTuple):
    """The options, and the kind of values, with which the law *columns* checks an operator in a layout.

    Attributes:
        options: The operator's options.
        kind: The name of the kind of values; None for the kind that the layout draws.
    """

    options: Mapping[str, Any]
    kind: str | None = None


@dataclass(frozen=True)
class Binding:
    """The call of a Spark implementation; by default input and output values are JSON text.

    Attributes:
        build: Returns the changelog, given a definition, the cohort's streaming input, the maker of a logic (None for
            the operator's own) and the number of state groups (see `spark_impl.runtime.keyed.keyed`).
        fields: Returns the additional columns, given a definition and all records of a cohort.
        decode: Returns a changelog's value as the reference emits it, given the definition and the value.
        keys: Returns the keys of a changelog that a query has written; each key begins with its history's prefix.
        typed: Like `build`, with the additional keyword `columns`: the `Columns` of the call. An operator of several
            inputs also takes a frame for each input. If None, the law *columns* isn't checked.
        asked: The options that the law *columns* checks in each layout of columns, in this order; if empty, the law
            chooses among the profiles (the operator's fixed sets of options).
        shared: How the operator's logic runs in a query shared with other operators; None if the operator needs
            separate queries.
    """

    build: Callable[[Any, DataFrame, Any, int | None], DataFrame]
    fields: Callable[[Any, Sequence[Record]], list[Field]] = lambda definition, records: [as_json()]
    decode: Callable[[Any, Any], Value] = lambda definition, value: from_json(value)
    keys: Callable[[pa.Table], list[Key | None]] = of_key_column
    typed: Callable[..., DataFrame] | None = None
    asked: tuple[AskedOptions, ...] = ()
    shared: Shared | None = None


def keyed_binding(make_logic: Callable[[Any], Any], state: str) -> Binding:
    """Return the binding of an operator with one input that consists of a `Logic`; it can also run in shared queries.

    The logic emits input values unchanged, or None. Values are Python objects in shared queries, and JSON texts in
    other queries.

    Args:
        make_logic: Makes the logic of a definition.
        state: The fields that a key's state is packed into, such as `"seen bigint"`.
    """

    def build(
        definition: Any, frame: DataFrame, logic: Any, state_groups: int | None, columns: Columns = OF_COHORT
    ) -> DataFrame:
        from pyspark.sql import types as T

        from ...spark_impl.runtime.inputs import resolved
        from ...spark_impl.runtime.keyed import keyed

        return keyed(
            [resolved(frame, key=columns.of(KEY), timestamp=TIMESTAMP, value=VALUE, order=columns.order)],
            (logic or make_logic)(definition),
            state_type=cast(T.StructType, T.DataType.fromDDL(state)),
            value_type=T.StringType(),
            state_groups=state_groups,
            report_dropped=columns.report_dropped,
            timed=True,
        )

    return Binding(build, shared=Shared(make_logic))


def called(logic: Any, state_groups: int | None, columns: Columns = OF_COHORT) -> dict[str, Any]:
    """Return the arguments of all operators with one input; without `logic`, the operator uses its own."""
    key = {"key": columns.of(KEY), "timestamp": TIMESTAMP, "order": columns.order}
    return key | beside_inputs(logic, state_groups, columns)


def beside_inputs(logic: Any, state_groups: int | None, columns: Columns = OF_COHORT) -> dict[str, Any]:
    """Return the arguments of all operators on Spark except inputs; without `logic`, the operator uses its own."""
    return {"report_dropped": columns.report_dropped, "state_groups": state_groups, "logic": logic}


def side(
    frame: DataFrame | Mapping[str, DataFrame], name: str, columns: Columns = OF_COHORT, value: str | None = VALUE
) -> JoinInput:
    """Return the input of a join by its name."""
    from ...spark_impl.inputs import table

    return table(on(frame, name), key=columns.of(KEY), timestamp=TIMESTAMP, value=value, order=columns.order)


def both_sides(frame: DataFrame | Mapping[str, DataFrame], columns: Columns = OF_COHORT) -> tuple[JoinInput, JoinInput]:
    """Return the inputs `left` and `right` of a join."""
    return side(frame, "left", columns), side(frame, "right", columns)


def on_spark(module: str, name: str) -> Callable[..., Any]:
    """Return a function that calls a function or class of `spark_impl`, and imports its module on the first call."""

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(f"...spark_impl.{module}", __package__), name)(*arguments, **options)

    return call


def join_build(operator: str, options: Callable[[Any, Columns], Mapping[str, Any]]) -> Callable[..., DataFrame]:
    """Return the `build` of a join of the inputs `left` and `right`.

    Args:
        operator: The operator's name, which is also the name of its function and its module in `spark_impl`.
        options: Returns the function's other arguments, given a definition and the columns.
    """

    def build(
        join: Any,
        frame: DataFrame | Mapping[str, DataFrame],
        logic: Any,
        state_groups: int | None,
        columns: Columns = OF_COHORT,
    ) -> DataFrame:
        given = {**options(join, columns), **beside_inputs(logic, state_groups, columns)}
        joined: DataFrame = on_spark(operator, operator)(*both_sides(frame, columns), **given)
        return joined

    return build


def join_binding(
    operator: str, logic: str, options: Callable[[Any], Mapping[str, Any]], asked: tuple[AskedOptions, ...]
) -> Binding:
    """Return the binding of a join of the inputs `left` and `right` by their keys.

    Args:
        operator: The operator's name, which is also the name of its function and its module in `spark_impl`.
        logic: The name of its logic in that module.
        options: Returns the function's other arguments, given a definition.
        asked: As in `Binding`.
    """
    build = join_build(operator, lambda join, columns: options(join))
    shared = Shared(on_spark(operator, logic), decode=decode_sides)
    return Binding(build, decode=decode_pair, shared=shared, typed=build, asked=asked)


def aggregated(aggregate: Aggregate) -> dict[str, Any]:
    """Return the arguments of an operator that aggregates values; a count needs no column."""
    return {"value": None if aggregate.name == "count" else VALUE, "aggregate": aggregate.name}


def referring_fields(join: Any) -> list[Field]:
    """Return the columns of a foreign-key join: the value, and a left row's foreign key, with its history's prefix."""

    def foreign_key_of(record: Record, prefixed: Callable[[Key], Key]) -> Key | None:
        foreign_key = join.foreign_key_of(record.value) if record.input == "left" else None
        return None if foreign_key is None else prefixed(foreign_key)

    return [as_json(), Field(FOREIGN_KEY, pa.string(), foreign_key_of, holds="key")]


def on(frame: DataFrame | Mapping[str, DataFrame], name: str) -> DataFrame:
    """Return the rows of one input: from a frame with the rows of all inputs, or from the frames of each input."""
    from pyspark.sql import functions as F

    if isinstance(frame, Mapping):
        return frame[name]
    return frame.filter(F.col(INPUT) == name)


def aggregated_field(aggregate: Aggregate, values: Sequence[Value]) -> Field:
    """Return the column of values for an aggregate: its type, and the function from a record to its value.

    Args:
        aggregate: The aggregate.
        values: All values of the cohort that the operator aggregates.

    Raises:
        BadInput: The values have several types, such as strings and numbers, which `min` or `max` can't compare.
    """

    def same(record: Record, prefixed: Callable[[Key], Key]) -> Value:
        return record.value

    if aggregate.name == "count":
        return Field(VALUE, pa.int32(), lambda record, prefixed: None)
    if aggregate.name == "list":
        return Field(VALUE, pa.string(), lambda record, prefixed: json.dumps(record.value), "0", "member")
    kinds = {type(value) for value in values}
    if kinds <= {int}:
        return Field(VALUE, pa.int64(), same, 0, "number")
    if kinds <= {int, float}:
        return Field(VALUE, pa.float64(), same, 0.0)
    if kinds == {str}:
        return Field(VALUE, pa.string(), same, "0")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise BadInput(f"values of several types ({names}) can't share a column on Spark: use one type of value")


def from_aggregate(aggregate: Aggregate, value: Any) -> Value:
    """Undo `aggregated_field` in a result, in which the members of a list are JSON texts."""
    return [from_json(member) for member in value] if aggregate.name == "list" and value is not None else value


def fields_of_aggregate(definition: Any, records: Sequence[Record]) -> list[Field]:
    """Return the column of values, for an operator that aggregates the value of every record in a cohort."""
    return [aggregated_field(definition.aggregate, [record.value for record in records if record.key is not None])]


def decode_aggregate(definition: Any, value: Any) -> Value:
    """Return an aggregated value as the reference emits it."""
    return from_aggregate(definition.aggregate, value)


def decode_pair(definition: Any, value: Any) -> Value:
    """Return a joined value as the reference emits it; in the changelog the values of both sides are JSON text."""
    return pair_from_json(value)
