"""Mutants of session windows that show on drawn definitions, clocks, keys and values."""

from __future__ import annotations

from typing import Any

from .....reference.definitions.windows import SessionWindows
from .....spark_impl.runtime.logic import Arrived, Emitted
from .....spark_impl.session_windows import Session, SessionLogic
from ....registration.mutants import logics_in, mutants_of, redeclared
from .aggregates import (
    Misaggregating,
    compared_in_lower_case,
    empty_texts_not_listed,
    equals_listed_once,
    max_from_zero,
    sum_not_below_zero,
    sum_through_float,
)
from .common import (
    DroppingEmptyKeys,
    MislabellingTombstones,
    MistakingCauses,
    MistakingKeys,
    is_falsy,
    lower_case,
)


class MaxFromZero(Misaggregating, SessionLogic):
    """The maximum of negative numbers is 0."""

    bug = staticmethod(max_from_zero)


class SumThroughFloat(Misaggregating, SessionLogic):
    """A sum of whole numbers isn't exact beyond 2^53."""

    bug = staticmethod(sum_through_float)


class SumNotBelowZero(Misaggregating, SessionLogic):
    """A sum is 0 where it would be negative."""

    bug = staticmethod(sum_not_below_zero)


class ComparedInLowerCase(Misaggregating, SessionLogic):
    """Texts are compared without regard to case."""

    bug = staticmethod(compared_in_lower_case)


class EmptyTextsNotListed(Misaggregating, SessionLogic):
    """A list leaves empty texts out."""

    bug = staticmethod(empty_texts_not_listed)


class EqualsListedOnce(Misaggregating, SessionLogic):
    """A list leaves out true where it has 1 already."""

    bug = staticmethod(equals_listed_once)


class KeysInLowerCase(MistakingKeys, SessionLogic):
    """Keys that differ in case alone share their sessions."""

    bug = staticmethod(lower_case)


class EmptyKeyDropped(DroppingEmptyKeys, SessionLogic):
    """The empty key is taken for null."""


class CauseOfRowBefore(MistakingCauses, SessionLogic):
    """A change names the row before as its cause."""


class TombstonesAreUpdates(MislabellingTombstones, SessionLogic):
    """A merged session's tombstone is labelled an update."""


class GraceUpToGap(SessionLogic):
    """A grace larger than the gap is taken for the gap."""

    def __init__(self, windows: SessionWindows) -> None:
        super().__init__(redeclared(windows, grace_ms=min(windows.grace_ms, windows.gap_ms)))


class OpenWhileStored(SessionLogic):
    """A session that is stored longer than its grace accepts rows all the time, if changes are emitted at once."""

    def __init__(self, windows: SessionWindows) -> None:
        grace_ms = windows.retention_ms - windows.gap_ms if windows.emit == "update" else windows.grace_ms
        super().__init__(redeclared(windows, grace_ms=grace_ms))


class OwnLatenessOfUpdatesOnly(SessionLogic):
    """Rows that are to be late by themselves are late by their session where only closed sessions are emitted."""

    def __init__(self, windows: SessionWindows) -> None:
        super().__init__(redeclared(windows, late="merged" if windows.emit == "close" else windows.late))


class GapOfOneExclusive(SessionLogic):
    """With a gap of 1 ms, rows 1 ms apart don't share a session."""

    def near(self, sessions: list[Session], timestamp: int, edge: int) -> list[Session]:
        found = super().near(sessions, timestamp, edge)
        return found if self.windows.gap_ms > 1 else [one for one in found if one.start <= timestamp <= one.end]


class ForgetsEarly(SessionLogic):
    """A session is forgotten 1 ms too early, just when it can be merged for the last time."""

    def keep(self, sessions: list[Session], emitted: int, clock: int) -> list[Session]:
        edge = self.windows.expiry_edge(clock)
        return [session for session in super().keep(sessions, emitted, clock) if session.end != edge]


class ClosingAtTheEdgeLost(SessionLogic):
    """A session that ended just at the edge of an earlier closing is never emitted."""

    def close(self, sessions: list[Session], emitted: int, clock: int) -> list[Emitted]:
        edge = self.windows.close_edge(emitted)
        return [one for one in super().close(sessions, emitted, clock) if one.end != edge or not emitted]


class LastClosedFirst(SessionLogic):
    """Sessions of a key that close together are emitted latest first."""

    def close(self, sessions: list[Session], emitted: int, clock: int) -> list[Emitted]:
        return super().close(sessions, emitted, clock)[::-1]


class DueOneLate(SessionLogic):
    """The timer of a closing session is set 1 ms late."""

    def due(self, sessions: list[Session], clock: int) -> int | None:
        time = super().due(sessions, clock)
        return None if time is None else time + 1


class NeverDueAmongSeveral(SessionLogic):
    """No timer is set for a key with several sessions."""

    def due(self, sessions: list[Session], clock: int) -> int | None:
        return super().due(sessions, clock) if len(sessions) == 1 else None


class UnpackedReversed(SessionLogic):
    """Sessions come back from the state in reverse order."""

    def unpack(self, fields: tuple[Any, ...]) -> list[Session]:
        return super().unpack(fields)[::-1]


class FalsySessionsNotSaved(SessionLogic):
    """A session whose value is 0 or empty isn't saved from one batch to the next."""

    def pack(self, state: list[Session]) -> tuple[Any, ...] | None:
        return super().pack([session for session in state if not is_falsy(session.value)])


class ClosedUnderItsGap(SessionLogic):
    """A closed session is emitted with an end that includes the gap."""

    def close(self, sessions: list[Session], emitted: int, clock: int) -> list[Emitted]:
        gap = self.windows.gap_ms
        return [one._replace(end=(one.end or 0) + gap) for one in super().close(sessions, emitted, clock)]


class LastNeverForgotten(SessionLogic):
    """A key's last session is never forgotten."""

    def keep(self, sessions: list[Session], emitted: int, clock: int) -> list[Session]:
        return super().keep(sessions, emitted, clock) or sessions[-1:]


class CauselessTombstones(SessionLogic):
    """The tombstone of a merged session has no cause."""

    def tombstone(self, session: Session, row: Arrived) -> Emitted:
        return super().tombstone(session, row)._replace(cause=None)


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
    logics_in(globals()),
    elsewhere={"close": _CLOSING, "no grace": (MaxFromZero, ComparedInLowerCase)},
)
