"""How session windows are asked: a value travels in a column of its aggregate's type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.errors import BadInput
from ...reference.records import Record
from ...reference.windows import SessionWindows
from ...spark_impl.session_windows import native_session_windows, session_windows
from .common import KEY, ORDER, TIMESTAMP, VALUE, Binding, Field, Native, aggregated_field, from_aggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _fields(windows: SessionWindows, records: Sequence[Record]) -> list[Field]:
    return [aggregated_field(windows.aggregate, [record.value for record in records if record.key is not None])]


def _common(windows: SessionWindows) -> dict[str, Any]:
    return {
        "key": KEY,
        "timestamp": TIMESTAMP,
        "gap": f"{windows.gap_ms} ms",
        "grace": f"{windows.grace_ms} ms",
        "value": None if windows.aggregate.name == "count" else VALUE,
        "aggregate": windows.aggregate.name,
    }


def _build(windows: SessionWindows, frame: DataFrame, logic: Any, state_groups: int | None) -> DataFrame:
    return session_windows(
        frame,
        **_common(windows),
        order=ORDER,
        retention=f"{windows.retention_ms} ms",
        emit=windows.emit,
        late=windows.late,
        report_dropped=True,
        state_groups=state_groups,
        logic=logic,
    )


def _check_native(windows: SessionWindows) -> None:
    if (windows.emit, windows.late) != ("close", "own"):
        raise BadInput(
            f"spark-native can't serve emit={windows.emit!r}, late={windows.late!r}: Spark's session_window "
            'tells a session once, when it closes, and tests a record alone; use "emit": "close", "late": "own"'
        )


def _native(windows: SessionWindows, frame: DataFrame, batches: Sequence[pa.Table]) -> DataFrame:
    return native_session_windows(frame, **_common(windows))


BINDING = Binding(
    _fields,
    _build,
    lambda windows, value: from_aggregate(windows.aggregate, value),
    native=Native(_check_native, _native),
)
