"""How Samza's window operator is asked: a value travels in a column of its aggregate's type, or as JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.records import Record, Value
from ...reference.windows import WindowAggregate
from ...spark_impl.window_aggregate import (
    native_window_aggregate,
    require_native_window_aggregate,
    window_aggregate,
)
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
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _fields(windows: WindowAggregate, records: Sequence[Record]) -> list[Field]:
    if windows.storage == "full":
        return [as_json()]
    return [aggregated_field(windows.aggregate, [record.value for record in records if record.key is not None])]


def _build(windows: WindowAggregate, frame: DataFrame, logic: Any, state_groups: int | None) -> DataFrame:
    early = windows.early

    def length(number: int) -> int | str:
        return number if windows.unit == "tuple" else f"{number} ms"

    return window_aggregate(
        frame,
        key=KEY,
        timestamp=TIMESTAMP,
        size=length(windows.size),
        value=None if windows.storage == "aggregate" and windows.aggregate.name == "count" else VALUE,
        order=ORDER,
        type=windows.type,
        unit=windows.unit,
        step=None if windows.type == "session" else length(windows.step),
        retention=f"{windows.retention_ms} ms",
        storage=windows.storage,
        aggregate=windows.aggregate.name,
        early=None if early is None else early.every_tuples or f"{early.every_ms} ms",
        late=windows.late,
        report_dropped=True,
        state_groups=state_groups,
        logic=logic,
    )


def _native(windows: WindowAggregate, frame: DataFrame, batches: Sequence[pa.Table]) -> DataFrame:
    return native_window_aggregate(
        frame,
        key=KEY,
        timestamp=TIMESTAMP,
        size=f"{windows.size} ms",
        value=None if windows.aggregate.name == "count" else VALUE,
        order=ORDER,
        step=f"{windows.step} ms",
        retention=f"{windows.retention_ms} ms",
        aggregate=windows.aggregate.name,
    )


def _decode(windows: WindowAggregate, value: Any) -> Value:
    return from_json(value) if windows.storage == "full" else from_aggregate(windows.aggregate, value)


BINDING = Binding(_fields, _build, _decode, native=Native(require_native_window_aggregate, _native))
