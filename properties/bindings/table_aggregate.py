"""How the table aggregate is asked: a group is a key, so it is prefixed; a member travels in its aggregate's type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.aggregates import TableAggregate
from ...reference.records import Key, Record, Value
from ...spark_impl.table_aggregate import table_aggregate
from .common import KEY, ORDER, TIMESTAMP, VALUE, Binding, Field, aggregated_field, from_aggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GROUP = "group"


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

    return [Field(GROUP, pa.string(), group_of), member._replace(of=member_of)]


def _build(groups: TableAggregate, frame: DataFrame, logic: Any, state_groups: int | None) -> DataFrame:
    told = table_aggregate(
        frame,
        key=KEY,
        timestamp=TIMESTAMP,
        group_by=GROUP,
        value=None if groups.aggregate.name == "count" else VALUE,
        order=ORDER,
        aggregate=groups.aggregate.name,
        report_dropped=True,
        state_groups=state_groups,
        logic=logic,
    )
    return told.withColumnRenamed(GROUP, KEY)


BINDING = Binding(_fields, _build, lambda groups, value: from_aggregate(groups.aggregate, value))
