"""Mutants of session windows: mutants of the stateful operator, the reference, the SQL statement and the sink.

Each mutant of the operator overrides one method of `SessionLogic`, so many mutants can share a query: `LogicByHistory`
passes every key to the mutant of the key's history.
"""

from __future__ import annotations

import uuid
from typing import Any

from ....reference.definitions.windows import SessionWindows
from ....spark_impl.runtime.logic import Arrived, LogicOutput
from ....spark_impl.session_windows import Session, SessionLogic
from ...registration.mutants import mutants_of
from .making import logics_in, redeclaring, returning


class GapExclusive(SessionLogic):
    """Records exactly one gap apart don't merge."""

    def near(self, sessions: list[Session], timestamp: int, edge: int) -> list[Session]:
        gap = self.windows.gap_ms
        found = super().near(sessions, timestamp, edge)
        return [session for session in found if session.end > timestamp - gap and session.start < timestamp + gap]


class OneMillisecondTooFar(SessionLogic):
    """Records one gap and 1 ms apart merge."""

    def near(self, sessions: list[Session], timestamp: int, edge: int) -> list[Session]:
        gap = self.windows.gap_ms + 1
        found = (s for s in sessions if s.end >= timestamp - gap and s.start <= timestamp + gap and s.end >= edge)
        return sorted(found, key=lambda session: session.end)


MergesOne = returning(
    SessionLogic,
    "A record that bridges two sessions merges only with the earlier session",
    near=lambda found: found[:1],
)


class ForwardOnly(SessionLogic):
    """A session grows only forward: an out-of-order record before a session starts another session (a mutant of arrival
    order).
    """

    def near(self, sessions: list[Session], timestamp: int, edge: int) -> list[Session]:
        return [session for session in super().near(sessions, timestamp, edge) if session.start <= timestamp]


class ClosedStaysOpen(SessionLogic):
    """A closed session that is still in the state is merged and revised, as in Kafka Streams with a long retention."""

    def near(self, sessions: list[Session], timestamp: int, edge: int) -> list[Session]:
        gap = self.windows.gap_ms
        return [session for session in sessions if session.end >= timestamp - gap and session.start <= timestamp + gap]


NoTombstone = returning(
    SessionLogic,
    "Merged sessions are not retracted (bug museum 17: a double count downstream)",
    emit_merge=lambda found: found[-1:],
)
TombstoneAfterValue = returning(
    SessionLogic,
    "The tombstones follow the new session: a tombstone of the same window deletes it",
    emit_merge=lambda found: [found[-1], *found[:-1]],
)
DuplicateTombstones = returning(
    SessionLogic,
    "Each tombstone is sent twice: a folded table hides it (bug museum 6)",
    emit_merge=lambda found: [*found[:-1], *found[:-1], found[-1]],
)
TombstonesInWrongOrder = returning(
    SessionLogic,
    "The tombstones of a merge are emitted in reverse order of time, which only an ordered list shows",
    emit_merge=lambda found: [*found[-2::-1], found[-1]],
)


class TimestampOfRecord(SessionLogic):
    """A change has the record's timestamp instead of the window's end."""

    def emit_merge(self, near: list[Session], merged: Session, row: Arrived) -> list[LogicOutput]:
        emitted = super().emit_merge(near, merged, row)
        return [*emitted[:-1], emitted[-1]._replace(timestamp=row.timestamp)]


GraceForgotten = redeclaring(
    SessionLogic,
    "Sessions close at end + gap: the close rule ignores the grace",
    lambda windows: {"grace_ms": 0},
)


class GapForgotten(SessionLogic):
    """Sessions close at end + grace: the close rule ignores the gap (KAFKA-12718)."""

    def take(self, key: tuple[Any, ...], sessions: list[Session], row: Arrived, clock: int) -> list[LogicOutput]:
        return super().take(key, sessions, row, clock + self.windows.gap_ms if clock else 0)


class ClosesEarly(SessionLogic):
    """A session closes one tick early: `<=` instead of `<` (KAFKA-8289)."""

    def take(self, key: tuple[Any, ...], sessions: list[Session], row: Arrived, clock: int) -> list[LogicOutput]:
        return super().take(key, sessions, row, clock + 1 if clock else 0)


RescueForgotten = redeclaring(
    SessionLogic,
    "Lateness is tested on the record alone, although the declaration requires the merged session",
    lambda windows: {"late": "own"},
)


class LateKept(SessionLogic):
    """Late records are never dropped."""

    def take(self, key: tuple[Any, ...], sessions: list[Session], row: Arrived, clock: int) -> list[LogicOutput]:
        return super().take(key, sessions, row, 0)


class ShuffleOrder(SessionLogic):
    """Rows are processed in the order after the shuffle; this mutant makes the order deterministic."""

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        return sorted(rows, key=lambda row: (row.order * 2_654_435_761) % 4_294_967_296)


class TimestampOrder(SessionLogic):
    """Rows of a batch are processed by timestamp instead of arrival."""

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        return sorted(rows, key=lambda row: row.timestamp or 0)


class AggregateInArrivalOrder(SessionLogic):
    """The record's value is added before the merged sessions' aggregates."""

    def aggregate(self, key: tuple[Any, ...], near: list[Session], row: Arrived) -> Any:
        by = self.windows.aggregate
        value = by.aggregator(key[0], row.value, by.initializer())
        for session in near:
            value = by.merger(key[0], value, session.value)
        return value


