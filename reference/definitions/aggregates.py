"""Aggregates in KIP-94's form: an initializer, an aggregator and a session merger.

This module defines the named aggregates in Python and Spark SQL. The operators' SQL files define them for DuckDB.
Source: KIP-94, "Public Interfaces" (`aggregate`, `reduce`, `count`, `SessionMerger`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as option
from typing import Any

from ..core.errors import BadInput
from ..core.records import Key, Record, Value
from .declarations import Definition, field_of, text_field


def _itself(aggregate: Any) -> Any:
    return aggregate


def _anything(value: Value) -> str | None:
    return None


def _a_number(value: Value) -> str | None:
    return None if isinstance(value, (int, float)) and not isinstance(value, bool) else "a number"


def _a_number_or_string(value: Value) -> str | None:
    return None if isinstance(value, str) or _a_number(value) is None else "a number or a string"


@dataclass(frozen=True)
class Aggregate:
    """The aggregate of the values of a session, a window or a group.

    Attributes:
        name: The aggregate's name in options and messages.
        initializer: Returns the aggregate of zero values. The aggregate of at least one value is never None, because
            None is a tombstone.
        aggregator: `(key, value, aggregate) -> aggregate`: adds the value of a record.
        merger: `(key, one, two) -> aggregate`: merges the aggregates of two sessions, the earlier session first.
        refuses: Returns the kind of value that the aggregate needs, such as `a number`; None if the value is valid.
        ordered: Whether the result depends on the order of arrival.
        finish: Converts an aggregate to the emitted value; most are emitted unchanged.
        subtractor: `(key, value, aggregate) -> aggregate`: removes a value; only for aggregates that can subtract.
            Aggregates of tables need a subtractor (Kafka Streams Join Semantics, "KTable Aggregate").
        spark: The aggregate in Spark SQL, over the column `value`; empty if Spark has no such function.
    """

    name: str
    initializer: Callable[[], Any]
    aggregator: Callable[[Key, Value, Any], Any]
    merger: Callable[[Key, Any, Any], Any]
    refuses: Callable[[Value], str | None] = _anything
    ordered: bool = False
    finish: Callable[[Any], Any] = _itself
    subtractor: Callable[[Key, Value, Any], Any] | None = None
    spark: str = ""

    def of(self, key: Key, values: Iterable[Value]) -> Any:
        """Return the finished aggregate of the values, added in order."""
        aggregate = self.initializer()
        for value in values:
            aggregate = self.aggregator(key, value, aggregate)
        return self.finish(aggregate)

    def check(self, value: Value) -> None:
        """Refuse a value that the aggregate doesn't accept.

        Raises:
            BadInput: The value has the wrong type; the message names the aggregate, the value, and the type that it
                needs.
        """
        wanted = self.refuses(value)
        if wanted is not None:
            raise BadInput(f"{self.name} can't take the value {value!r}: it needs {wanted}")


def reduce(
    reducer: Callable[[Any, Any], Any], name: str = "reduce", refuses: Callable[[Value], str | None] = _anything
) -> Aggregate:
    """Return KIP-94's `reduce` as an aggregate: it starts with the first value, and the reducer merges sessions too.

    Args:
        reducer: `(aggregate, value) -> aggregate`; its TypeErrors become `BadInput`.
        name: The aggregate's name in messages.
        refuses: As in `Aggregate`.
    """

    def either(one: Any, two: Any) -> Any:
        if one is None or two is None:
            return two if one is None else one
        try:
            return reducer(one, two)
        except TypeError as error:
            raise BadInput(
                f"{name} can't take {one!r} and {two!r} together: use values of one type ({error})"
            ) from None

    return Aggregate(
        name,
        initializer=lambda: None,
        aggregator=lambda key, value, aggregate: either(aggregate, value),
        merger=lambda key, one, two: either(one, two),
        refuses=refuses,
    )


def _without_first(key: Key, value: Value, members: list[Any]) -> list[Any]:
    index = [repr(member) for member in members].index(repr(value))  # by repr, because 1 == True in Python
    return members[:index] + members[index + 1 :]


COUNT = Aggregate(
    "count",
    initializer=lambda: 0,
    aggregator=lambda key, value, total: total + 1,
    merger=lambda key, one, two: one + two,
    subtractor=lambda key, value, total: total - 1,
    spark="count(1)",
)
SUM = Aggregate(
    "sum",
    initializer=lambda: 0,
    aggregator=lambda key, value, total: total + value,
    merger=lambda key, one, two: one + two,
    refuses=_a_number,
    subtractor=lambda key, value, total: total - value,
    spark="sum(value)",
)
MIN = replace(
    reduce(lambda one, two: two if two < one or one != one else one, "min", _a_number_or_string),
    spark="min(value)",
)
MAX = replace(
    reduce(lambda one, two: two if two > one or two != two else one, "max", _a_number_or_string),
    spark="max(value)",
)
LIST = Aggregate(
    "list",
    initializer=list,
    aggregator=lambda key, value, members: [*members, value],
    merger=lambda key, one, two: one + two,
    ordered=True,
    subtractor=_without_first,
    spark="collect_list(value)",
)
AVERAGE = Aggregate(
    "average",
    initializer=lambda: (0, 0),
    aggregator=lambda key, value, aggregate: (aggregate[0] + value, aggregate[1] + 1),
    merger=lambda key, one, two: (one[0] + two[0], one[1] + two[1]),
    refuses=_a_number,
    finish=lambda aggregate: aggregate[0] / aggregate[1],
    spark="avg(value)",
)

AGGREGATES = {aggregate.name: aggregate for aggregate in (COUNT, SUM, MIN, MAX, LIST)}
AGGREGATES_OF_SAMZA = {**AGGREGATES, AVERAGE.name: AVERAGE}
AGGREGATES_OF_TABLES = {aggregate.name: aggregate for aggregate in (COUNT, SUM, LIST)}


def named_aggregate(name: str, known: Mapping[str, Aggregate] = AGGREGATES) -> Aggregate:
    """Return a known aggregate by its name.

    Raises:
        BadInput: No aggregate has this name; the message lists the known names.
    """
    if not isinstance(name, str) or name not in known:
        raise BadInput(f"unknown aggregate {name!r}: use one of {', '.join(known)}")
    return known[name]


@dataclass(frozen=True)
class TableAggregate(Definition):
    """The aggregate of a table by a field other than its key: changes subtract the old value, then add the new value.

    Attributes:
        group_by: The field of the value object that names the group: a string, or null for no group.
        aggregate: `count`, `sum` or `list`, the aggregates that can subtract.
        field: The field of the value object to aggregate; `sum` requires a field, and `list` without a field collects
            whole values.

    A sum of fractions is updated by subtraction, so its last digits may differ from those of a new sum of all values.

    Raises:
        BadInput: A field's name isn't a string, the aggregate can't subtract, or `sum` has no field.

    Source: Kafka Streams Join Semantics, "KTable Aggregate".
    """

    group_by: str = option(metadata={"needed": 'the field that names the group, such as "group_by": "country"'})
    aggregate: Aggregate = option(
        default=COUNT, metadata={"read": lambda name: named_aggregate(name, AGGREGATES_OF_TABLES)}
    )
    field: str | None = None

    def __post_init__(self) -> None:
        """Check the declaration."""
        for name in ("group_by", "field"):
            value = getattr(self, name)
            if not isinstance(value, str) and (name, value) != ("field", None):
                raise BadInput(f"{name} is {value!r}: give the name of a field of the value object")
        if self.aggregate.subtractor is None:
            raise BadInput(f"the aggregate {self.aggregate.name} can't subtract: use count, sum or list")
        if self.aggregate.name == "sum" and self.field is None:
            raise BadInput('sum needs the option field: the field that is summed, such as "field": "amount"')

    @property
    def unordered(self) -> bool:
        """Return true for `list`, whose order depends on which of two equal members was removed."""
        return self.aggregate.ordered

    def group(self, value: Value) -> Key | None:
        """Return the group of a value; None for a tombstone."""
        return None if value is None else text_field(value, self.group_by, "the group")

    def member(self, value: Value) -> Value:
        """Return the part of a value that its group aggregates: a field, or the whole value."""
        return value if self.field is None else field_of(value, self.field, "the aggregated value", "add it")

    def check(self, record: Record) -> None:
        """Refuse a value without the declared fields, or with a field that the aggregate doesn't accept."""
        if record.key is not None and self.group(record.value) is not None:
            self.aggregate.check(self.member(record.value))
