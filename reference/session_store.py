"""The session store of KIP-94: sessions of a key, ordered by end, in segments of end time.

Source: KIP-94, "SessionStore", "Put", "Fetch".
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .records import Key

MIN_SEGMENT_INTERVAL_MS = 60_000


class Session(NamedTuple):
    """A session and its aggregate; both bounds are timestamps of records (ms). The order is by end, then start."""

    end: int
    start: int
    aggregate: Any

    @property
    def window(self) -> tuple[int, int]:
        """The window `(start, end)`."""
        return (self.start, self.end)


class SessionStore:
    """Sessions by key, segmented by end time, so that a whole segment is forgotten at once.

    The retention is a lower bound: a session is kept at least `retention_ms` past its end, and at most one segment
    longer. A segment covers `max(retention_ms // (segments - 1), minimum_interval_ms)` ms.
    """

    def __init__(
        self, retention_ms: int, segments: int = 3, minimum_interval_ms: int = MIN_SEGMENT_INTERVAL_MS
    ) -> None:
        self.retention_ms = retention_ms
        self.interval_ms = max(retention_ms // (segments - 1), minimum_interval_ms)
        self.segments: dict[int, dict[Key, dict[tuple[int, int], Any]]] = {}  # index, key, (end, start) to aggregate
        self.first_segment = 0

    def advance(self, clock: int) -> None:
        """Forget the segments that hold nothing but sessions with end < clock - retention."""
        first_segment = (clock - self.retention_ms) // self.interval_ms
        if first_segment > self.first_segment:
            self.first_segment = first_segment
            self.segments = {index: keys for index, keys in self.segments.items() if index >= first_segment}

    def put(self, key: Key, session: Session) -> bool:
        """Keep a session, in place of one of the same window; one whose segment has expired is dropped (False)."""
        index = session.end // self.interval_ms
        if index < self.first_segment:
            return False
        self.segments.setdefault(index, {}).setdefault(key, {})[session.end, session.start] = session.aggregate
        return True

    def remove(self, key: Key, session: Session) -> None:
        """Forget the session of that window, if there is one."""
        kept = self.segments.get(session.end // self.interval_ms, {}).get(key, {})
        kept.pop((session.end, session.start), None)

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        """Give the key's sessions with end >= earliest_end and start <= latest_start, by end, then start."""
        earliest_segment = earliest_end // self.interval_ms
        return sorted(
            Session(end, start, aggregate)
            for index, keys in self.segments.items()
            if index >= earliest_segment
            for (end, start), aggregate in keys.get(key, {}).items()
            if end >= earliest_end and start <= latest_start
        )
