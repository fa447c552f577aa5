"""Mutants of Samza's window operator that show on drawn definitions, clocks, keys and values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .....reference.definitions.windows import WindowAggregate
from .....spark_impl.runtime.logic import Arrived, Emitted, Key, dropped
from .....spark_impl.window_aggregate import Filled, State, WindowLogic
from ....registration.mutants import logics_in, mutants_of, redeclared
from .aggregates import (
    Misaggregating,
    average_in_whole_numbers,
    compared_as_text,
    list_capped,
    max_from_zero,
    negatives_not_added,
    sum_of_32_bit,
)
from .common import (
    DroppingEmptyKeys,
    MislabellingTombstones,
    MistakingCauses,
    MistakingKeys,
    is_falsy,
    stripped,
)


class AverageInWholeNumbers(Misaggregating, WindowLogic):
    """An average is divided without its fraction."""

    bug = staticmethod(average_in_whole_numbers)


class MaxFromZero(Misaggregating, WindowLogic):
    """The maximum of negative numbers is 0."""

    bug = staticmethod(max_from_zero)


class SumOverflows(Misaggregating, WindowLogic):
    """A sum has 32 bits, and overflows."""

    bug = staticmethod(sum_of_32_bit)


class NegativesNotAdded(Misaggregating, WindowLogic):
    """A sum leaves negative numbers out."""

    bug = staticmethod(negatives_not_added)


class ComparedAsText(Misaggregating, WindowLogic):
    """Numbers are compared as texts, so that 9 is more than 10."""

    bug = staticmethod(compared_as_text)


class ListCapped(Misaggregating, WindowLogic):
    """A list has four members at most."""

    bug = staticmethod(list_capped)


class KeysStripped(MistakingKeys, WindowLogic):
    """Keys that differ in the spaces around them share their windows."""

    bug = staticmethod(stripped)


class EmptyKeyDropped(DroppingEmptyKeys, WindowLogic):
    """The empty key is taken for null."""


class CauseOfRowBefore(MistakingCauses, WindowLogic):
    """A change names the row before as its cause."""


class TombstonesAreUpdates(MislabellingTombstones, WindowLogic):
    """The tombstone of a session that has grown is labelled an update."""


class TupleStepOfOneIgnored(WindowLogic):
    """A step of one tuple is taken for none."""

    def __init__(self, windows: WindowAggregate) -> None:
        ignored = windows.unit == "tuple" and windows.step == 1
        super().__init__(redeclared(windows, step=windows.size if ignored else windows.step))


class FirstOfManyWindowsMissed(WindowLogic):
    """With a step of less than a third of the size, a row misses the first of its windows."""

    def fixed(self, state: State, row: Arrived, clock: int) -> list[Filled]:
        taken = super().fixed(state, row, clock)
        return taken[1:] if len(taken) > 3 else taken


class OneTupleNeverComplete(WindowLogic):
    """A window of one tuple is never complete."""

    def is_complete(self, one: Filled, clock: int) -> bool:
        return super().is_complete(one, clock) and (self.windows.unit != "tuple" or one.rows > 1)


class EveryTupleIgnored(WindowLogic):
    """An early emission with every tuple is taken for none."""

    def __init__(self, windows: WindowAggregate) -> None:
        early = windows.early
        super().__init__(redeclared(windows, early=None if early and early.every_tuples == 1 else early))


class EarlyOnTheTick(WindowLogic):
    """A row that comes when the clock stands at an early emission's time is emitted at once."""

    def tick(self, one: Filled) -> int:
        early = self.windows.early
        assert early is not None
        assert early.every_ms is not None
        return -(-one.since // early.every_ms) * early.every_ms


class NoTicksInSessions(WindowLogic):
    """A session is never emitted early by time."""

    def __init__(self, windows: WindowAggregate) -> None:
        early = windows.early
        ignored = windows.type == "session" and early is not None and early.every_ms is not None
        super().__init__(redeclared(windows, early=None if ignored else early))


class EarlyByTimeDropsLate(WindowLogic):
    """Late rows are dropped where windows are emitted early by time, though they are to update."""

    def __init__(self, windows: WindowAggregate) -> None:
        early = windows.early
        ignored = early is not None and early.every_ms is not None
        super().__init__(redeclared(windows, late="drop" if ignored else windows.late))


class RetentionAtLeastTheSize(WindowLogic):
    """A retention shorter than the window's size is taken for the size."""

    def __init__(self, windows: WindowAggregate) -> None:
        retention_ms = max(windows.retention_ms, windows.size) if windows.retention_ms else 0
        super().__init__(redeclared(windows, retention_ms=retention_ms))


class ForgetsOneEarly(WindowLogic):
    """A window is forgotten 1 ms before its retention is over."""

    def keep(self, state: State, emitted: int, clock: int) -> State:
        return super().keep(state, emitted, clock + 1)


class FalsyMessagesDropped(WindowLogic):
    """Full storage takes false, 0 and empty text for null, and drops them."""

    def take(self, key: Key, state: State, row: Arrived, clock: int) -> list[Emitted]:
        if self.windows.storage == "full" and is_falsy(row.value):
            return [dropped(row, "null value")]
        return super().take(key, state, row, clock)


class UnpackedReversed(WindowLogic):
    """Windows come back from the state in reverse order."""

    def unpack(self, fields: tuple[Any, ...]) -> State:
        state = super().unpack(fields)
        return State(state.rows, state.windows[::-1])


class CountForgottenWhenEmpty(WindowLogic):
    """The number of a key's rows isn't saved where all its windows by tuple are done."""

    def pack(self, state: State) -> tuple[Any, ...] | None:
        return super().pack(state) if state.windows else None


class EmittedFlagsNotSaved(WindowLogic):
    """Of a window's messages it isn't saved which have been emitted."""

    def unpack(self, fields: tuple[Any, ...]) -> State:
        state = super().unpack(fields)
        for one in state.windows if self.windows.storage == "full" else []:
            one.held = [message._replace(emitted=False) for message in one.held]
        return state


class ShownAtZeroNotSaved(WindowLogic):
    """It isn't saved that a session that starts at 0 has been emitted."""

    def pack(self, state: State) -> tuple[Any, ...] | None:
        return super().pack(
            State(state.rows, [replace(one, shown=one.shown if one.start else []) for one in state.windows])
        )


class LastCompleteFirst(WindowLogic):
    """Windows of a key that are complete together are emitted latest first."""

    def close(self, state: State, emitted: int, clock: int) -> list[Emitted]:
        return [change for one in state.windows[::-1] if self.is_due(one, clock) for change in self.emit(one)]


class NeverDueAmongSeveral(WindowLogic):
    """No timer is set for a key with several windows."""

    def due(self, state: State, clock: int) -> int | None:
        return super().due(state, clock) if len(state.windows) == 1 else None


class DueOneLate(WindowLogic):
    """The timer of a window is set 1 ms late."""

    def due(self, state: State, clock: int) -> int | None:
        time = super().due(state, clock)
        return None if time is None else time + 1


class EndOfOneMillisecond(WindowLogic):
    """A window of 1 ms is emitted with its start as its end."""

    def update(self, one: Filled, value: Any, timestamp: int) -> Emitted:
        emitted = super().update(one, value, timestamp)
        return emitted._replace(end=one.start) if self.windows.size == 1 else emitted


MUTANTS_OF_DRAWN = mutants_of(
    "window_aggregate",
    WindowLogic,
    "hopping, late update",
    logics_in(globals()),
    elsewhere={
        "by tuple": (AverageInWholeNumbers, TupleStepOfOneIgnored, OneTupleNeverComplete, CountForgottenWhenEmpty),
        "early by time": (MaxFromZero, ComparedAsText, EarlyOnTheTick, EarlyByTimeDropsLate),
        "fixed": (SumOverflows, NegativesNotAdded),
        "session, early": (TombstonesAreUpdates, ShownAtZeroNotSaved, NoTicksInSessions),
        "early by tuples": (EveryTupleIgnored,),
        "full": (FalsyMessagesDropped, EmittedFlagsNotSaved),
    },
)
