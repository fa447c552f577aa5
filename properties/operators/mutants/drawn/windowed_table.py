"""Mutants of windowed tables that show on drawn definitions, clocks, keys and values."""

from __future__ import annotations

from typing import Any

from .....reference.definitions.windows import WindowedTable
from .....spark_impl.runtime.logic import Arrived, Emitted
from .....spark_impl.windowed_table import SIDES, State, Windowed, WindowedLogic
from ....registration.mutants import logics_in, mutants_of, redeclared
from .aggregates import (
    Misaggregating,
    compared_in_lower_case,
    max_from_zero,
    max_of_sizes,
    negatives_not_added,
    nulls_not_listed,
    sum_through_float,
)
from .common import (
    DroppingEmptyKeys,
    MislabellingTombstones,
    MistakingCauses,
    MistakingKeys,
    after_bug,
    falsy_to_null,
    is_falsy,
    lower_case,
    same,
)


class MaxFromZero(Misaggregating, WindowedLogic):
    """The maximum of negative numbers is 0."""

    bug = staticmethod(max_from_zero)


class MaxOfSizes(Misaggregating, WindowedLogic):
    """A maximum compares numbers without their signs."""

    bug = staticmethod(max_of_sizes)


class SumThroughFloat(Misaggregating, WindowedLogic):
    """A sum of whole numbers isn't exact beyond 2^53."""

    bug = staticmethod(sum_through_float)


class NegativesNotAdded(Misaggregating, WindowedLogic):
    """A sum leaves negative numbers out."""

    bug = staticmethod(negatives_not_added)


class NullsNotListed(Misaggregating, WindowedLogic):
    """A list leaves nulls out."""

    bug = staticmethod(nulls_not_listed)


class ComparedInLowerCase(Misaggregating, WindowedLogic):
    """Texts are compared without regard to case."""

    bug = staticmethod(compared_in_lower_case)


class KeysInLowerCase(MistakingKeys, WindowedLogic):
    """Keys that differ in case alone share their windows."""

    bug = staticmethod(lower_case)


class EmptyKeyDropped(DroppingEmptyKeys, WindowedLogic):
    """The empty key is taken for null."""


class CauseOfRowBefore(MistakingCauses, WindowedLogic):
    """A change names the row before as its cause."""


class TombstonesAreUpdates(MislabellingTombstones, WindowedLogic):
    """A tombstone is labelled an update."""


class ShiftUpToStep(WindowedLogic):
    """A shift of more than a step is taken for one step."""

    def __init__(self, table: WindowedTable) -> None:
        super().__init__(redeclared(table, shift_ms=max(-table.step_ms, min(table.shift_ms, table.step_ms))))


class OuterNotShiftedBack(WindowedLogic):
    """An outer join takes a negative shift for none."""

    def __init__(self, table: WindowedTable) -> None:
        forgotten = table.join == "outer" and table.shift_ms < 0
        super().__init__(redeclared(table, shift_ms=0 if forgotten else table.shift_ms))


class GraceUpToSize(WindowedLogic):
    """A grace larger than the size is taken for the size."""

    def __init__(self, table: WindowedTable) -> None:
        super().__init__(redeclared(table, grace_ms=min(table.grace_ms, table.size_ms)))


class EndOfOneMillisecond(WindowedLogic):
    """A window of 1 ms is emitted with its start as its end."""

    def change(self, start: int | None, value: Any, timestamp: int) -> Emitted:
        change = super().change(start, value, timestamp)
        return change._replace(end=start) if self.table.size_ms == 1 else change


class FirstOfManyWindowsMissed(WindowedLogic):
    """With a step of less than a third of the size, a row misses the first of its windows."""

    def open(self, timestamp: int, edge: int) -> list[int]:
        starts = super().open(timestamp, edge)
        return starts[1:] if len(starts) > 3 else starts


class FalsyRowMissing(WindowedLogic):
    """A row of the table that is false, 0 or empty is joined as null."""

    def take_right(self, state: State, row: Arrived, edge: int) -> list[Emitted]:
        if row.value is None or self.table.with_ == "windowed_table":
            return super().take_right(state, row, edge)
        value = {**row.value, "value": after_bug(row.value["value"], falsy_to_null)}
        return super().take_right(state, row._replace(value=value), edge)


class EqualRowStays(WindowedLogic):
    """A row of the table that changes to what Python takes for equal, such as from 1 to true, stays."""

    def take_right(self, state: State, row: Arrived, edge: int) -> list[Emitted]:
        old = state.row
        if old is not None and row.value is not None and same(old.value, row.value["value"]):
            row = row._replace(value={**row.value, "value": old.value})
        return super().take_right(state, row, edge)


class WindowAtZeroNotFound(WindowedLogic):
    """The window that starts at 0 can't be looked up."""

    def emitted(self, state: State, side: str, start: int | None, edge: int) -> Windowed | None:
        return None if start == 0 and self.table.looked_up else super().emitted(state, side, start, edge)


class ForgetsOneEarly(WindowedLogic):
    """A window is forgotten 1 ms before it is closed."""

    def keep(self, state: State, emitted: int, clock: int) -> State:
        return super().keep(state, emitted + 1 if emitted else 0, clock + 1 if clock else 0)


class DueOneLate(WindowedLogic):
    """The timer of a window is set 1 ms late."""

    def due(self, state: State, clock: int) -> int | None:
        time = super().due(state, clock)
        return None if time is None else time + 1


class NeverDueAmongSeveral(WindowedLogic):
    """No timer is set for a key with several windows on a side."""

    def due(self, state: State, clock: int) -> int | None:
        return super().due(state, clock) if all(len(state.sides[side]) < 2 for side in SIDES) else None


class LastClosedFirst(WindowedLogic):
    """Windows of a key that close together are emitted latest first."""

    def close(self, state: State, emitted: int, clock: int) -> list[Emitted]:
        return super().close(state, emitted, clock)[::-1]


class FalsyWindowsNotSaved(WindowedLogic):
    """A window whose aggregate is 0 or empty isn't saved from one batch to the next."""

    def pack(self, state: State) -> tuple[Any, ...] | None:
        sides = {
            side: {start: at for start, at in windows.items() if not is_falsy(at.value)}
            for side, windows in state.sides.items()
        }
        return super().pack(State(sides, state.row))


class RowGoesWithWindows(WindowedLogic):
    """The row of the table isn't saved from one batch to the next while its key has no window."""

    def pack(self, state: State) -> tuple[Any, ...] | None:
        return super().pack(state) if any(state.sides.values()) else None


class EmptyStateStored(WindowedLogic):
    """A key without windows and without a row stays in the state."""

    def pack(self, state: State) -> tuple[Any, ...] | None:
        return super().pack(state) or ([], [], None)


class FinalHasACause(WindowedLogic):
    """A window that closes names its own end as its cause."""

    def close(self, state: State, emitted: int, clock: int) -> list[Emitted]:
        return [change._replace(cause=change.end) for change in super().close(state, emitted, clock)]


MUTANTS_OF_DRAWN = mutants_of(
    "windowed_table",
    WindowedLogic,
    "close",
    logics_in(globals()),
    elsewhere={
        "tumbling": (SumThroughFloat, NegativesNotAdded, FalsyWindowsNotSaved),
        "hopping": (NullsNotListed, FirstOfManyWindowsMissed),
        "looked up by a table": (TombstonesAreUpdates, WindowAtZeroNotFound),
        "with table": (FalsyRowMissing, EqualRowStays, RowGoesWithWindows, EmptyStateStored),
        "outer, shifted": (ShiftUpToStep, OuterNotShiftedBack),
    },
)
