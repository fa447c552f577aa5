"""Mutants of Samza's window operator that need drawn definitions, clocks, keys and values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .....spark_impl.runtime.logic import Arrived, Key, LogicOutput, dropped
from .....spark_impl.window_aggregate import Filled, State, WindowLogic
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, redeclaring, returning
from . import aggregates
from .common import (
    DroppingEmptyKeys,
    MislabellingTombstones,
    MistakingCauses,
    is_falsy,
    mistaking_keys,
    stripped,
)

AverageInWholeNumbers = aggregates.average_in_whole_numbers.in_logic(WindowLogic)
MaxFromZero = aggregates.max_from_zero.in_logic(WindowLogic)
SumOverflows = aggregates.sum_of_32_bit.in_logic(WindowLogic)
NegativesNotAdded = aggregates.negatives_not_added.in_logic(WindowLogic)
ComparedAsText = aggregates.compared_as_text.in_logic(WindowLogic)
ListCapped = aggregates.list_capped.in_logic(WindowLogic)
KeysStripped = mistaking_keys(WindowLogic, "Keys that differ in the spaces around them share their windows", stripped)
EmptyKeyDropped = mixed(WindowLogic, DroppingEmptyKeys)
CauseOfRowBefore = mixed(WindowLogic, MistakingCauses)
TombstonesAreUpdates = mixed(
    WindowLogic, MislabellingTombstones, "The tombstone of a session that has grown is labelled an update"
)
TupleStepOfOneIgnored = redeclaring(
    WindowLogic,
    "A step of one tuple is ignored",
    lambda windows: {"step": windows.size if windows.unit == "tuple" and windows.step == 1 else windows.step},
)
FirstOfManyWindowsMissed = returning(
    WindowLogic,
    "With a step of less than a third of the size, a row misses the first of its windows",
    fixed=lambda found: found[1:] if len(found) > 3 else found,
)


class OneTupleNeverComplete(WindowLogic):
    """A window of one tuple is never complete."""

    def is_complete(self, window: Filled, clock: int) -> bool:
        return super().is_complete(window, clock) and (self.windows.unit != "tuple" or window.rows > 1)


EveryTupleIgnored = redeclaring(
    WindowLogic,
    "An early emission with every tuple is ignored",
    lambda windows: {"early": None if windows.early and windows.early.every_tuples == 1 else windows.early},
)


class EarlyOnTheTick(WindowLogic):
    """A row that arrives exactly at the time of an early emission is emitted at once."""

    def tick(self, window: Filled) -> int:
        early = self.windows.early
        assert early is not None
        assert early.every_ms is not None
        return -(-window.since // early.every_ms) * early.every_ms


NoTicksInSessions = redeclaring(
    WindowLogic,
    "A session is never emitted early by time",
    lambda windows: {
        "early": None if windows.type == "session" and windows.early and windows.early.every_ms else windows.early
    },
)
EarlyByTimeDropsLate = redeclaring(
    WindowLogic,
    "With late update and early emission by time, late rows are dropped",
    lambda windows: {"late": "drop" if windows.early and windows.early.every_ms else windows.late},
)
RetentionAtLeastTheSize = redeclaring(
    WindowLogic,
    "A retention shorter than the window's size is raised to the size",
    lambda windows: {"retention_ms": max(windows.retention_ms, windows.size) if windows.retention_ms else 0},
)


class ForgetsOneEarly(WindowLogic):
    """A window is forgotten 1 ms before its retention is over."""

    def keep(self, state: State, emitted: int, clock: int) -> State:
        return super().keep(state, emitted, clock + 1)


class FalsyMessagesDropped(WindowLogic):
    """Full storage treats false, 0 and empty text as null, and drops them."""

    def take(self, key: Key, state: State, row: Arrived, clock: int) -> list[LogicOutput]:
        if self.windows.storage == "full" and is_falsy(row.value):
            return [dropped(row, "null value")]
        return super().take(key, state, row, clock)


UnpackedReversed = returning(
    WindowLogic,
    "Windows are read from the state in reverse order",
    unpack=lambda found: State(found.rows, found.windows[::-1]),
)


class CountForgottenWhenEmpty(WindowLogic):
    """The number of a key's rows isn't saved if all its tuple-based windows are complete."""

    def pack(self, state: State) -> tuple[Any, ...] | None:
        return super().pack(state) if state.windows else None


class EmittedFlagsNotSaved(WindowLogic):
    """The state forgets between batches which messages of a window have been emitted."""

    def unpack(self, fields: tuple[Any, ...]) -> State:
        state = super().unpack(fields)
        for one in state.windows if self.windows.storage == "full" else []:
            one.held = [message._replace(emitted=False) for message in one.held]
        return state


class ShownAtZeroNotSaved(WindowLogic):
    """The state forgets that a session that starts at 0 has been emitted."""

    def pack(self, state: State) -> tuple[Any, ...] | None:
        return super().pack(
            State(state.rows, [replace(one, shown=one.shown if one.start else []) for one in state.windows])
        )


class LastCompleteFirst(WindowLogic):
    """Windows of a key that are complete together are emitted in reverse order of time."""

    def close(self, state: State, emitted: int, clock: int) -> list[LogicOutput]:
        return [change for one in state.windows[::-1] if self.is_due(one, clock) for change in self.emit(one)]


class NeverDueAmongSeveral(WindowLogic):
    """No timer is set for a key with several windows."""

    def due(self, state: State, clock: int) -> int | None:
        return super().due(state, clock) if len(state.windows) == 1 else None


DueOneLate = returning(
    WindowLogic, "The timer of a window is set 1 ms late", due=lambda found: None if found is None else found + 1
)


class EndOfOneMillisecond(WindowLogic):
    """A window of 1 ms is emitted with its start as its end."""

    def update(self, window: Filled, value: Any, timestamp: int) -> LogicOutput:
        emitted = super().update(window, value, timestamp)
        return emitted._replace(end=window.start) if self.windows.size == 1 else emitted


MUTANTS_OF_DRAWN = mutants_of(
    "window_aggregate",
    WindowLogic,
    "hopping, late update",
    logics_in(globals(), WindowLogic),
    elsewhere={
        "by tuple": (AverageInWholeNumbers, TupleStepOfOneIgnored, OneTupleNeverComplete, CountForgottenWhenEmpty),
        "early by time": (MaxFromZero, ComparedAsText, EarlyOnTheTick, EarlyByTimeDropsLate),
        "fixed": (SumOverflows, NegativesNotAdded),
        "session, early": (TombstonesAreUpdates, ShownAtZeroNotSaved, NoTicksInSessions),
        "early by tuples": (EveryTupleIgnored,),
        "full": (FalsyMessagesDropped, EmittedFlagsNotSaved),
    },
)
