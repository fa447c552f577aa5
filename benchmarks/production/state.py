"""Measures the size of an operator's state when its retention is over, and at the end.

Records arrive at a fixed rate, one batch per hour of event time. The state is read batch by batch with Spark's state
data source, and measured twice: the number of sessions, windows or records, and their bytes as JSON. The state is
bounded if no later batch has a larger state than the first batch whose clock is one retention past the start.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from streamproof.properties.witnesses.spark.failures import reported_failures
from streamproof.properties.witnesses.spark.session import spark_session
from streamproof.reference.core.errors import StreamproofError

from ..figures import Figure, Setting, Target, figure, ratio

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from streamproof.spark_impl.runtime.inputs import JoinInput

BATCHES = 12
HOUR_MS = 3_600_000
START_MS = 490_896 * HOUR_MS
RETENTION_HOURS = (4, 8)
KEYS = 500
STATE_GROUPS = 16


class Bounded(NamedTuple):
    """An operator with a bounded state.

    Attributes:
        build: A function that declares the operator over a stream, with this retention in hours.
        holds: The fields of a key's state that contain sessions, windows or records.
        longer_ms: The time for which an entry stays after the retention (ms).
    """

    build: Callable[..., DataFrame]
    holds: tuple[str, ...]
    longer_ms: int = 0


class Size(NamedTuple):
    """The size of a state after a batch."""

    entries: int
    bytes: int


def run(setting: Setting) -> list[Figure]:
    """Measure each operator under both retentions, with one query each, and an operator that forgets nothing."""
    rows = setting.size(4_000, 200)
    spark = spark_session()
    figures: list[Figure] = []
    for operator in setting.among(BOUNDED):
        bounded = BOUNDED[operator]
        ends: list[Figure] = []
        for hours in RETENTION_HOURS[: setting.size(2, 1)]:
            full = -(-(hours * HOUR_MS + bounded.longer_ms) // HOUR_MS)
            setting.progress(f"{operator}: {rows:,} records an hour, {hours} hours kept")
            sizes = state_sizes(spark, rows, partial(bounded.build, hours=hours), bounded, full)
            inputs = f"{rows:,} records in each of {BATCHES} batches, {hours} hours kept"
            figures += [
                _flat(f"{operator}: state from batch {full + 1} on, entries", [size.entries for size in sizes], inputs),
                _flat(f"{operator}: state from batch {full + 1} on, bytes", [size.bytes for size in sizes], inputs),
            ]
            ends.append(figure(f"{operator}: entries in the end", "entries", [sizes[-1].entries], inputs))
        figures += ends
        if len(ends) == 2:
            name = f"{operator}: entries with twice the retention (1.8 times the hours, with the one under way)"
            figures.append(ratio(name, ends[1], ends[0], Target("at most", 2.2)))
    if setting.only in (None, "range_aggregate"):
        setting.progress("range_aggregate: without a retention")
        forever = state_sizes(spark, rows, partial(_range, hours=None), BOUNDED["range_aggregate"], 5)
        # For contrast: an operator that forgets nothing shows that this measurement detects growth.
        inputs = f"{rows:,} records in each of {BATCHES} batches, all kept"
        grown = forever[-1].entries / forever[0].entries
        figures.append(figure("range_aggregate without retention: entries, as a contrast", "times", [grown], inputs))
    return figures


def _flat(name: str, sizes: list[int], inputs: str) -> Figure:
    return figure(name, "times", [max(sizes) / sizes[0]], inputs, Target("at most", 1.2))


def state_sizes(
    spark: SparkSession, rows: int, build: Callable[[DataFrame], DataFrame], bounded: Bounded, first: int
) -> list[Size]:
    """Run an operator, and return the size of its state after each batch from a given batch on.

    Args:
        spark: The session.
        rows: The number of records per batch.
        build: A function that declares the operator over the stream.
        bounded: The counted fields of the operator's state.
        first: The first batch whose state is measured, from 0.
    """
    with tempfile.TemporaryDirectory(prefix="streamproof-", ignore_cleanup_errors=True) as name:
        source, checkpoint = Path(name) / "source", str(Path(name) / "checkpoint")
        source.mkdir()
        for batch in range(BATCHES):
            file = source / f"{batch:06d}.parquet"
            pq.write_table(hour_of(rows, batch), file)
            # Set the file's time, because Spark reads files in the order of their times.
            os.utime(file, (1_000_000_000 + batch, 1_000_000_000 + batch))
        schema = spark.read.parquet(str(source)).schema
        events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
        writer = build(events).writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        with reported_failures():
            query.awaitTermination()
        sizes = [state_size(spark, checkpoint, batch, bounded) for batch in range(first, BATCHES)]
    if not sizes[0].entries:
        raise StreamproofError("the state is empty, so its growth has no meaning")
    return sizes


def hour_of(rows: int, batch: int) -> pa.Table:
    """Return the records of an hour, 1 in 10 of them up to 10 minutes out of order."""
    numbers = np.random.default_rng(batch)
    order = np.arange(batch * rows, (batch + 1) * rows)
    behind = np.where(numbers.random(rows) < 0.1, numbers.integers(0, HOUR_MS // 6, rows), 0)
    columns = {
        "order": order,
        "time": START_MS + order * HOUR_MS // rows - behind,
        "key": numbers.integers(0, KEYS, rows),
        "amount": numbers.integers(0, 100, rows),
        "side": numbers.integers(0, 2, rows),
    }
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def state_size(spark: SparkSession, checkpoint: str, batch: int, bounded: Bounded) -> Size:
    """Read the state after a batch, and count its entries.

    Args:
        spark: The session.
        checkpoint: The query's checkpoint.
        batch: The number of the batch, from 0.
        bounded: What is counted.
    """
    from pyspark.sql import functions as F
    from streamproof import read_state

    entries = F.expr(" + ".join(f"coalesce(size(state.{name}), 0)" for name in bounded.holds))
    state = read_state(checkpoint, batch=batch)
    found = state.agg(F.sum(entries), F.sum(F.length("packed"))).collect()[0]
    return Size(found[0] or 0, found[1] or 0)


COLUMNS: Mapping[str, Any] = {"key": "key", "timestamp": "time", "order": "order"}


def _arrived() -> dict[str, Any]:
    return {**COLUMNS, "state_groups": STATE_GROUPS}


def _sides(events: DataFrame) -> Iterator[JoinInput]:
    from streamproof.spark_impl.inputs import stream

    return (stream(events.filter(f"side = {side}"), value="amount", **COLUMNS) for side in (0, 1))


def _sessions(events: DataFrame, hours: int) -> DataFrame:
    from streamproof.spark_impl.session_windows import session_windows

    return session_windows(events, gap="5 minutes", grace="10 minutes", retention=f"{hours} hours", **_arrived())


def _windows(events: DataFrame, hours: int) -> DataFrame:
    from streamproof.spark_impl.window_aggregate import window_aggregate

    return window_aggregate(events, size="10 minutes", retention=f"{hours} hours", late="update", **_arrived())


def _joined(events: DataFrame, hours: int) -> DataFrame:
    from streamproof.spark_impl.stream_stream_join import stream_stream_join

    reach, grace = "5 minutes", f"{60 * hours - 5} minutes"
    left, right = _sides(events)
    return stream_stream_join(left, right, before=reach, after=reach, grace=grace, state_groups=STATE_GROUPS)


def _windowed(events: DataFrame, hours: int) -> DataFrame:
    from streamproof.spark_impl.windowed_table import windowed_table

    left, right = _sides(events)
    options: dict[str, Any] = {"size": "10 minutes", "grace": f"{hours} hours", "with_": "windowed_table"}
    return windowed_table(left, right, aggregate="sum", state_groups=STATE_GROUPS, **options)


def _range(events: DataFrame, hours: int | None) -> DataFrame:
    from streamproof.spark_impl.range_aggregate import range_aggregate

    retention = None if hours is None else f"{hours} hours"
    return range_aggregate(
        events, value="amount", aggregate="sum", preceding="10 minutes", retention=retention, **_arrived()
    )


TEN_MINUTES_MS = 600_000
BOUNDED: Mapping[str, Bounded] = {
    "session_windows": Bounded(_sessions, ("sessions",)),
    "window_aggregate": Bounded(_windows, ("windows",), TEN_MINUTES_MS),
    "stream_stream_join": Bounded(_joined, ("left", "right")),
    "windowed_table": Bounded(_windowed, ("events", "right"), TEN_MINUTES_MS),
    "range_aggregate": Bounded(_range, ("rows",), TEN_MINUTES_MS),
}