class MergerForgotten(SessionLogic):
    """Of the merged sessions' aggregates, only the last aggregate is kept."""

    def aggregate(self, key: tuple[Any, ...], near: list[Session], row: Arrived) -> Any:
        return super().aggregate(key, near[-1:], row)


class RepeatsDropped(SessionLogic):
    """A record with a session's start or end as its timestamp is treated as a repeat and dropped."""

    def take(self, key: tuple[Any, ...], sessions: list[Session], row: Arrived, clock: int) -> list[LogicOutput]:
        if any(row.timestamp in (session.start, session.end) for session in sessions):
            return []
        return super().take(key, sessions, row, clock)


class StateNeverExpires(SessionLogic):
    """Sessions stay in the state forever."""

    def keep(self, sessions: list[Session], emitted: int, clock: int) -> list[Session]:
        return sessions


class StateExpiresTooSoon(SessionLogic):
    """State is dropped at the end of the gap, although the grace isn't over."""

    def keep(self, sessions: list[Session], emitted: int, clock: int) -> list[Session]:
        return [session for session in sessions if session.end >= clock - self.windows.gap_ms]


ForgetsBetweenBatches = returning(SessionLogic, "State is lost between batches", keep=lambda found: [])


class ForgetsAtRestart(SessionLogic):
    """State is tagged with the query's build, and a build ignores the state of other builds, so a restart loses the
    state.

    The tag is the fraction of a session's start time. The tag represents a salted hash or a versioned name of a state.
    """

    def __init__(self, windows: SessionWindows) -> None:
        super().__init__(windows)
        self.build = uuid.uuid4().int % 1_000_000

    def take(self, key: tuple[Any, ...], sessions: list[Session], row: Arrived, clock: int) -> list[LogicOutput]:
        mine = self.mine(sessions)
        emitted = super().take(key, mine, row, clock)
        sessions[:] = [session._replace(start=session.start * 1_000_000 + self.build) for session in mine]
        return emitted

    def close(self, sessions: list[Session], emitted: int, clock: int) -> list[LogicOutput]:
        return super().close(self.mine(sessions), emitted, clock)

    def mine(self, sessions: list[Session]) -> list[Session]:
        """Return the sessions that this build of the query has stored."""
        return [
            session._replace(start=session.start // 1_000_000)
            for session in sessions
            if session.start % 1_000_000 == self.build
        ]


class _Restored(list[Session]):
    """Sessions that an earlier start of the query stored."""


class ClosingsLostAtRestart(SessionLogic):
    """Sessions that close in the first batch of a restarted query aren't emitted.

    As in `ForgetsAtRestart`, the fraction of a session's start time identifies the start of the query that stored the
    session. A stopped query has emitted its closed sessions, so only a query that crashes in such a batch shows this
    bug.
    """

    def __init__(self, windows: SessionWindows) -> None:
        super().__init__(windows)
        self.build = uuid.uuid4().int % 1_000_000

    def pack(self, sessions: list[Session]) -> tuple[Any, ...] | None:
        return super().pack([one._replace(start=one.start * 1_000_000 + self.build) for one in sessions])

    def unpack(self, fields: tuple[Any, ...]) -> list[Session]:
        tagged = super().unpack(fields)
        sessions = [one._replace(start=one.start // 1_000_000) for one in tagged]
        return sessions if all(one.start % 1_000_000 == self.build for one in tagged) else _Restored(sessions)

    def close(self, sessions: list[Session], emitted: int, clock: int) -> list[LogicOutput]:
        return [] if isinstance(sessions, _Restored) else super().close(sessions, emitted, clock)


class EmitsProcessingTime(SessionLogic):
    """The output contains the current time, so a replayed batch differs from its first output."""

    def emit_merge(self, near: list[Session], merged: Session, row: Arrived) -> list[LogicOutput]:
        emitted = super().emit_merge(near, merged, row)
        return [*emitted[:-1], emitted[-1]._replace(timestamp=merged.end + uuid.uuid4().int % 2)]


class SharedAcrossKeys(SessionLogic):
    """A record also adds values of other keys in the same state group, through a shared cache: packing changes
    results.
    """

    def __init__(self, windows: SessionWindows) -> None:
        super().__init__(windows)
        self.cache: dict[int, Session] = {}

    def aggregate(self, key: tuple[Any, ...], near: list[Session], row: Arrived) -> Any:
        cached = self.cache.get(row.timestamp or 0)
        value = super().aggregate(key, near if near or cached is None else [cached], row)
        self.cache[row.timestamp or 0] = Session(row.timestamp or 0, row.timestamp or 0, value)
        return value


class LateOneBatchLater(SessionLogic):
    """Closings use the clock of the previous batch (SPARK-40925)."""

    def close(self, sessions: list[Session], emitted: int, clock: int) -> list[LogicOutput]:
        return super().close(sessions, emitted, clock - self.windows.gap_ms)


class ClosesTwice(SessionLogic):
    """A closed session is emitted again at the next closing (bug museum: a second final result)."""

    def close(self, sessions: list[Session], emitted: int, clock: int) -> list[LogicOutput]:
        return super().close(sessions, emitted - 10 * self.windows.gap_ms, clock)


NeverDue = returning(
    SessionLogic,
    "No timer is set, so a closed session waits for the next row of its key",
    due=lambda found: None,
)

_CLOSING = (LateOneBatchLater, ClosesTwice, NeverDue, ClosingsLostAtRestart)
MUTANTS = mutants_of("session_windows", SessionLogic, "update", logics_in(globals(), SessionLogic), {"close": _CLOSING})
