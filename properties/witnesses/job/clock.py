"""Moves the watermark of a job's query along a clock, with rows that the job never receives.

While a job is declared, each call of `withWatermark` adds a source, whose rows have only an event time. The watermark
applies to the job's rows and the source's rows; a filter after the watermark removes the source's rows.
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
        count: The number of `withWatermark` calls.
        without_clock: Whether the job has a watermark that doesn't follow the clock.
    """

    count: int = 0
    without_clock: bool = False


def with_clock(batches: Sequence[Tables], clock: Sequence[int]) -> Sequence[Tables]:
    """Add the clock's input to each batch, with the clock's time as its only row; without a clock, return the batches
    unchanged.

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
    """Within the block, let declared watermarks also follow the clock.

    Args:
        clock: Creates a frame of the clock's source, with one column `TIME` (timestamp). None: the block only counts
            the calls of `withWatermark`.
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
        # The optimizer would move this filter and the job's filters before the watermark, which would then miss the
        # clock's rows. The optimizer doesn't move a nondeterministic filter, and doesn't split an `or`.
        seen = ~F.col(IS_CLOCK) | (F.spark_partition_id() < 0)
        return watermarked.where(seen).drop(IS_CLOCK)

    with DECLARING:
        original = frames.withWatermark
        frames.withWatermark = with_watermark
        try:
            yield declared
        finally:
            frames.withWatermark = original
