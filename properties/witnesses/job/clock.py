"""Moves the watermark of a job's query along a clock, by rows that the job never sees.

While a job is declared, each of its calls of `withWatermark` reads one more source, whose rows have nothing but an
event time, passes the job's own rows and those through the watermark together, and filters those out behind it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...generators.columns.forms.rows import from_microseconds
from ..spark.engine import Tables
from ..spark.platform import connect
from .declaring import DECLARING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIME, IS_CLOCK = "__streamproof_time", "__streamproof_clock"
_SCHEMA = pa.schema([(TIME, pa.timestamp("us", "UTC"))])


@dataclass
class Watermarks:
    """The watermarks that a job has declared.

    Attributes:
        count: How many calls there were.
        without_clock: Whether one of them doesn't follow the clock.
    """

    count: int = 0
    without_clock: bool = False


def with_clock(batches: Sequence[Tables], clock: Sequence[int]) -> Sequence[Tables]:
    """Return batches with one more input, whose one row is the time of the clock; as they are where there is no clock.

    Args:
        batches: The rows of each input, by batch.
        clock: The event time (microseconds since 1970) to which the watermarks move in each batch; empty: no clock.
    """
    if not clock:
        return batches
    times = [pa.table({TIME: [from_microseconds(time)]}, _SCHEMA) for time in clock]
    return [{**tables, TIME: time} for tables, time in zip(batches, times, strict=True)]


@contextlib.contextmanager
def clock_behind_watermarks(clock: Callable[[], DataFrame] | None) -> Iterator[Watermarks]:
    """Within it, watermarks that are declared follow the clock, too.

    Args:
        clock: Reads the source of the clock anew: a frame of one column `TIME` (timestamp). None: only note the calls.
    """
    from pyspark.sql import functions as F

    declared = Watermarks()
    frames = connect.classes().frame
    original: Any = None

    def with_watermark(frame: DataFrame, eventTime: str, delayThreshold: str) -> DataFrame:
        declared.count += 1
        column = next((name for name in frame.columns if name.lower() == eventTime.strip("`").lower()), None)
        if clock is None or column is None or not frame.isStreaming:
            declared.without_clock |= frame.isStreaming
            unmoved: DataFrame = original(frame, eventTime, delayThreshold)
            return unmoved
        times = connect.to_job(clock)
        columns = [
            times[TIME].cast(kind).alias(name) if name == column else F.lit(None).cast(kind).alias(name)
            for name, kind in ((field.name, field.dataType) for field in frame.schema)
        ]
        driver = times.select(*columns, F.lit(True).alias(IS_CLOCK))
        rows = frame.withColumn(IS_CLOCK, F.lit(False))
        watermarked: DataFrame = original(rows.unionByName(driver), column, delayThreshold)
        # The optimizer would filter before the watermark, by this and by what the job filters behind it, and so keep
        # the clock from the watermark; it moves no filter past one that isn't deterministic, nor splits one with "or".
        seen = ~F.col(IS_CLOCK) | (F.spark_partition_id() < 0)
        return watermarked.where(seen).drop(IS_CLOCK)

    with DECLARING:
        original = frames.withWatermark
        frames.withWatermark = with_watermark
        try:
            yield declared
        finally:
            frames.withWatermark = original
