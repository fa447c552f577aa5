"""What a query's progress says of the micro-batches that it has committed, over all of its starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ...generators.columns.forms.rows import from_microseconds


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


def time_of(said: str) -> datetime:
    """Return a time of a query's progress; the last that Python has for one beyond it, such as `+56791-06-09…`."""
    return datetime.max.replace(tzinfo=UTC) if said.startswith("+") else datetime.fromisoformat(said)
