"""Clocks decide which records are late. Each operator reads the time from a single clock.

Timestamps are never negative. A new clock is at 0: no record is late, and no window closes.
"""

from __future__ import annotations

from typing import Protocol

from .errors import BadInput


class Clock(Protocol):
    """An event-time clock; `now` is the clock's current time (ms)."""

    now: int

    def observe(self, timestamp: int) -> None:
        """Observe the timestamp (ms) of a record or of a clock advance."""

    def cut(self) -> None:
        """Observe the end of a micro-batch."""


class StreamTime:
    """Kafka Streams' clock: the largest timestamp so far, including the current record's."""

    def __init__(self) -> None:
        self.now = 0

    def observe(self, timestamp: int) -> None:
        """Advance to the timestamp (ms) if it is later than `now`."""
        self.now = max(self.now, timestamp)

    def cut(self) -> None:
        """Do nothing: stream time doesn't depend on batches."""


class BatchClock:
    """Spark's clock: a watermark with delay 0, which is the largest timestamp of earlier batches."""

    def __init__(self) -> None:
        self.now = 0
        self.largest = 0

    def observe(self, timestamp: int) -> None:
        """Remember the timestamp; only a cut moves the clock."""
        self.largest = max(self.largest, timestamp)

    def cut(self) -> None:
        """Advance to the largest timestamp of all batches so far."""
        self.now = self.largest


CLOCKS: dict[str, type[StreamTime] | type[BatchClock]] = {"stream_time": StreamTime, "batch": BatchClock}


def make_clock(name: str) -> Clock:
    """Return a new clock of the given name.

    Raises:
        BadInput: The name is neither `stream_time` nor `batch`.
    """
    if name not in CLOCKS:
        raise BadInput(f"unknown clock {name!r}: use one of {', '.join(CLOCKS)}")
    return CLOCKS[name]()
