"""What counts as late is said by a clock, and an operator is given its clock.

No timestamp is negative, so a clock that has seen nothing says 0: that makes nothing late and closes nothing.
"""

from __future__ import annotations

from typing import Protocol

from .errors import BadInput


class Clock(Protocol):
    """What an operator and the player of a history need of a clock. All times are ms."""

    now: int

    def observe(self, timestamp: int) -> None:
        """A record (or heartbeat) at this timestamp has come."""

    def cut(self) -> None:
        """A micro-batch has ended."""


class StreamTime:
    """Kafka Streams' clock: the largest timestamp so far, the present record's included."""

    def __init__(self) -> None:
        self.now = 0

    def observe(self, timestamp: int) -> None:
        """Move with every record."""
        self.now = max(self.now, timestamp)

    def cut(self) -> None:
        """Batches mean nothing to stream time."""


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
