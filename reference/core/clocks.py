"""Clocks: a clock decides what counts as late, and an operator is given its clock.

No timestamp is negative, so a clock that has seen nothing is at 0: nothing is late, and nothing closes.
"""

from __future__ import annotations

from typing import Protocol

from .errors import BadInput


class Clock(Protocol):
    """The clock that an operator, and `play`, work by; `now` is its present time (ms)."""

    now: int

    def observe(self, timestamp: int) -> None:
        """Observe a record, or a clock advance, at this timestamp (ms)."""

    def cut(self) -> None:
        """Observe the end of a micro-batch."""


class StreamTime:
    """Kafka Streams' clock: the largest timestamp so far; the record being processed counts too."""

    def __init__(self) -> None:
        self.now = 0

    def observe(self, timestamp: int) -> None:
        """Move with every record."""
        self.now = max(self.now, timestamp)

    def cut(self) -> None:
        """Do nothing: stream time knows no batches."""


class BatchClock:
    """Spark's clock, its watermark without delay: the largest timestamp of earlier batches."""

    def __init__(self) -> None:
        self.now = 0
        self.largest = 0

    def observe(self, timestamp: int) -> None:
        """Remember the timestamp for the next cut."""
        self.largest = max(self.largest, timestamp)

    def cut(self) -> None:
        """Move to the largest timestamp of the batches that have ended."""
        self.now = self.largest


CLOCKS: dict[str, type[StreamTime] | type[BatchClock]] = {"stream_time": StreamTime, "batch": BatchClock}


def make_clock(name: str) -> Clock:
    """Make the clock of that name.

    Raises:
        BadInput: The name is neither `stream_time` nor `batch`.
    """
    if name not in CLOCKS:
        raise BadInput(f"unknown clock {name!r}: use one of {', '.join(CLOCKS)}")
    return CLOCKS[name]()
