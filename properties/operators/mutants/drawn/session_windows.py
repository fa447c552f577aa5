"""Mutants of session windows that need drawn definitions, clocks, keys and values."""

from __future__ import annotations

from typing import Any

from .....spark_impl.runtime.logic import LogicOutput
from .....spark_impl.session_windows import Session, SessionLogic
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, redeclaring, returning
from . import aggregates
from .common import (
    DroppingEmptyKeys,
    MislabellingTombstones,
    MistakingCauses,
    is_falsy,
    lower_case,
    mistaking_keys,
)

MaxFromZero = aggregates.max_from_zero.in_logic(SessionLogic)
SumThroughFloat = aggregates.sum_through_float.in_logic(SessionLogic)
SumNotBelowZero = aggregates.sum_not_below_zero.in_logic(SessionLogic)
ComparedInLowerCase = aggregates.compared_in_lower_case.in_logic(SessionLogic)
EmptyTextsNotListed = aggregates.empty_texts_not_listed.in_logic(SessionLogic)
EqualsListedOnce = aggregates.equals_listed_once.in_logic(SessionLogic)
KeysInLowerCase = mistaking_keys(SessionLogic, "Keys that differ only in case share their sessions", lower_case)
EmptyKeyDropped = mixed(SessionLogic, DroppingEmptyKeys)
CauseOfRowBefore = mixed(SessionLogic, MistakingCauses)
TombstonesAreUpdates = mixed(SessionLogic, MislabellingTombstones, "A merged session's tombstone is labelled an update")
GraceUpToGap = redeclaring(
    SessionLogic,
    "A grace larger than the gap is cut to the gap",
    lambda windows: {"grace_ms": min(windows.grace_ms, windows.gap_ms)},
)
OpenWhileStored = redeclaring(
    SessionLogic,
    "A session that is stored longer than its grace accepts rows during this time, with emit update",
    lambda windows: {
        "grace_ms": windows.retention_ms - windows.gap_ms if windows.emit == "update" else windows.grace_ms
    },
)
OwnLatenessOfUpdatesOnly = redeclaring(
    SessionLogic,
    "With late own and emit close, lateness is tested on the whole session",
    lambda windows: {"late": "merged" if windows.emit == "close" else windows.late},
)


class GapOfOneExclusive(SessionLogic):
    """With a gap of 1 ms, rows 1 ms apart don't share a session."""

    def near(self, sessions: list[Session], timestamp: int, edge: int) -> list[Session]:
        found = super().near(sessions, timestamp, edge)
        return found if self.windows.gap_ms > 1 else [one for one in found if one.start <= timestamp <= one.end]


class ForgetsEarly(SessionLogic):
    """A session is forgotten 1 ms too early, at the last time when a row could merge with it."""

    def keep(self, sessions: list[Session], emitted: int, clock: int) -> list[Session]:
        edge = self.windows.expiry_edge(clock)
        return [session for session in super().keep(sessions, emitted, clock) if session.end != edge]


class ClosingAtTheEdgeLost(SessionLogic):
    """A session that ended exactly at the edge of an earlier closing is never emitted."""

    def close(self, sessions: list[Session], emitted: int, clock: int) -> list[LogicOutput]:
        edge = self.windows.close_edge(emitted)
        return [one for one in super().close(sessions, emitted, clock) if one.end != edge or not emitted]


LastClosedFirst = returning(
    SessionLogic,
    "Sessions of a key that close together are emitted in reverse order of time",
    close=lambda found: found[::-1],
)
DueOneLate = returning(
    SessionLogic,
    "The timer of a closing session is set 1 ms late",
    due=lambda found: None if found is None else found + 1,
)


class NeverDueAmongSeveral(SessionLogic):
    """No timer is set for a key with several sessions."""

    def due(self, sessions: list[Session], clock: int) -> int | None:
        return super().due(sessions, clock) if len(sessions) == 1 else None


UnpackedReversed = returning(
    SessionLogic, "Sessions are read from the state in reverse order", unpack=lambda found: found[::-1]
)


class FalsySessionsNotSaved(SessionLogic):
    """A session whose value is 0 or empty isn't saved between batches."""

    def pack(self, state: list[Session]) -> tuple[Any, ...] | None:
        return super().pack([session for session in state if not is_falsy(session.value)])


class ClosedUnderItsGap(SessionLogic):
    """A closed session is emitted with an end that includes the gap."""

    def close(self, sessions: list[Session], emitted: int, clock: int) -> list[LogicOutput]:
        gap = self.windows.gap_ms
        return [one._replace(end=(one.end or 0) + gap) for one in super().close(sessions, emitted, clock)]


class LastNeverForgotten(SessionLogic):
    """A key's last session is never forgotten."""

    def keep(self, sessions: list[Session], emitted: int, clock: int) -> list[Session]:
        return super().keep(sessions, emitted, clock) or sessions[-1:]


CauselessTombstones = returning(
    SessionLogic, "The tombstone of a merged session has no cause", tombstone=lambda found: found._replace(cause=None)
)

_CLOSING = (
    OwnLatenessOfUpdatesOnly,
    ClosingAtTheEdgeLost,
    LastClosedFirst,
    DueOneLate,
    NeverDueAmongSeveral,
    ClosedUnderItsGap,
    SumThroughFloat,
    SumNotBelowZero,
    FalsySessionsNotSaved,
)

MUTANTS_OF_DRAWN = mutants_of(
    "session_windows",
    SessionLogic,
    "update",
    logics_in(globals(), SessionLogic),
    elsewhere={"close": _CLOSING, "no grace": (MaxFromZero, ComparedInLowerCase)},
)
