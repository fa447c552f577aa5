"""How range aggregates are asked: a value travels in a column of its aggregate's type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...reference.records import Record
from ...reference.windows import RangeAggregate
from ...spark_impl.range_aggregate import range_aggregate
from .common import KEY, ORDER, TIMESTAMP, VALUE, Binding, Field, aggregated_field, from_aggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _fields(ranges: RangeAggregate, records: Sequence[Record]) -> list[Field]:
    return [aggregated_field(ranges.aggregate, [record.value for record in records if record.key is not None])]


def build(
    ranges: RangeAggregate, frame: DataFrame, logic: Any, state_groups: int | None, retention: str | None = None
) -> DataFrame:
    """Ask the operator; `retention` is as its own."""
    return range_aggregate(
        frame,
        key=KEY,
        timestamp=TIMESTAMP,
        preceding=f"{ranges.preceding_ms} ms",
        value=None if ranges.aggregate.name == "count" else VALUE,
        order=ORDER,
        aggregate=ranges.aggregate.name,
        retention=retention,
        report_dropped=True,
        state_groups=state_groups,
        logic=logic,
    )


BINDING = Binding(_fields, build, lambda ranges, value: from_aggregate(ranges.aggregate, value))
