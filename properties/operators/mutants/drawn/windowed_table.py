"""Mutants of windowed tables that need drawn definitions, clocks, keys and values."""

from __future__ import annotations

from typing import Any

from .....spark_impl.runtime.logic import Arrived, LogicOutput
from .....spark_impl.windowed_table import SIDES, Windowed, WindowedLogic, WindowedState
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, redeclaring, returning
from . import aggregates
from .common import (
    DroppingEmptyKeys,
    MislabellingTombstones,
    MistakingCauses,
    after_bug,
    falsy_to_null,
    is_falsy,
    lower_case,
    mistaking_keys,
    same,
)

MaxFromZero = aggregates.max_from_zero.in_logic(WindowedLogic)
MaxOfSizes = aggregates.max_of_sizes.in_logic(WindowedLogic)
SumThroughFloat = aggregates.sum_through_float.in_logic(WindowedLogic)
NegativesNotAdded = aggregates.negatives_not_added.in_logic(WindowedLogic)
NullsNotListed = aggregates.nulls_not_listed.in_logic(WindowedLogic)
ComparedInLowerCase = aggregates.compared_in_lower_case.in_logic(WindowedLogic)
KeysInLowerCase = mistaking_keys(WindowedLogic, "Keys that differ only in case share their windows", lower_case)
EmptyKeyDropped = mixed(WindowedLogic, DroppingEmptyKeys)
CauseOfRowBefore = mixed(WindowedLogic, MistakingCauses)
TombstonesAreUpdates = mixed(WindowedLogic, MislabellingTombstones)
ShiftUpToStep = redeclaring(
    WindowedLogic,
    "A shift of more than a step is cut to one step",
    lambda table: {"shift_ms": max(-table.step_ms, min(table.shift_ms, table.step_ms))},
)
OuterNotShiftedBack = redeclaring(
    WindowedLogic,
    "An outer join ignores a negative shift",
    lambda table: {"shift_ms": 0 if table.join == "outer" and table.shift_ms < 0 else table.shift_ms},
)
GraceUpToSize = redeclaring(
    WindowedLogic,
    "A grace larger than the size is cut to the size",
    lambda table: {"grace_ms": min(table.grace_ms, table.size_ms)},
)


class EndOfOneMillisecond(WindowedLogic):
    """A window of 1 ms is emitted with its start as its end."""

    def change(self, start: int | None, value: Any, timestamp: int) -> LogicOutput:
        change = super().change(start, value, timestamp)
        return change._replace(end=start) if self.table.size_ms == 1 else change


FirstOfManyWindowsMissed = returning(
    WindowedLogic,
    "With a step of less than a third of the size, a row misses the first of its windows",
    open=lambda found: found[1:] if len(found) > 3 else found,
)


class FalsyRowMissing(WindowedLogic):
    """A table row that is false, 0 or empty is joined as null."""

    def take_right(self, state: WindowedState, row: Arrived, edge: int) -> list[LogicOutput]:
        if row.value is None or self.table.with_ == "windowed_table":
            return super().take_right(state, row, edge)
        value = {**row.value, "value": after_bug(row.value["value"], falsy_to_null)}
        return super().take_right(state, row._replace(value=value), edge)


class EqualRowStays(WindowedLogic):
    """A table row isn't changed to a value that is equal in Python, for example from 1 to true."""

    def take_right(self, state: WindowedState, row: Arrived, edge: int) -> list[LogicOutput]:
        old = state.row
        if old is not None and row.value is not None and same(old.value, row.value["value"]):
            row = row._replace(value={**row.value, "value": old.value})
        return super().take_right(state, row, edge)


class WindowAtZeroNotFound(WindowedLogic):
    """The window that starts at 0 can't be looked up."""

    def emitted(self, state: WindowedState, side: str, start: int | None, edge: int) -> Windowed | None:
        return None if start == 0 and self.table.looked_up else super().emitted(state, side, start, edge)


class ForgetsOneEarly(WindowedLogic):
    """A window is forgotten 1 ms before it is closed."""

    def keep(self, state: WindowedState, emitted: int, clock: int) -> WindowedState:
        return super().keep(state, emitted + 1 if emitted else 0, clock + 1 if clock else 0)


DueOneLate = returning(
    WindowedLogic, "The timer of a window is set 1 ms late", due=lambda found: None if found is None else found + 1
)


class NeverDueAmongSeveral(WindowedLogic):
    """No timer is set for a key with several windows on one side of the join."""

    def due(self, state: WindowedState, clock: int) -> int | None:
        return super().due(state, clock) if all(len(state.sides[side]) < 2 for side in SIDES) else None


LastClosedFirst = returning(
    WindowedLogic,
    "Windows of a key that close together are emitted in reverse order of time",
    close=lambda found: found[::-1],
)


class FalsyWindowsNotSaved(WindowedLogic):
    """A window whose aggregate is 0 or empty isn't saved between batches."""

    def pack(self, state: WindowedState) -> tuple[Any, ...] | None:
        sides = {
            side: {start: at for start, at in windows.items() if not is_falsy(at.value)}
            for side, windows in state.sides.items()
        }
        return super().pack(WindowedState(sides, state.row))


class RowGoesWithWindows(WindowedLogic):
    """The table's row isn't saved between batches while its key has no window."""

    def pack(self, state: WindowedState) -> tuple[Any, ...] | None:
        return super().pack(state) if any(state.sides.values()) else None


EmptyStateStored = returning(
    WindowedLogic,
    "A key without windows and without a row stays in the state",
    pack=lambda found: found or ([], [], None),
)
FinalHasACause = returning(
    WindowedLogic,
    "A closed window names its own end as the cause of its output",
    close=lambda found: [change._replace(cause=change.end) for change in found],
)

MUTANTS_OF_DRAWN = mutants_of(
    "windowed_table",
    WindowedLogic,
    "close",
    logics_in(globals(), WindowedLogic),
    elsewhere={
        "tumbling": (SumThroughFloat, NegativesNotAdded, FalsyWindowsNotSaved),
        "hopping": (NullsNotListed, FirstOfManyWindowsMissed),
        "looked up by a table": (TombstonesAreUpdates, WindowAtZeroNotFound),
        "with table": (FalsyRowMissing, EqualRowStays, RowGoesWithWindows, EmptyStateStored),
        "outer, shifted": (ShiftUpToStep, OuterNotShiftedBack),
    },
)
