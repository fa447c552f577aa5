"""How the stream-stream join is asked: values travel as JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.joins import StreamStreamJoin
from ...spark_impl.stream_stream_join import (
    native_stream_stream_join,
    require_native_stream_stream_join,
    stream_stream_join,
)
from .common import KEY, ORDER, TIMESTAMP, VALUE, Binding, Native, as_json, on, pair_from_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _build(join: StreamStreamJoin, frame: DataFrame, logic: Any, state_groups: int | None) -> DataFrame:
    return stream_stream_join(
        on(frame, "left"),
        on(frame, "right"),
        **_common(join),
        order=ORDER,
        report_dropped=True,
        state_groups=state_groups,
        logic=logic,
    )


def _native(join: StreamStreamJoin, frame: DataFrame, batches: Sequence[pa.Table]) -> DataFrame:
    return native_stream_stream_join(on(frame, "left"), on(frame, "right"), **_common(join))


def _common(join: StreamStreamJoin) -> dict[str, Any]:
    return {
        "key": KEY,
        "timestamp": TIMESTAMP,
        "value": VALUE,
        "before": f"{join.before_ms} ms",
        "after": f"{join.after_ms} ms",
        "grace": f"{join.grace_ms} ms",
        "join": join.join,
        "emit": join.emit,
        "null_key": join.null_key,
    }


BINDING = Binding(
    lambda join, records: [as_json()],
    _build,
    lambda join, value: pair_from_json(value),
    native=Native(require_native_stream_stream_join, _native),
)
