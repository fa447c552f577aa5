"""The session store of KIP-94: the sessions of a key, ordered by end, in segments of end time.

Source: KIP-94, "SessionStore", "Put", "Fetch".
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .core.errors import BadInput
from .core.records import Key

MIN_SEGMENT_INTERVAL_MS = 60_000


class Session(NamedTuple):
    """A session and its aggregate; both bounds are record timestamps (ms). Sessions sort by end, then start."""

    end: int
    start: int
    aggregate: Any

    @property
    def window(self) -> tuple[int, int]:
        """The window `(start, end)`."""
        return (self.start, self.end)


class SessionStore:
    """Sessions by key, in segments of end time; a segment expires as a whole.

    The retention is a lower bound: a session is stored for at least `retention_ms` after its end, and at most one
    segment longer. A segment covers `max(retention_ms // (segments - 1), minimum_interval_ms)` ms.
    """

    def __init__(
        self, retention_ms: int, segments: int = 3, minimum_interval_ms: int = MIN_SEGMENT_INTERVAL_MS
    ) -> None:
        if segments < 2:
            raise BadInput(f"segments is {segments}: a store needs two or more, to fill one while another expires")
        self.retention_ms = retention_ms
        self.interval_ms = max(retention_ms // (segments - 1), minimum_interval_ms)
        self.sessions: dict[Key, dict[tuple[int, int], Any]] = {}  # key -> (end, start) -> aggregate
        self.segments: dict[int, set[tuple[Key, int, int]]] = {}  # segment -> its (key, end, start) entries
        self.first_segment = 0

    def advance(self, clock: int) -> None:
        """Forget the segments whose sessions all end before clock - retention."""
        first_segment = (clock - self.retention_ms) // self.interval_ms
        if first_segment <= self.first_segment:
            return
        self.first_segment = first_segment
        for index in [index for index in self.segments if index < self.first_segment]:
            for key, end, start in self.segments.pop(index):
                self._forget(key, end, start)

    def put(self, key: Key, session: Session) -> bool:
        """Store a session, replacing a session with the same window; return False if its segment has expired."""
        index = session.end // self.interval_ms
        if index < self.first_segment:
            return False
        self.segments.setdefault(index, set()).add((key, session.end, session.start))
        self.sessions.setdefault(key, {})[session.end, session.start] = session.aggregate
        return True

    def remove(self, key: Key, session: Session) -> None:
        """Forget the stored session with the same window, if any."""
        if (session.end, session.start) in self.sessions.get(key, ()):
            self.segments[session.end // self.interval_ms].remove((key, session.end, session.start))
            self._forget(key, session.end, session.start)

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        """Return the sessions of a key that overlap a range, by end, then start.

        Args:
            key: The key.
            earliest_end: The smallest end of a session (ms).
            latest_start: The largest start of a session (ms).
        """
        found = [
            Session(end, start, aggregate)
            for (end, start), aggregate in self.sessions.get(key, {}).items()
            if end >= earliest_end and start <= latest_start
        ]
        return sorted(found)

    def _forget(self, key: Key, end: int, start: int) -> None:
        del self.sessions[key][end, start]
        if not self.sessions[key]:
            del self.sessions[key]
