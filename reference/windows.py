"""Definitions of windows: what a user declares, checked where it is declared.

All durations are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from .aggregates import COUNT, Aggregate
from .errors import BadInput


@dataclass(frozen=True)
class SessionWindows:
    """Session windows of KIP-94: records of a key no more than `gap_ms` apart share a session.

    Attributes:
        gap_ms: The inactivity gap; records exactly one gap apart still merge.
        grace_ms: How much longer than the gap a session stays open for records that come late.
        retention_ms: How long a session is kept in the store after its end; gap + grace by default, and no less.
        aggregate: What becomes of a session's values.
        emit: `update` tells every change of a session, `close` its final value alone, once.
        late: `merged` drops a record iff the session that it would be in is closed (Kafka Streams); `own` looks at
            the record alone, whatever session it would join (Spark).

    Raises:
        BadInput: A duration is no whole number of ms, the gap isn't positive, the grace is negative, the retention is
            shorter than gap + grace, or `emit` or `late` is none of their values.

    Source: KIP-94, "SessionWindows" and "Late arriving data"; KIP-633 for grace.
    """

    gap_ms: int
    grace_ms: int = 0
    retention_ms: int = field(default_factory=lambda: _UNSAID)
    aggregate: Aggregate = COUNT
    emit: Literal["update", "close"] = "update"
    late: Literal["merged", "own"] = "merged"

    def __post_init__(self) -> None:
        """Check the declaration, and fill in the retention."""
        if self.retention_ms is _UNSAID and _whole(self.gap_ms) and _whole(self.grace_ms):
            object.__setattr__(self, "retention_ms", self.gap_ms + self.grace_ms)
        for name in ("gap_ms", "grace_ms", "retention_ms"):
            if not _whole(getattr(self, name)):
                raise BadInput(f"{name} is {getattr(self, name)!r}: give a whole number of milliseconds")
        if not isinstance(self.aggregate, Aggregate):
            raise BadInput(f"aggregate is {self.aggregate!r}: give an Aggregate; named_aggregate looks one up by name")
        if self.gap_ms <= 0:
            raise BadInput(f"gap_ms is {self.gap_ms}: a session's gap must be positive")
        if self.grace_ms < 0:
            raise BadInput(f"grace_ms is {self.grace_ms}: grace can't be negative; use 0 for none")
        if self.retention_ms < self.gap_ms + self.grace_ms:
            raise BadInput(
                f"retention_ms is {self.retention_ms}, less than gap + grace ({self.gap_ms + self.grace_ms}): "
                "an open session would be forgotten; raise it to that or leave it out"
            )
        for name, values in (("emit", ("update", "close")), ("late", ("merged", "own"))):
            if getattr(self, name) not in values:
                raise BadInput(f"{name} is {getattr(self, name)!r}: use {' or '.join(values)}")

    def close_edge(self, clock: int) -> int:
        """Give the edge (ms) at that clock: a session is closed iff its end lies before it."""
        return clock - self.gap_ms - self.grace_ms

    def expiry_edge(self, clock: int) -> int:
        """Give the edge (ms) at that clock: a session may be forgotten iff its end lies before it."""
        return clock - self.retention_ms


_UNSAID: Any = None


def _whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
