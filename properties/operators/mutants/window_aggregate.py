"""Mutants of Samza's window operator on Spark."""

from __future__ import annotations

from collections.abc import Iterable

from ....reference.definitions.windows import WindowAggregate
from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput
from ....spark_impl.window_aggregate import Filled, State, WindowLogic
from ...registration.mutants import mutants_of
from .making import SharingState, logics_in, mixed, redeclaring, returning


class EndInclusive(WindowLogic):
    """A window contains a row at its end, but not a row at its start."""

    def fixed(self, state: State, row: Arrived, clock: int) -> list[Filled]:
        assert row.timestamp is not None
        return super().fixed(state, row._replace(timestamp=row.timestamp - 1), clock)


StepIgnored = redeclaring(
    WindowLogic, "Windows start one size apart, regardless of the step", lambda windows: {"step": windows.size}
)
LateDropped = redeclaring(WindowLogic, "With late update, a late row is dropped", lambda windows: {"late": "drop"})


class NothingIsLate(WindowLogic):
    """Windows past their retention accept rows (KAFKA-16123)."""

    def fixed(self, state: State, row: Arrived, clock: int) -> list[Filled]:
        return super().fixed(state, row, 0)


class LateStartsAnew(WindowLogic):
    """A complete window is forgotten, so a late row finds an empty window."""

    def over(self, window: Filled) -> int | None:
        return self.completion(window)


class LateUnderNextWindow(WindowLogic):
    """A late update is emitted under the next window."""

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
    "A window is complete one step after its end",
    completion=lambda found: found + 1,
)
EmittedTwice = returning(
    WindowLogic, "Every window is emitted twice, which no table shows", emit=lambda found: found * 2
)


class EmittedAgain(WindowLogic):
    """A complete window is emitted again whenever the clock moves, without new rows."""

    def is_due(self, window: Filled, clock: int) -> bool:
        return self.is_complete(window, clock) or super().is_due(window, clock)


class LastToArriveStamps(WindowLogic):
    """A window has the timestamp of its last arrival, instead of its largest timestamp."""

    def add(self, key: Key, window: Filled, row: Arrived, clock: int) -> None:
        super().add(key, window, row, clock)
        window.latest = row.timestamp or 0


StateNeverExpires = returning(WindowLogic, "Windows stay in the state forever", is_over=lambda found: False)
ForgetsBetweenBatches = returning(WindowLogic, "State is not saved between batches", pack=lambda found: None)
ShuffleOrder = returning(
    WindowLogic, "A batch is processed in reverse order of arrival", in_order=lambda found: found[::-1]
)
NeverDue = returning(
    WindowLogic,
    "No timer is set, so a complete window waits for the next row of its key",
    due=lambda found: None,
)


class TiesDropped(WindowLogic):
    """A row whose timestamp equals its window's largest timestamp isn't added."""

    def add(self, key: Key, window: Filled, row: Arrived, clock: int) -> None:
        if not window.rows or row.timestamp != window.latest:
            super().add(key, window, row, clock)


StateOfAnotherKey = mixed(WindowLogic, SharingState)


class GapExclusive(WindowLogic):
    """A row exactly one gap away from a session doesn't join the session."""

    def near(self, state: State, timestamp: int, edge: int) -> list[Filled]:
        gap = self.windows.size
        found = super().near(state, timestamp, edge)
        return [one for one in found if max(one.start - timestamp, timestamp - one.end) < gap]


BridgesNothing = returning(
    WindowLogic, "A row between two sessions joins only the first session", near=lambda found: found[:1]
)


class LateAlone(WindowLogic):
    """A row is late by its own timestamp, even if its session is still open."""

    def merged(self, key: Key, state: State, row: Arrived, clock: int) -> list[Filled]:
        late = row.timestamp is not None and row.timestamp < self.edge(clock)
        return [] if late else super().merged(key, state, row, clock)


class GapForgotten(WindowLogic):
    """A session accepts no rows after its end, despite the gap (KAFKA-12718)."""

    def edge(self, clock: int) -> int:
        return super().edge(clock) + self.windows.size


class TombstonesMissing(WindowLogic):
    """A session that has grown doesn't retract its earlier output."""

    def gone(self, window: Filled) -> Iterable[tuple[int, int]]:
        return []


class TombstonesLast(WindowLogic):
    """The earlier output of a session is retracted only after its new output."""

    def emit(self, window: Filled) -> list[LogicOutput]:
        *gone, update = super().emit(window)
        return [update, *gone]


class OtherStartStays(WindowLogic):
    """The earlier output of a session is retracted only if it has the session's start."""

    def gone(self, window: Filled) -> Iterable[tuple[int, int]]:
        return [shown for shown in super().gone(window) if shown[0] == window.start]


class EarlyOneTooLate(WindowLogic):
    """A window is emitted early one row later than its policy requires."""

    def is_due(self, window: Filled, clock: int) -> bool:
        enough = window.not_emitted > _every(self.windows) or self.is_complete(window, clock)
        return super().is_due(window, clock) and enough


class EarlyCountsTheEmitted(WindowLogic):
    """The early-emission policy also counts rows that were already emitted."""

    def is_due(self, window: Filled, clock: int) -> bool:
        early = window.not_emitted > 0 and window.rows >= _every(self.windows) > 0
        return early or super().is_due(window, clock)


def _every(windows: WindowAggregate) -> int:
    """Return the number of tuples after which a window is emitted early; return 0 for a policy by time."""
    return windows.early.every_tuples or 0 if windows.early else 0


class MergeForgetsTheNotEmitted(WindowLogic):
    """A session that merges other sessions doesn't count their unemitted rows."""

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
