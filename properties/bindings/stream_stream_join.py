"""How the stream-stream join is asked: values travel as JSON text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...reference.joins import StreamStreamJoin
from ...spark_impl.stream_stream_join import stream_stream_join
from .common import KEY, ORDER, TIMESTAMP, VALUE, Binding, as_json, on, pair_from_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _build(join: StreamStreamJoin, frame: DataFrame, logic: Any, state_groups: int | None) -> DataFrame:
    return stream_stream_join(
        on(frame, "left"),
        on(frame, "right"),
        key=KEY,
        timestamp=TIMESTAMP,
        value=VALUE,
        order=ORDER,
        before=f"{join.before_ms} ms",
        after=f"{join.after_ms} ms",
        grace=f"{join.grace_ms} ms",
        join=join.join,
        emit=join.emit,
        null_key=join.null_key,
        report_dropped=True,
        state_groups=state_groups,
        logic=logic,
    )


BINDING = Binding(lambda join, records: [as_json()], _build, lambda join, value: pair_from_json(value))
