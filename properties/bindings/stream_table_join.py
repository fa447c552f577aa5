"""How the stream-table join is asked: values travel as JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.errors import BadInput
from ...reference.histories import History
from ...reference.joins import StreamTableJoin
from ...spark_impl.stream_table_join import native_stream_table_join, stream_table_join
from .common import KEY, ORDER, TIMESTAMP, VALUE, Binding, Native, as_json, on, pair_from_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _build(join: StreamTableJoin, frame: DataFrame, logic: Any, state_groups: int | None) -> DataFrame:
    return stream_table_join(
        on(frame, "left"),
        on(frame, "right"),
        key=KEY,
        timestamp=TIMESTAMP,
        value=VALUE,
        order=ORDER,
        join=join.join,
        null_key=join.null_key,
        report_dropped=True,
        state_groups=state_groups,
        logic=logic,
    )


def _native(join: StreamTableJoin, frame: DataFrame, batches: Sequence[pa.Table]) -> DataFrame:
    return native_stream_table_join(
        on(frame, "left"),
        on(frame.sparkSession.createDataFrame(pa.concat_tables(batches)), "right"),
        key=KEY,
        timestamp=TIMESTAMP,
        value=VALUE,
        order=ORDER,
        join=join.join,
        null_key=join.null_key,
    )


def _check_history(history: History) -> None:
    looked_up = set()
    for record in history.records:
        if record.input == "left":
            looked_up.add(record.key)
        elif record.key in looked_up and record.key is not None:
            raise BadInput(
                f"{history.name}: the row of {record.key!r} changes after a record has looked it up, but Spark's own "
                "join looks up a table that stands still: let the table's records come first, or use --on spark"
            )


BINDING = Binding(
    lambda join, records: [as_json()],
    _build,
    lambda join, value: pair_from_json(value),
    native=Native(lambda join: None, _native, _check_history),
)
