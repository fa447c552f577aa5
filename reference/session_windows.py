"""Session windows: records of a key no more than a gap apart share a session.

Source: KIP-94 ("Proposed Changes", "Late arriving data"); `facts/kafka_streams` for the order of a merge's tombstones.
Where KIP-94 is silent: a closed session (end < clock - gap - grace) is final, and nothing merges with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import groupby

from .clocks import Clock
from .records import Accepted, Change, Dropped, Key, Output, Record, Table
from .session_store import Session, SessionStore
from .windows import SessionWindows

INPUTS = ("events",)


def meaning(windows: SessionWindows, accepted: Iterable[Accepted], clock: int) -> Table:
    """Give the table of the accepted records, when the clock says `clock` (ms); the order of arrival plays no part.

    At every close edge the sessions that ended before it are final. All other records, with those accepted at that
    edge, fall into islands: runs in time order in which no two neighbours are more than the gap apart.
    """
    table: Table = {}
    by_key = sorted(accepted, key=lambda taken: (taken.record.key, taken.clock))
    for key, taken_of_key in groupby(by_key, key=lambda taken: taken.record.key):
        sessions: list[list[Record]] = []
        for now, taken_at_edge in groupby(taken_of_key, key=lambda taken: taken.clock):
            edge = windows.close_edge(now)
            final = [session for session in sessions if session[-1].timestamp < edge]
            still_open = [record for session in sessions if session[-1].timestamp >= edge for record in session]
            sessions = final + _islands(still_open + [taken.record for taken in taken_at_edge], windows.gap_ms)
        for session in sessions:
            start, end = session[0].timestamp, session[-1].timestamp
            if windows.emit == "update" or end < windows.close_edge(clock):
                assert key is not None
                value = windows.aggregate.initializer()
                for record in session:
                    value = windows.aggregate.aggregator(key, record.value, value)
                table[key, (start, end)] = (value, end)
    return table


def _islands(records: list[Record], gap_ms: int) -> list[list[Record]]:
    islands: list[list[Record]] = []
    for record in sorted(records, key=lambda record: record.timestamp):
        if islands and record.timestamp - islands[-1][-1].timestamp <= gap_ms:
            islands[-1].append(record)
        else:
            islands.append([record])
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

        near = self.store.fetch(key, max(timestamp - windows.gap_ms, edge), timestamp + windows.gap_ms)
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
