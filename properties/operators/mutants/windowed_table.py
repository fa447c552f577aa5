"""Mutants of windowed tables on Spark."""

from __future__ import annotations

from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput, joined
from ....spark_impl.windowed_table import SIDES, WindowedLogic, WindowedState
from ...registration.mutants import mutants_of
from .making import SharingState, logics_in, mixed, redeclaring, returning


class EndInclusive(WindowedLogic):
    """A window contains a row at its end, but not a row at its start."""

    def open(self, timestamp: int, edge: int) -> list[int]:
        return super().open(timestamp - 1, edge)


class StepIgnored(WindowedLogic):
    """Windows start one size apart, regardless of the step."""

    def open(self, timestamp: int, edge: int) -> list[int]:
        return [start for start in super().open(timestamp, edge) if start % self.table.size_ms == 0]


class GraceForgotten(WindowedLogic):
    """A window accepts no rows after its end, despite the grace."""

    def open(self, timestamp: int, edge: int) -> list[int]:
        return super().open(timestamp, edge + self.table.grace_ms)


class OpenAtTheEdge(WindowedLogic):
    """A window whose grace has just ended still accepts rows."""

    def open(self, timestamp: int, edge: int) -> list[int]:
        return super().open(timestamp, edge - 1)


class NothingIsLate(WindowedLogic):
    """Closed windows accept rows (KAFKA-16123)."""

    def open(self, timestamp: int, edge: int) -> list[int]:
        return super().open(timestamp, 0)


class LateForAllWindows(WindowedLogic):
    """A row is dropped as soon as one of its windows is closed."""

    def open(self, timestamp: int, edge: int) -> list[int]:
        starts = super().open(timestamp, edge)
        return starts if starts == self.table.starts(timestamp) else []


class ClosesWithoutGrace(WindowedLogic):
    """A window is emitted as final at its end, despite the grace (KAFKA-8289)."""

    def close(self, state: WindowedState, emitted: int, clock: int) -> list[LogicOutput]:
        return super().close(state, emitted + self.table.grace_ms, clock + self.table.grace_ms)


class ClosesOneLate(WindowedLogic):
    """A window closes one step after its grace."""

    def close(self, state: WindowedState, emitted: int, clock: int) -> list[LogicOutput]:
        return super().close(state, emitted - 1, clock - 1)

    def keep(self, state: WindowedState, emitted: int, clock: int) -> WindowedState:
        return super().keep(state, emitted - 1, clock - 1)


FinalEmittedTwice = returning(
    WindowedLogic, "A window that closes is emitted twice, which no table shows", close=lambda found: found * 2
)


class UpdatesEmittedToo(WindowedLogic):
    """Every change of a window is emitted, although only its final value is declared."""

    def aggregate(self, key: Key, state: WindowedState, row: Arrived, edge: int) -> list[LogicOutput]:
        emitted = super().aggregate(key, state, row, edge)
        if emitted or self.table.with_ is not None:
            # Emit no window alone in a join: a value that isn't a pair would make all histories of the query fail.
            return emitted
        starts = self.open(row.timestamp or 0, edge)
        return [self.change(start, *state.sides[row.side][start]) for start in starts]


class LastToArriveStamps(WindowedLogic):
    """A window has the timestamp of its last arrival, instead of its largest timestamp."""

    def aggregate(self, key: Key, state: WindowedState, row: Arrived, edge: int) -> list[LogicOutput]:
        emitted, windows, at = super().aggregate(key, state, row, edge), state.sides[row.side], row.timestamp or 0
        windows.update({start: windows[start]._replace(timestamp=at) for start in self.open(at, edge)})
        return emitted


class StateNeverExpires(WindowedLogic):
    """Windows stay in the state forever."""

    def keep(self, state: WindowedState, emitted: int, clock: int) -> WindowedState:
        return state


ForgetsBetweenBatches = returning(WindowedLogic, "WindowedState is not saved between batches", pack=lambda found: None)
NeverDue = returning(
    WindowedLogic,
    "No timer is set, so a closed window waits for the next row of its key",
    due=lambda found: None,
)


class TiesDropped(WindowedLogic):
    """A row whose timestamp equals its window's largest timestamp isn't added."""

    def aggregate(self, key: Key, state: WindowedState, row: Arrived, edge: int) -> list[LogicOutput]:
        windows = state.sides[row.side]
        tied = {start: at for start, at in windows.items() if at.timestamp == row.timestamp}
        emitted = super().aggregate(key, state, row, edge)
        windows.update(tied)
        return emitted


StateOfAnotherKey = mixed(WindowedLogic, SharingState)
ShiftWrongSign = redeclaring(
    WindowedLogic,
    "A window joins the window that starts earlier by the shift, instead of later",
    lambda table: {"shift_ms": -table.shift_ms},
)
ShiftForgotten = redeclaring(
    WindowedLogic,
    "A window joins the window with the same start, whatever the shift",
    lambda table: {"shift_ms": 0},
)


class RightEmittedUnderItsOwnWindow(WindowedLogic):
    """A change of the right table is emitted with the right window, instead of its partner's window."""

    def emit_pair(self, state: WindowedState, side: str, start: int, edge: int) -> list[LogicOutput]:
        shift = 0 if side == SIDES[0] else self.table.shift_ms
        return [
            emitted._replace(start=start + shift, end=start + shift + self.table.size_ms)
            for emitted in super().emit_pair(state, side, start, edge)
        ]


SidesSwapped = returning(
    WindowedLogic,
    "The joined value contains the right side first",
    emit_pair=lambda found: [
        emitted._replace(value=joined(emitted.value["right"], emitted.value["left"])) for emitted in found
    ],
)


class LeftDrivesAlone(WindowedLogic):
    """A change of the right table isn't emitted."""

    def emit_pair(self, state: WindowedState, side: str, start: int, edge: int) -> list[LogicOutput]:
        return super().emit_pair(state, side, start, edge) if side == SIDES[0] else []


OuterMissesTheRight = redeclaring(
    WindowedLogic, "An outer join doesn't emit windows that the left table lacks", lambda table: {"join": "left"}
)


class ChangedSideStamps(WindowedLogic):
    """A pair has only the timestamp of the changed side."""

    def emit_pair(self, state: WindowedState, side: str, start: int, edge: int) -> list[LogicOutput]:
        at = start if side == SIDES[0] else start + self.table.shift_ms
        own = state.sides[side][at].timestamp
        return [emitted._replace(timestamp=own) for emitted in super().emit_pair(state, side, start, edge)]


class PartnerForgottenEarly(WindowedLogic):
    """A closed window is forgotten before new rows are processed, although a shifted partner is still open
    (SPARK-26154).
    """

    def take(self, key: Key, state: WindowedState, row: Arrived, clock: int) -> list[LogicOutput]:
        return super().take(key, self.keep(state, clock, clock), row, clock)

    def over(self, side: str, start: int) -> int | None:
        return start + self.table.size_ms + self.table.grace_ms


ShuffleOrder = returning(
    WindowedLogic, "A batch is processed in reverse order of arrival", in_order=lambda found: found[::-1]
)

_OF_PAIRS = (
    ShiftWrongSign,
    ShiftForgotten,
    RightEmittedUnderItsOwnWindow,
    SidesSwapped,
    LeftDrivesAlone,
    OuterMissesTheRight,
    ChangedSideStamps,
    PartnerForgottenEarly,
    ShuffleOrder,
)

MUTANTS = mutants_of(
    "windowed_table",
    WindowedLogic,
    "close",
    logics_in(globals(), WindowedLogic),
    elsewhere={"outer, shifted": _OF_PAIRS},
)
