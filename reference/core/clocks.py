"""Clocks decide which records are late. Each operator is given a clock.

Timestamps are never negative. A clock that has seen nothing is at 0: nothing is late, and nothing closes.
"""

from __future__ import annotations

from typing import Protocol

from .errors import BadInput


class Clock(Protocol):
    """The clock of an operator, or of `play`; `now` is its current time (ms)."""

    now: int

    def observe(self, timestamp: int) -> None:
        """Observe a record, or a clock advance, at this timestamp (ms)."""

    def cut(self) -> None:
        """Observe the end of a micro-batch."""


class StreamTime:
    """Kafka Streams' clock: the largest timestamp so far, including the current record's."""

    def __init__(self) -> None:
        self.now = 0

    def observe(self, timestamp: int) -> None:
        """Move with every record."""
        self.now = max(self.now, timestamp)

    def cut(self) -> None:
        """Do nothing: stream time knows no batches."""


class BatchClock:
    """Spark's clock: the watermark without delay, which is the largest timestamp of earlier batches."""

    def __init__(self) -> None:
        self.now = 0
        self.largest = 0

    def observe(self, timestamp: int) -> None:
        """Remember the timestamp for the next cut."""
        self.largest = max(self.largest, timestamp)

    def cut(self) -> None:
        """Move to the largest timestamp of the batches so far."""
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
