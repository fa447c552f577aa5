"""The progress of a query's committed micro-batches, and the times that a check sets for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .....reference.core.errors import BadInput, StreamproofError
from ....generators.columns.forms.rows import from_microseconds, microseconds
from ....generators.columns.model import Source
from ...spark.engine import PlaceOf, Tables

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery


@dataclass
class Committed:
    """The micro-batches that a query has committed.

    Attributes:
        last: The progress of the last micro-batch (None: no commit).
        number: The number of the last micro-batch with state; -1: none.
        stateful: Whether the query has state.
        state_rows: The number of state rows after the last micro-batch.
        dropped: The number of rows that operators dropped because they were behind the watermark.
        other_times: Whether the smallest event time of a micro-batch differed from the smallest time of its input rows.
        at_other_times: Whether a micro-batch ran at another processing time than the check had set.
        restored_in: The numbers of the micro-batches before which the query started with state.
    """

    last: Mapping[str, Any] | None = None
    number: int = -1
    stateful: bool = False
    state_rows: int = 0
    dropped: int = 0
    other_times: bool = False
    at_other_times: bool = False
    restored_in: set[int] = field(default_factory=set)

    def note(
        self,
        progress: Iterable[Mapping[str, Any]],
        has_other_times: Callable[[Any], bool],
        time_ms: Callable[[int], int] | None,
    ) -> None:
        """Record the progress of a query since its start; the query stops after this call.

        Args:
            progress: The progress of each micro-batch.
            has_other_times: Returns whether a micro-batch's smallest event time differs from the smallest time of its
                input rows.
            time_ms: Returns the processing time that the check has set for a micro-batch (None: the machine's time).
        """
        for said in progress:
            self.last = said
            self.other_times |= has_other_times(said)
            if time_ms is not None:
                self.at_other_times |= time_of(said["timestamp"]) != from_microseconds(1_000 * time_ms(said["batchId"]))
            if operators := said.get("stateOperators"):
                self.stateful, self.number = True, said["batchId"]
                self.state_rows = sum(operator["numRowsTotal"] for operator in operators)
                self.dropped += sum(operator["numRowsDroppedByWatermark"] for operator in operators)
        if self.state_rows:
            self.restored_in.add(self.number + 1)

    def has_restored(self, numbers: Iterable[int]) -> bool:
        """Return whether one of these micro-batches ran after the query had started with state."""
        first = min(self.restored_in, default=None)
        return first is not None and any(number >= first for number in numbers)

    @property
    def watermark(self) -> str | None:
        """The watermark of the last micro-batch, as Spark formats it (None: no watermark)."""
        return None if self.last is None else self.last.get("eventTime", {}).get("watermark")


class Times:
    """The event times and processing times of a query, as the check sets them and as the query's progress reports them.

    Args:
        sources: The job's inputs.
        batches: The rows of each batch.
        clock: The event time (microseconds since 1970) to which the watermarks move in each batch; empty: no clock.
        times_ms: The processing time of each batch, in milliseconds since 1970; empty: the machine's time.
        place: Returns the batch of a micro-batch, and whether the micro-batch contains the batch's rows.

    Attributes:
        committed: The watermark, late rows and durations in the progress of the committed micro-batches.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        batches: Sequence[Tables],
        clock: Sequence[int],
        times_ms: Sequence[int],
        place: PlaceOf,
    ) -> None:
        self.sources, self.batches, self.clock = sources, batches, clock
        self.times_ms, self.place, self.committed = times_ms, place, Committed()

    def time_ms(self, batch_id: int) -> int:
        """Return the processing time of a micro-batch, in milliseconds since 1970."""
        return self.times_ms[self.place(batch_id)[0]]

    def note(self, query: StreamingQuery) -> None:
        """Record the progress of a stopped query's micro-batches since the query's start."""
        # Read the progress as JSON, because PySpark's progress class can't parse the rate of a batch that took no time.
        progress = [json.loads(one.json()) for one in query._jsq.recentProgress()]
        self.committed.note(progress, self.has_others, self.time_ms if self.times_ms else None)

    def has_others(self, committed: Any) -> bool:
        """Return whether the smallest event time of a micro-batch differs from the smallest time of its input's
        rows.
        """
        batch, has_rows = self.place(committed["batchId"])
        if not has_rows:
            return False
        (source, *others), least = self.sources, committed.get("eventTime", {}).get("min")
        if others or source.wire_time is None:
            return bool(others)
        times = [time for time in self.batches[batch][source.name][source.wire_time].to_pylist() if time is not None]
        given_us = [*(microseconds(time.replace(tzinfo=UTC)) for time in times), *self.clock[batch : batch + 1]]
        expected = from_microseconds(min(given_us) // 1000 * 1000) if given_us else None
        return expected != (None if least is None else datetime.fromisoformat(least))

    def refuse_others(self, pyspark: str) -> None:
        """Check that the batches have run at the processing times that the check has set.

        Raises:
            BadInput: A batch has run at another time.
        """
        if self.committed.at_other_times:
            raise BadInput(
                f"pyspark {pyspark} doesn't let a check set a query's clock, so timeouts= isn't available: check the "
                "job on another version, or use event-time timeouts"
            )

    def is_ahead(self, delay_us: int, may_be_behind: bool) -> bool:
        """Check that the query's watermark isn't behind the check's clock, which determines the expected rows; return
        whether it is ahead.

        Args:
            delay_us: The delay of the watermark.
            may_be_behind: Whether the last batch may run under an earlier watermark.

        Raises:
            StreamproofError: The watermark is behind the clock.
        """
        said = self.committed.watermark
        reached = None if said is None else time_of(said)
        expected = from_microseconds((self.clock[-1] - delay_us) // 1000 * 1000)
        if reached is None or reached < expected:
            if may_be_behind:
                return False
            raise StreamproofError(
                f"the job's watermark has reached only {said}, and the check moved its clock to "
                f"{expected.isoformat()}: the job's plan holds the clock back. Call withWatermark directly on the "
                "job's input"
            )
        return reached > expected


def time_of(said: str) -> datetime:
    """Return a time of a query's progress, or Python's last time for a later time such as `+56791-06-09…`."""
    return datetime.max.replace(tzinfo=UTC) if said.startswith("+") else datetime.fromisoformat(said)
