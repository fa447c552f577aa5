"""Aggregation by session windows: `groupBy(keys, session_window(time, gap))`.

Sources: `SessionWindowing` (each row starts as a session from its time to a gap later),
`SessionWindowStateStoreRestoreExec` (lateness is tested on the end of that session, before merging),
`MergingSessionsIterator` (sessions that overlap or touch are merged), `SessionWindowStateStoreSaveExec` (the end of a
session, which is exclusive, decides its eviction; the mode decides the output).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .aggregates import AggregateFunction, Row

GroupKey: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class SessionAggregation:
    """An aggregation by session windows; all times are microseconds since 1970.

    Attributes:
        time: The column of the event time.
        keys: The columns of the key.
        gap_us: The gap: a session ends this long after its last row.
        aggregates: The aggregates, by the name of their output column.
        mode: The output mode; Spark refuses `update`.
        merges_early: Whether a batch's rows are merged before the test for lateness, as Spark merges a partition's rows
            with `spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition`.
    """

    time: str
    keys: tuple[str, ...]
    gap_us: int
    aggregates: Mapping[str, AggregateFunction]
    mode: Literal["append", "complete"] = "append"
    merges_early: bool = False


class SessionsState:
    """The open sessions: by key, each session's rows in order of time."""

    def __init__(self, windows: SessionAggregation) -> None:
        self.windows = windows
        self.sessions: dict[GroupKey, list[list[Row]]] = {}

    def batch(self, rows: Iterable[Row], late_ms: int, eviction_ms: int) -> list[Row]:
        """Process a micro-batch's rows; return the emitted rows: key, `start`, `end` (exclusive) and aggregates."""
        windows = self.windows
        arrived: dict[GroupKey, list[Row]] = {}
        for row in rows:
            if row[windows.time] is not None:
                arrived.setdefault(tuple(row[key] for key in windows.keys), []).append(row)
        for key, of_key in arrived.items():
            new = self.merged(of_key) if windows.merges_early else [[row] for row in of_key]
            in_time = [session for session in new if self.end(session) > late_ms * 1_000]
            kept = [*self.sessions.get(key, []), *in_time]
            self.sessions[key] = self.merged(row for session in kept for row in session)
        if windows.mode == "complete":
            return [self.result(key, session) for key, sessions in self.sessions.items() for session in sessions]
        emitted = []
        for key, sessions in self.sessions.items():
            emitted += [self.result(key, one) for one in sessions if self.end(one) <= eviction_ms * 1_000]
            self.sessions[key] = [one for one in sessions if self.end(one) > eviction_ms * 1_000]
        return emitted

    def merged(self, rows: Iterable[Row]) -> list[list[Row]]:
        """Return the sessions of a key's rows: a row at most one gap after the previous row joins its session."""
        sessions: list[list[Row]] = []
        for row in sorted(rows, key=lambda row: row[self.windows.time]):
            if sessions and row[self.windows.time] <= self.end(sessions[-1]):
                sessions[-1].append(row)
            else:
                sessions.append([row])
        return sessions

    def end(self, session: list[Row]) -> int:
        """Return the end of a session: one gap after its last row."""
        return int(session[-1][self.windows.time]) + self.windows.gap_us

    def result(self, key: GroupKey, session: list[Row]) -> Row:
        """Return the output row of a session."""
        windows = self.windows
        aggregates = {name: aggregate.of(session) for name, aggregate in windows.aggregates.items()}
        times = {"start": session[0][windows.time], "end": self.end(session)}
        return dict(zip(windows.keys, key, strict=True)) | times | aggregates
