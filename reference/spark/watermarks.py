"""The micro-batches that Spark executes, and their watermarks.

Sources, of Spark 4.x: `EventTimeWatermarkExec` (event times are floored to milliseconds), `WatermarkTracker` (the
watermark of each input and of the query), `PropagateWatermarkSimulator` (since SPARK-40925 in 3.5 lateness is tested
against the previous batch's watermark), `IncrementalExecution.shouldRunAnotherBatch` (batches without data).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from ..core.durations import Duration, microseconds_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MicroBatch(NamedTuple):
    """A micro-batch that Spark executes.

    Attributes:
        data: The ordinal, from 0, of this batch among the batches with data; a batch without data has the ordinal of
            the batch before it.
        has_data: Whether the batch contains data; a batch without data only emits the results that the watermark has
            closed.
        late_ms: Rows at or before this watermark are late (milliseconds since 1970).
        eviction_ms: State at or before this watermark is emitted and forgotten.
    """

    data: int
    has_data: bool
    late_ms: int
    eviction_ms: int


def micro_batches(
    largest_us: Sequence[Mapping[str, int | None]],
    delays_us: Mapping[str, int],
    *,
    policy: Literal["min", "max"] = "min",
    trigger: Literal["default", "available_now"] = "default",
    follows: bool = True,
) -> list[MicroBatch]:
    """Return the micro-batches that Spark executes, in order.

    Args:
        largest_us: For each batch with data, the largest event time of each input (microseconds since 1970); None, or
            no entry, for an input without rows.
        delays_us: The delay of each input that has a watermark, in microseconds; Spark truncates the delay to
            milliseconds.
        policy: Whether the query's watermark is the smallest or the largest of its inputs' watermarks.
        trigger: `default`: a batch starts when the previous batch, and its batch without data, are done.
            `available_now`: all data is available from the start, so the only batch without data is the last.
        follows: Whether the query's operators ask for a batch without data if the watermark has moved.
    """
    of_inputs: dict[str, int] = {}
    watermark = before = 0  # the watermark is never before 1970
    executed = []
    for number, largest in enumerate(largest_us):
        executed.append(MicroBatch(number, True, before, watermark))
        before = watermark
        for name, delay_us in delays_us.items():
            time_us = largest.get(name)
            if time_us is not None:
                of_inputs[name] = max(time_us // 1_000 - delay_us // 1_000, of_inputs.get(name, -(2**63)))
        if delays_us:
            choose = min if policy == "min" else max
            watermark = max(watermark, choose(of_inputs.get(name, 0) for name in delays_us))
        last = number == len(largest_us) - 1
        if follows and watermark > before and (trigger == "default" or last):
            executed.append(MicroBatch(number, False, before, watermark))
            before = watermark
    return executed


class Watermark:
    """A query's watermark under the default trigger, for a Python model of a job.

    The watermark decides which rows are late, and which windows are closed. Spark moves the watermark only between
    batches, from event times and delays floored to milliseconds. Spark compares the watermark with row times in
    microseconds.

    Args:
        delay: The delay of `withWatermark`, or the longest of several delays.

    Attributes:
        now_ms: The current watermark, in milliseconds since 1970.

    Raises:
        BadInput: The delay isn't a duration.
    """

    def __init__(self, delay: Duration) -> None:
        self._delay_ms = microseconds_of("delay", delay) // 1_000
        self.now_ms = 0  # the watermark is never before 1970

    def advance(self, clock: datetime) -> None:
        """Move the watermark at the end of a batch.

        Args:
            clock: The largest event time so far; a time without a zone is in UTC.
        """
        self.now_ms = max(self.now_ms, _microseconds(clock) // 1_000 - self._delay_ms)

    def is_late(self, time: datetime) -> bool:
        """Return whether Spark drops a row: `time` is its event time, its window's end, or its time plus the gap."""
        return _microseconds(time) <= 1_000 * self.now_ms

    def has_closed(self, end: datetime) -> bool:
        """Return whether a window, session or join is closed by its end, or a timer of that time has fired."""
        return _microseconds(end) <= 1_000 * self.now_ms

    def has_timed_out(self, timeout: datetime) -> bool:
        """Return whether a timeout of `applyInPandasWithState` has fired: Spark waits until the watermark is later."""
        return _microseconds(timeout) // 1_000 < self.now_ms


def _microseconds(time: datetime) -> int:
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
