"""The registration of the table aggregate: groups get the history's number as a prefix, like keys; values have the
aggregate's type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Played
from ...reference.core.records import Key, Record, Value
from ...reference.definitions.aggregates import AGGREGATES_OF_TABLES, TableAggregate
from ..generators.values import SMALL, kinds_taken
from ..registration.bindings import (
    KEY,
    OF_COHORT,
    AskedOptions,
    Binding,
    Columns,
    Field,
    aggregated,
    aggregated_field,
    called,
    decode_aggregate,
    on_spark,
)
from ..registration.coverage import Coverage, accepted_records
from ..registration.domain import CHOICES, Domain, field_renamed
from ..registration.kafka import Kafka, as_text, read_aggregate
from ..registration.options import ABSENT, OptionSpace
from ..registration.registration import FreeOrder, KeyIndependence, MutantsOf, Registration, StoredTables
from ..registration.repeats import unchanged
from ..registration.shared import Shared, StageValue
from ..registration.sql import Options, Sql, aggregate_values, aggregated_events, beside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..witnesses.kafka.builder import Builder

GROUP = "group"
GROUPS = ("x", "y", "z")
"""The names of groups in drawn rows."""


def _fields(groups: TableAggregate, records: Sequence[Record]) -> list[Field]:
    members = [groups.member(record.value) for record in records if groups.group(record.value) is not None]
    member = aggregated_field(groups.aggregate, members)

    def group_of(record: Record, prefixed: Callable[[Key], Key]) -> Key | None:
        group = groups.group(record.value)
        return None if group is None else prefixed(group)

    def member_of(record: Record, prefixed: Callable[[Key], Key]) -> Value:
        if groups.group(record.value) is None:
            return None
        return member.of(record._replace(value=groups.member(record.value)), prefixed)

    return [Field(GROUP, pa.string(), group_of, holds="key"), member._replace(of=member_of)]


def _build(
    groups: TableAggregate, frame: DataFrame, logic: Any, state_groups: int | None, columns: Columns = OF_COHORT
) -> DataFrame:
    from ...spark_impl.table_aggregate import table_aggregate

    emitted = table_aggregate(
        frame,
        group_by=columns.of(GROUP),
        **aggregated(groups.aggregate),
        **called(logic, state_groups, columns),
    )
    return emitted.withColumnsRenamed(dict(zip(columns.of(GROUP), columns.of(KEY), strict=True)))


def _member(options: Options) -> Callable[[Value], Value] | None:
    group_by, field = options["group_by"], options.get("field")
    if field is None:
        return None
    return lambda value: None if value is None or value.get(group_by) is None else value.get(field)


def _group_named(options: Options) -> Callable[[Record], Key | None]:
    return lambda record: None if record.value is None else record.value.get(options["group_by"])


def _topology(builder: Builder, groups: TableAggregate) -> Any:
    # Each record's value is a JSON array of two texts: the group and the member.
    grouped = builder.grouped_by_first(builder.table("events"))
    if groups.aggregate.name == "count":
        return grouped.count()
    return grouped.aggregate(builder.nothing(), builder.append(), builder.without_first())


def _sent(groups: TableAggregate, record: Record) -> str | None:
    if record.value is None or record.key is None:
        return None if record.value is None else as_text(record.value)
    group = groups.group(record.value)
    return as_text([group, None if group is None else as_text(groups.member(record.value))])


def _value(definition: Any, side: str, value: Value, choice: int, near: int) -> Value:
    if choice >= CHOICES - 2:
        return None
    group = ("x", "y", "x", "y", "x", "z", "y", "x", "y", None)[choice]
    return {definition.group_by: group, **({} if definition.field is None else {definition.field: value})}


def _kinds(groups: TableAggregate, side: str) -> tuple[str, ...]:
    return (SMALL,) if groups.field is None else kinds_taken(groups.aggregate)


def _met(history: History, played: Played) -> Iterator[str]:
    groups: Any = played.definition
    rows: dict[str | None, Any] = {}
    for record in accepted_records(played):
        before, after = groups.group(rows.get(record.key)), groups.group(record.value)
        if before is not None:
            yield "row left" if after is None else "group changed" if after != before else "same group"
        rows[record.key] = record.value
        if before is not None and before not in map(groups.group, rows.values()):
            yield "group emptied"


def _groups_of(history: History) -> list[Key]:
    groups = operator_named(history.operator).declare(history.options)
    found = {groups.group(record.value) for record in history.records}
    return sorted(group for group in found if group is not None)


def _concerns_group(history: History, group: Key) -> Callable[[Record], bool]:
    """Return whether a change adds a row to a group, changes a row of the group, or removes a row from it."""
    groups = operator_named(history.operator).declare(history.options)
    rows: dict[Key | None, Value] = {}

    def concerns(record: Record) -> bool:
        before, after = groups.group(rows.get(record.key)), groups.group(record.value)
        rows[record.key] = record.value
        return group in (before, after)

    return concerns


def _content(groups: TableAggregate, record: Record) -> StageValue:
    group = groups.group(record.value)
    return StageValue((group, None if group is None else groups.member(record.value)))


def _is_emptied_group(groups: TableAggregate, fields: Sequence[Any]) -> bool:
    """Return whether the stored fields belong to a group without rows; a row's first field is its group, or null."""
    value = fields[0]
    return value is not None and not isinstance(value, str) and bool(value == groups.aggregate.initializer())


_ASKED = (
    AskedOptions({"group_by": "group", "aggregate": "sum", "field": "amount"}),
    AskedOptions({"group_by": "group", "aggregate": "list", "field": "amount"}),
    AskedOptions({"group_by": "country", "aggregate": "sum", "field": "amount"}),
)

REGISTRATION = Registration(
    operator_named("table_aggregate"),
    profiles={
        "count": {"group_by": "group"},
        "sum": {"group_by": "group", "aggregate": "sum", "field": "amount"},
        "list": {"group_by": "group", "aggregate": "list", "field": "amount"},
    },
    space=OptionSpace(
        {"aggregate": tuple(AGGREGATES_OF_TABLES), "field": (ABSENT, "amount"), "group_by": ("group", "country")},
        independent=("group_by",),
    ),
    domain=Domain(value=_value, kinds=_kinds, named=GROUPS, renamed=field_renamed("group_by")),
    coverage=Coverage(_met, lambda groups: ("same group", "group changed", "row left", "group emptied")),
    free_order=lambda groups: FreeOrder.INPUTS,
    repeats=unchanged,
    keeps_lists_in_order=lambda groups: groups.aggregate.ordered,
    key_independence=KeyIndependence(_groups_of, _concerns_group),
    spark=Binding(
        _build,
        _fields,
        decode_aggregate,
        shared=Shared(
            on_spark("table_aggregate", "table_aggregate_stages"),
            _content,
            hops=lambda: on_spark("table_aggregate", "table_aggregate_hops")(1),
        ),
        typed=_build,
        asked=_ASKED,
    ),
    sql=Sql(beside(__file__), aggregated_events, _member, _group_named, values=aggregate_values),
    kafka=Kafka(_topology, sent=_sent, is_text=False, read=read_aggregate),
    tables=StoredTables(
        lambda groups: groups.inputs,
        "an emptied group's aggregate and timestamp, for its next row",
        _is_emptied_group,
    ),
    mutants=MutantsOf("table_aggregate"),
)
