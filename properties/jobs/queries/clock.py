"""Moves the watermark of a job's query along a clock, by rows that the job never sees.

While a job is declared, each of its calls of `withWatermark` reads one more source, whose rows have nothing but an
event time, passes the job's own rows and those through the watermark together, and filters those out behind it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ....reference.spark.durations import UNITS_US
from ...witnesses.spark.versions import frame_class

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIME, IS_CLOCK = "__streamproof_time", "__streamproof_clock"


@dataclass
class Watermarks:
    """The watermarks that a job has declared.

    Attributes:
        count: How many calls there were.
        without_clock: Whether one of them doesn't follow the clock.
    """

    count: int = 0
    without_clock: bool = False


@contextlib.contextmanager
def clock_behind_watermarks(clock: Callable[[], DataFrame] | None) -> Iterator[Watermarks]:
    """Within it, watermarks that are declared follow the clock, too.

    Args:
        clock: Reads the source of the clock anew: a frame of one column `TIME` (timestamp). None: only note the calls.
    """
    from pyspark.sql import functions as F

    declared = Watermarks()
    frames = frame_class()
    original: Any = frames.withWatermark

    def with_watermark(frame: DataFrame, eventTime: str, delayThreshold: str) -> DataFrame:
        declared.count += 1
        column = next((name for name in frame.columns if name.lower() == eventTime.strip("`").lower()), None)
        if clock is None or column is None or not frame.isStreaming:
            declared.without_clock |= frame.isStreaming
            unmoved: DataFrame = original(frame, eventTime, delayThreshold)
            return unmoved
        times = clock()
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

    frames.withWatermark = with_watermark
    try:
        yield declared
    finally:
        frames.withWatermark = original


_FIELDS = ["day", "hour", "minute", "second"]
_DURATION = re.compile(rf"(\d+(?:\.\d+)?) ({'|'.join(UNITS_US)})s?\b")
_INTERVAL = re.compile(r"INTERVAL '([\d :.]+)' (DAY|HOUR|MINUTE|SECOND)")
_RELATION = re.compile(r"StreamingRelation\w* .*?, \[([^\]]*#[^\]]*)\]")
_DELAY_MS = re.compile(r"-T(\d+)ms")
_COLUMN = re.compile(r"([^,\[\]]+?)(#\d+)L?(?:, |$)")
_PROCESSING_TIME = re.compile(r"(?:FlatMapGroups|TransformWithState)\w* .*, ProcessingTime(?:Timeout)?\b")
_MOST_COLUMNS = "spark.sql.debug.maxToStringFields"


def durations_in(text: str) -> list[int]:
    """Return the durations that the text of a plan names, in microseconds; what it doesn't recognise it leaves out."""
    found = {round(float(number) * UNITS_US[unit]) for number, unit in _DURATION.findall(text)}
    for parts, first in _INTERVAL.findall(text):
        units = _FIELDS[_FIELDS.index(first.lower()) :]
        found.add(sum(round(float(n) * UNITS_US[u]) for n, u in zip(re.split("[ :]", parts), units, strict=False)))
    found |= set(delays_in(text))
    # Windows by time are calculated with microseconds.
    found |= {int(number) for number in re.findall(r"\b(\d{6,14})\b(?! as| days)", text) if int(number) % 1_000 == 0}
    return sorted(duration for duration in found if 0 < duration <= 400 * UNITS_US["day"])


def delays_in(text: str) -> list[int]:
    """Return the delays of the watermarks in the text of a plan, in microseconds."""
    return sorted({int(delay_ms) * 1_000 for delay_ms in _DELAY_MS.findall(text)})


class EventTime(NamedTuple):
    """The column of a watermark.

    Attributes:
        name: Its name.
        given: The input's column that it is, which the job may have renamed; None where the job derives it.
        beside: All columns of that input.
    """

    name: str
    given: str | None
    beside: Sequence[str]


def event_times(plan: str) -> list[EventTime]:
    """Return the columns of a job's watermarks, by the text of its plan."""
    given: dict[str, tuple[str, list[str]]] = {}
    for columns in _RELATION.findall(plan):
        named = _COLUMN.findall(columns)
        given |= {column: (name, [other for other, _ in named]) for name, column in named}
    renamed = {new: old for old, new in re.findall(r"\w+(#\d+)L? AS \w+(#\d+)", plan)}
    found = []
    for name, column in re.findall(r"EventTimeWatermark [\w-]+, (\w+)(#\d+)", plan):
        while column in renamed:
            column = renamed[column]
        found.append(EventTime(name, *given.get(column, (None, ()))))
    return found


def derived_time(plan: str) -> str | None:
    """Return the column of a watermark that a job makes of others, by the text of its plan; None: there is none."""
    return next((time.name for time in event_times(plan) if time.given is None), None)


def by_processing_time(plan: str) -> bool:
    """Return whether the text of a plan has timeouts or timers of processing time."""
    return _PROCESSING_TIME.search(plan) is not None


def plan_of(frame: Any) -> str:
    """Return the text of a frame's analyzed plan, with all columns."""
    conf = frame.sparkSession.conf
    before = conf.get(_MOST_COLUMNS, None)
    conf.set(_MOST_COLUMNS, "100000")
    try:
        return str(frame._jdf.queryExecution().analyzed().toString())
    finally:
        conf.unset(_MOST_COLUMNS) if before is None else conf.set(_MOST_COLUMNS, before)
