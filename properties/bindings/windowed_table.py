"""How windowed tables are asked: what is aggregated travels in a column of its type, what is looked up from as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.records import Key, Record, Value
from ...reference.windows import WindowedTable
from ...spark_impl.windowed_table import native_windowed_table, require_native_windowed_table, windowed_table
from ..cohorts import PUSHER
from .common import (
    KEY,
    ORDER,
    TIMESTAMP,
    VALUE,
    Binding,
    Field,
    Native,
    aggregated_field,
    as_json,
    from_aggregate,
    from_json,
    on,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RIGHT, WINDOW_START = "right_value", "window_start"


def _fields(table: WindowedTable, records: Sequence[Record]) -> list[Field]:
    aggregated = ("events", "right") if table.with_ == "windowed_table" else ("events",)
    of_aggregate = [record.value for record in records if record.key is not None and record.input in aggregated]
    fields = [_on(aggregated, aggregated_field(table.aggregate, of_aggregate))]
    if table.with_ in (None, "windowed_table"):
        return fields
    return [*fields, _on(("right",), as_json(RIGHT)), _on(("right",), Field(WINDOW_START, pa.int64(), _start(table)))]


def _on(inputs: Sequence[str], field: Field) -> Field:
    """A column that only these inputs fill."""
    return field._replace(of=lambda record, prefixed: field.of(record, prefixed) if record.input in inputs else None)


def _start(table: WindowedTable) -> Callable[[Record, Callable[[Key], Key]], int | None]:
    def start_of(record: Record, prefixed: Callable[[Key], Key]) -> int | None:
        window = table.looked_up_window(record.value) if table.looked_up and record.value is not None else None
        return None if window is None else window[0]

    return start_of


def build(
    table: WindowedTable, frame: DataFrame, logic: Any, state_groups: int | None, retention: str | None = None
) -> DataFrame:
    """Ask the operator; `retention` is as its own."""
    value = None if table.aggregate.name == "count" else VALUE
    alone = table.with_ is None
    told = windowed_table(
        on(frame, "events"),
        None if alone else on(frame, "right"),
        key=KEY,
        timestamp=TIMESTAMP,
        size=f"{table.size_ms} ms",
        value=value,
        order=ORDER,
        right_value=value if table.with_ in (None, "windowed_table") else RIGHT,
        step=f"{table.step_ms} ms",
        grace=f"{table.grace_ms} ms",
        aggregate=table.aggregate.name,
        emit=table.emit,
        with_=table.with_,
        join=None if alone else table.join,
        shift=f"{table.shift_ms} ms",
        window_start=WINDOW_START if table.looked_up else None,
        to_stream=table.to_stream,
        retention=retention,
        report_dropped=True,
        state_groups=state_groups,
        logic=logic,
    )
    return _without_pusher(table, told)


def _native(table: WindowedTable, frame: DataFrame, batches: Sequence[pa.Table]) -> DataFrame:
    told = native_windowed_table(
        frame,
        key=KEY,
        timestamp=TIMESTAMP,
        size=f"{table.size_ms} ms",
        value=None if table.aggregate.name == "count" else VALUE,
        order=ORDER,
        step=f"{table.step_ms} ms",
        grace=f"{table.grace_ms} ms",
        aggregate=table.aggregate.name,
        emit=table.emit,
        to_stream=table.to_stream,
    )
    return _without_pusher(table, told)


def _without_pusher(table: WindowedTable, told: DataFrame) -> DataFrame:
    if table.to_stream != "window_in_key":
        return told
    from pyspark.sql import functions as F

    # A cohort knows its reserved key by its name alone.
    return told.filter(~F.col(KEY).startswith(f"{PUSHER}@"))


def _decode(table: WindowedTable, value: Any) -> Value:
    if value is not None and table.to_stream == "window_in_value":
        window = value["window"]
        return {"value": _joined(table, value["value"]), "window": [window["start"], window["end"]]}
    return _joined(table, value)


def _joined(table: WindowedTable, value: Any) -> Value:
    if value is None or table.with_ is None:
        return from_aggregate(table.aggregate, value)
    left, right = value["left"], value["right"]
    if table.looked_up:
        return [from_json(left), from_aggregate(table.aggregate, right)]
    right = from_json(right) if table.with_ == "table" else from_aggregate(table.aggregate, right)
    return [from_aggregate(table.aggregate, left), right]


BINDING = Binding(_fields, build, _decode, native=Native(require_native_windowed_table, _native))
