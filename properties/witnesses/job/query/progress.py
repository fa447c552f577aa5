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
        last: The progress of the last; None: it has committed none.
        number: The number of the last that had state; -1: none had.
        stateful: Whether the query has state.
        state_rows: The number of the state's rows after the last.
        dropped: How many rows its operators dropped because they were behind the watermark.
        other_times: Whether one had another least event time than the rows of its input.
        at_other_times: Whether one ran at another processing time than it was to run at.
        restored_in: The numbers of the micro-batches before which the query was started with state.
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
        """Note what a query said since it was started, which now stops.

        Args:
            progress: Its progress, of each micro-batch.
            has_other_times: Whether a micro-batch has another least event time than the rows of its input.
            time_ms: Returns the processing time at which a micro-batch was to run; None: at the machine's.
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
        """Whether one of these micro-batches ran after the query was started with state."""
        first = min(self.restored_in, default=None)
        return first is not None and any(number >= first for number in numbers)

    @property
    def watermark(self) -> str | None:
        """The watermark of the last micro-batch, as Spark says it; None: it has none."""
        return None if self.last is None else self.last.get("eventTime", {}).get("watermark")


class Times:
    """The event times and processing times of a query, as they are set and as its progress says them.

    Args:
        sources: The job's inputs.
        batches: The rows of each batch.
        clock: The event time (microseconds since 1970) to which the watermarks move in each batch; empty: no clock.
        times_ms: The processing time of each batch, in milliseconds since 1970; empty: that of the machine.
        place: Returns the batch of a micro-batch, and whether it has the batch's rows.

    Attributes:
        committed: What the progress has said of the micro-batches that the query has committed.
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
        """Note what a query that has stopped said of the micro-batches that it has committed since it was started."""
        # As JSON, for PySpark's own form has no room for a rate of rows in no time at all.
        progress = [json.loads(one.json()) for one in query._jsq.recentProgress()]
        self.committed.note(progress, self.has_others, self.time_ms if self.times_ms else None)

    def has_others(self, committed: Any) -> bool:
        """Return whether the least event time of a micro-batch differs from the least time of its input's rows."""
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
        """Make sure that the batches have run at the times that they were to run at.

        Raises:
            BadInput: They haven't.
        """
        if self.committed.at_other_times:
            raise BadInput(
                f"pyspark {pyspark} lets no check set the clock of a query, so timeouts= can't be had with "
                "it: check the job on another version, or let it take its timeouts by event time"
            )

    def is_ahead(self, delay_us: int, may_be_behind: bool) -> bool:
        """Make sure that the watermark has followed the clock, for expectations go by it; return whether it is ahead.

        Args:
            delay_us: The delay of the watermark.
            may_be_behind: Whether the last batch may be run under an earlier watermark.

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
                f"the job's watermark has only reached {said} where the check moved it to {expected.isoformat()}: "
                "its plan keeps the check's clock from it; give the job its watermark next to its input"
            )
        return reached > expected


def time_of(said: str) -> datetime:
    """Return a time of a query's progress; the last that Python has for one beyond it, such as `+56791-06-09…`."""
    return datetime.max.replace(tzinfo=UTC) if said.startswith("+") else datetime.fromisoformat(said)
