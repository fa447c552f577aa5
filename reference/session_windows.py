"""Session windows: records of a key at most one gap apart share a session.

Source: KIP-94 ("Proposed Changes", "Late arriving data"); a merge's tombstones are ordered as in Kafka Streams.
KIP-94 doesn't say whether closed sessions are final. Here a closed session (end < clock - gap - grace) is final: no
record merges with it. A record that joins an open session (`late` is `merged`) may thus lie within a closed session, as
in the records a@0 a@3 a@1 a@0 (key@timestamp) with gap 1 and grace 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import groupby
from typing import Protocol, TypeVar

from .core.clocks import Clock
from .core.records import Accepted, Change, Dropped, Key, Output, Record, Table
from .definitions.windows import SessionWindows
from .session_store import Session, SessionStore


def meaning(windows: SessionWindows, accepted: Iterable[Accepted], clock: int) -> Table:
    """Return the table of the accepted records at a clock time (ms); the order of arrival has no effect.

    A session that the clock has closed is final. The records of other sessions form islands: in time order, neighbours
    are at most one gap apart.
    """
    table: Table = {}
    by_key: dict[Key | None, list[Accepted]] = defaultdict(list)
    for taken in accepted:
        by_key[taken.record.key].append(taken)
    for key, taken_of_key in by_key.items():
        for session in sessions_of(taken_of_key, windows.gap_ms, windows.gap_ms + windows.grace_ms):
            start, end = session[0].record.timestamp, session[-1].record.timestamp
            if windows.emit == "update" or end < windows.close_edge(clock):
                assert key is not None
                table[key, (start, end)] = (windows.aggregate.of(key, [taken.record.value for taken in session]), end)
    return table


class Clocked(Protocol):
    """A record, and the clock's time at its arrival (ms)."""

    @property
    def record(self) -> Record:
        """The record."""
        ...

    @property
    def clock(self) -> int:
        """The clock (ms)."""
        ...


Taken = TypeVar("Taken", bound=Clocked)


def sessions_of(taken_of_key: Iterable[Taken], gap_ms: int, lateness_horizon_ms: int) -> list[list[Taken]]:
    """Return the sessions of a key's records, each in time order.

    Args:
        taken_of_key: The accepted records of one key.
        gap_ms: The inactivity gap.
        lateness_horizon_ms: A session is final once its end < clock - lateness_horizon_ms.
    """
    sessions: list[list[Taken]] = []
    by_clock = sorted(taken_of_key, key=lambda taken: taken.clock)
    for now, taken_at_edge in groupby(by_clock, key=lambda taken: taken.clock):
        edge = now - lateness_horizon_ms
        final = [session for session in sessions if session[-1].record.timestamp < edge]
        still_open = [taken for session in sessions if session[-1].record.timestamp >= edge for taken in session]
        sessions = final + _islands([*still_open, *taken_at_edge], gap_ms)
    return sessions


def _islands(taken: list[Taken], gap_ms: int) -> list[list[Taken]]:
    islands: list[list[Taken]] = []
    for one in sorted(taken, key=lambda one: one.record.timestamp):
        if islands and one.record.timestamp - islands[-1][-1].record.timestamp <= gap_ms:
            islands[-1].append(one)
        else:
            islands.append([one])
    return islands


class Behaviour:
    """The state machine: a session store, and the sessions still to emit."""

    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        self.windows = windows
        self.clock = clock
        self.store = SessionStore(windows.retention_ms)
        self.open: list[tuple[int, Key, int]] = []  # (end, key, start) of sessions still to emit, if emit is close

    def arrive(self, record: Record) -> list[Output]:
        """Merge the open sessions within the gap of a record, add the record, and emit the new session."""
        if record.key is None:
            return [Dropped(None, "null key")]
        before = self.clock.now
        self.clock.observe(record.timestamp)
        emitted = self.advance() if self.clock.now > before else []
        windows, key, timestamp = self.windows, record.key, record.timestamp
        edge = windows.close_edge(self.clock.now)

        near = self.near(key, timestamp, edge)
        start = min(timestamp, near[0].start) if near else timestamp  # the first also starts first
        end = max(timestamp, near[-1].end) if near else timestamp
        if (end if windows.late == "merged" else timestamp) < edge:
            return [*emitted, Dropped(key, "late")]

        aggregate = windows.aggregate.initializer()
        for session in near:
            aggregate = windows.aggregate.merger(key, aggregate, session.aggregate)
            self.store.remove(key, session)
        aggregate = windows.aggregate.aggregator(key, record.value, aggregate)
        self.store.put(key, Session(end, start, aggregate))

        if windows.emit == "close":
            if (start, end) not in [session.window for session in near]:
                heappush(self.open, (end, key, start))
            return emitted
        if (start, end) != (timestamp, timestamp):
            emitted += [Change(key, session.window, None, session.end) for session in near]
        return [*emitted, Change(key, (start, end), aggregate, end)]

    def near(self, key: Key, timestamp: int, edge: int) -> list[Session]:
        """Return the sessions of a key within the gap of a timestamp that end at or after `edge` (ms)."""
        gap = self.windows.gap_ms
        return self.store.fetch(key, max(timestamp - gap, edge), timestamp + gap)

    def advance(self) -> list[Output]:
        """Emit the sessions that the clock has closed (emit `close`), by end, then key; forget expired sessions."""
        emitted: list[Output] = []
        edge = self.windows.close_edge(self.clock.now)
        while self.open and self.open[0][0] < edge:
            end, key, start = heappop(self.open)
            emitted += [
                Change(key, session.window, session.aggregate, end)
                for session in self.store.fetch(key, end, start)
                if session.window == (start, end)
            ]
        self.store.advance(self.clock.now)
        return emitted
