"""Session windows: records of a key no more than a gap apart share a session.

Source: KIP-94 ("Proposed Changes", "Late arriving data"); `facts/kafka_streams` for the order of a merge's tombstones.
Where KIP-94 is silent: a closed session (end < clock - gap - grace) is final, and nothing merges with it. So a record
that a live session rescues (`late` is `merged`) may lie within a closed one: gap 1, grace 1, a@0 a@3 a@1 a@0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import groupby
from typing import Protocol, TypeVar

from .clocks import Clock
from .records import Accepted, Change, Dropped, Key, Output, Record, Table
from .session_store import Session, SessionStore
from .windows import SessionWindows


def meaning(windows: SessionWindows, accepted: Iterable[Accepted], clock: int) -> Table:
    """Give the table of the accepted records, when the clock says `clock` (ms); the order of arrival plays no part.

    At every close edge the sessions that ended before it are final. All other records, with those accepted at that
    edge, fall into islands: runs in time order in which no two neighbours are more than the gap apart.
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
    """Something that holds a record, and what the clock said when it came (ms)."""

    @property
    def record(self) -> Record:
        """The record."""
        ...

    @property
    def clock(self) -> int:
        """The clock (ms)."""
        ...


Taken = TypeVar("Taken", bound=Clocked)


def sessions_of(taken_of_key: Iterable[Taken], gap_ms: int, patience_ms: int) -> list[list[Taken]]:
    """Give the sessions of a key's records, each in time order; one is final once its end < clock - `patience_ms`."""
    sessions: list[list[Taken]] = []
    by_clock = sorted(taken_of_key, key=lambda taken: taken.clock)
    for now, taken_at_edge in groupby(by_clock, key=lambda taken: taken.clock):
        edge = now - patience_ms
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
    """The state machine: it takes one record at a time and tells what changes."""

    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        self.windows = windows
        self.clock = clock
        self.store = SessionStore(windows.retention_ms)
        self.open: list[
            tuple[int, Key, int]
        ] = []  # (end, key, start) of sessions still to be told, where emit is close

    def arrive(self, record: Record) -> list[Output]:
        """Take a record: merge the open sessions within the gap of it, add it, and tell the new session."""
        if record.key is None:
            return [Dropped(None, "null key")]
        before = self.clock.now
        self.clock.observe(record.timestamp)
        told = self.advance() if self.clock.now > before else []
        windows, key, timestamp = self.windows, record.key, record.timestamp
        edge = windows.close_edge(self.clock.now)

        near = self.near(key, timestamp, edge)
        start = min(timestamp, near[0].start) if near else timestamp  # open sessions of a key never overlap
        end = max(timestamp, near[-1].end) if near else timestamp
        if (end if windows.late == "merged" else timestamp) < edge:
            return [*told, Dropped(key, "late")]

        aggregate = windows.aggregate.initializer()
        for session in near:
            aggregate = windows.aggregate.merger(key, aggregate, session.aggregate)
            self.store.remove(key, session)
        aggregate = windows.aggregate.aggregator(key, record.value, aggregate)
        self.store.put(key, Session(end, start, aggregate))

        if windows.emit == "close":
            if (start, end) not in [session.window for session in near]:
                heappush(self.open, (end, key, start))
            return told
        if (start, end) != (timestamp, timestamp):
            told += [Change(key, session.window, None, session.end) for session in near]
        return [*told, Change(key, (start, end), aggregate, end)]

    def near(self, key: Key, timestamp: int, edge: int) -> list[Session]:
        """Give the open sessions of a key within the gap of a timestamp."""
        gap = self.windows.gap_ms
        return self.store.fetch(key, max(timestamp - gap, edge), timestamp + gap)

    def advance(self) -> list[Output]:
        """Tell the sessions that the clock has closed (where emit is close), by end, then key; forget expired ones."""
        told: list[Output] = []
        edge = self.windows.close_edge(self.clock.now)
        while self.open and self.open[0][0] < edge:
            end, key, start = heappop(self.open)
            told += [
                Change(key, session.window, session.aggregate, end)
                for session in self.store.fetch(key, end, start)
                if session.window == (start, end)
            ]
        self.store.advance(self.clock.now)
        return told
