"""Mutants of Samza's window operator on Spark."""

from __future__ import annotations

from collections.abc import Iterable

from ....reference.definitions.windows import WindowAggregate
from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput
from ....spark_impl.window_aggregate import Filled, State, WindowLogic
from ...registration.mutants import mutants_of
from .making import SharingState, logics_in, mixed, redeclaring, returning


class EndInclusive(WindowLogic):
    """A row at a window's end is in it, and a row at its start isn't."""

    def fixed(self, state: State, row: Arrived, clock: int) -> list[Filled]:
        assert row.timestamp is not None
        return super().fixed(state, row._replace(timestamp=row.timestamp - 1), clock)


StepIgnored = redeclaring(
    WindowLogic, "Windows start a size apart, whatever the step", lambda windows: {"step": windows.size}
)
LateDropped = redeclaring(
    WindowLogic, "A late row is dropped, though it is to update its windows", lambda windows: {"late": "drop"}
)


class NothingIsLate(WindowLogic):
    """A row is taken by windows that aren't kept any more (KAFKA-16123)."""

    def fixed(self, state: State, row: Arrived, clock: int) -> list[Filled]:
        return super().fixed(state, row, 0)


class LateStartsAnew(WindowLogic):
    """A window is forgotten once complete, so that a late row finds it empty."""

    def over(self, window: Filled) -> int | None:
        return self.completion(window)


class LateUnderNextWindow(WindowLogic):
    """A late update is emitted under the window that follows its own."""

    def take(self, key: Key, state: State, row: Arrived, clock: int) -> list[LogicOutput]:
        step = self.windows.step
        return [
            emitted._replace(start=emitted.start + step, end=emitted.end + step)
            if emitted.start is not None and emitted.end is not None and emitted.end <= clock
            else emitted
            for emitted in super().take(key, state, row, clock)
        ]


CompletesOneLate = returning(
    WindowLogic,
    "A window isn't complete when the clock is at its end, but a step later",
    completion=lambda found: found + 1,
)
EmittedTwice = returning(
    WindowLogic, "Every window is emitted twice, which no table shows", emit=lambda found: found * 2
)


class EmittedAgain(WindowLogic):
    """A complete window is emitted again whenever the clock moves, though nothing is new."""

    def is_due(self, window: Filled, clock: int) -> bool:
        return self.is_complete(window, clock) or super().is_due(window, clock)


class LastToArriveStamps(WindowLogic):
    """A window is stamped by its last row to arrive, not by its largest timestamp."""

    def add(self, key: Key, window: Filled, row: Arrived, clock: int) -> None:
        super().add(key, window, row, clock)
        window.latest = row.timestamp or 0


StateNeverExpires = returning(WindowLogic, "Windows stay in the state for ever", is_over=lambda found: False)
ForgetsBetweenBatches = returning(WindowLogic, "State is not saved from one batch to the next", pack=lambda found: None)
ShuffleOrder = returning(
    WindowLogic, "A batch is taken in reverse order of arrival", in_order=lambda found: found[::-1]
)
NeverDue = returning(
    WindowLogic,
    "No timer is set, so that a window that the clock has completed waits for the next row of its key",
    due=lambda found: None,
)


class TiesDropped(WindowLogic):
    """A row isn't added that has the largest timestamp of its window already."""

    def add(self, key: Key, window: Filled, row: Arrived, clock: int) -> None:
        if not window.rows or row.timestamp != window.latest:
            super().add(key, window, row, clock)


StateOfAnotherKey = mixed(WindowLogic, SharingState)


class GapExclusive(WindowLogic):
    """A row exactly a gap away from a session isn't in it."""

    def near(self, state: State, timestamp: int, edge: int) -> list[Filled]:
        gap = self.windows.size
        found = super().near(state, timestamp, edge)
        return [one for one in found if max(one.start - timestamp, timestamp - one.end) < gap]


BridgesNothing = returning(
    WindowLogic, "A row between two sessions joins the first one alone", near=lambda found: found[:1]
)


class LateAlone(WindowLogic):
    """A row is late by its own timestamp, whatever session it would join."""

    def merged(self, key: Key, state: State, row: Arrived, clock: int) -> list[Filled]:
        late = row.timestamp is not None and row.timestamp < self.edge(clock)
        return [] if late else super().merged(key, state, row, clock)


class GapForgotten(WindowLogic):
    """A session takes no rows as soon as its end is past, whatever the gap (KAFKA-12718)."""

    def edge(self, clock: int) -> int:
        return super().edge(clock) + self.windows.size


class TombstonesMissing(WindowLogic):
    """A session that has grown doesn't retract what was emitted of it before."""

    def gone(self, window: Filled) -> Iterable[tuple[int, int]]:
        return []


class TombstonesLast(WindowLogic):
    """A session's earlier rows are retracted only after it is emitted anew."""

    def emit(self, window: Filled) -> list[LogicOutput]:
        *gone, update = super().emit(window)
        return [update, *gone]


class OtherStartStays(WindowLogic):
    """A session's earlier rows are retracted only if they began where the session begins."""

    def gone(self, window: Filled) -> Iterable[tuple[int, int]]:
        return [shown for shown in super().gone(window) if shown[0] == window.start]


class EarlyOneTooLate(WindowLogic):
    """A window is emitted early only by a row more than the policy says."""

    def is_due(self, window: Filled, clock: int) -> bool:
        enough = window.not_emitted > _every(self.windows) or self.is_complete(window, clock)
        return super().is_due(window, clock) and enough


class EarlyCountsTheEmitted(WindowLogic):
    """The early-emission policy counts the rows that have been emitted too."""

    def is_due(self, window: Filled, clock: int) -> bool:
        early = window.not_emitted > 0 and window.rows >= _every(self.windows) > 0
        return early or super().is_due(window, clock)


def _every(windows: WindowAggregate) -> int:
    """Return the number of tuples at which a window is emitted early; 0 if tuples don't decide that."""
    return windows.early.every_tuples or 0 if windows.early else 0


class MergeForgetsTheNotEmitted(WindowLogic):
    """A session that merges others counts none of their not emitted rows."""

    def join(self, key: Key, session: Filled, other: Filled) -> None:
        not_emitted = session.not_emitted
        super().join(key, session, other)
        session.not_emitted = not_emitted


_OF_SESSIONS = (
    GapExclusive,
    BridgesNothing,
    LateAlone,
    GapForgotten,
    TombstonesMissing,
    TombstonesLast,
    OtherStartStays,
    EarlyOneTooLate,
    EarlyCountsTheEmitted,
    MergeForgetsTheNotEmitted,
)

MUTANTS = mutants_of(
    "window_aggregate",
    WindowLogic,
    "hopping, late update",
    logics_in(globals(), WindowLogic),
    elsewhere={"session, early": _OF_SESSIONS},
)
