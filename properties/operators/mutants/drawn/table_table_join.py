"""Mutants of the table-table join that need drawn definitions, keys and values."""

from __future__ import annotations

from typing import Any

from .....spark_impl.runtime.logic import Arrived, Key, LogicOutput
from .....spark_impl.table_table_join import StoredSide, TableTableLogic
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, returning
from .common import (
    DroppingEmptyKeys,
    MislabellingTombstones,
    MistakingCauses,
    altering,
    boolean_to_number,
    empty_text_to_null,
    false_to_null,
    is_falsy,
    mistaking_keys,
    normalised,
    not_below_zero,
    same,
    stripped,
    through_float,
    zero_to_null,
)

Rows = dict[str, StoredSide]


FalseDeletes = altering(TableTableLogic, "A row that becomes false is treated as deleted", false_to_null)
ZeroDeletes = altering(TableTableLogic, "A row that becomes 0 is treated as deleted", zero_to_null)
EmptyTextDeletes = altering(
    TableTableLogic, "A row that becomes the empty text is treated as deleted", empty_text_to_null
)
BooleansAsNumbers = altering(TableTableLogic, "A row of true or false is emitted as 1 or 0", boolean_to_number)
NegativesAsZero = altering(TableTableLogic, "A negative number is treated as 0", not_below_zero)
LargeNumbersRounded = altering(TableTableLogic, "Whole numbers aren't exact beyond 2^53", through_float)
TextsNormalised = altering(TableTableLogic, "The characters of a text are recomposed", normalised)


class EqualRowStays(TableTableLogic):
    """A row isn't changed to a value that is equal in Python, for example from 1 to true."""

    def take(self, key: Key, state: Rows, row: Arrived, clock: int) -> list[LogicOutput]:
        old = state[row.side]
        kept = old is not None and row.value is not None and same(old[0], row.value)
        return super().take(key, state, row._replace(value=old[0]) if kept and old else row, clock)


KeysStripped = mistaking_keys(TableTableLogic, "Keys that differ in the spaces around them share their rows", stripped)
EmptyKeyDropped = mixed(TableTableLogic, DroppingEmptyKeys)
CauseOfRowBefore = mixed(TableTableLogic, MistakingCauses, "A result names the previous row as its cause")
TombstonesAreUpdates = mixed(TableTableLogic, MislabellingTombstones)


class FalsyRowNotSaved(TableTableLogic):
    """A row that is false, 0 or empty isn't saved between batches."""

    def pack(self, state: Rows) -> tuple[Any, ...] | None:
        return super().pack({side: None if row and is_falsy(row[0]) else row for side, row in state.items()})


class RightGoesWithLeft(TableTableLogic):
    """The right row isn't saved between batches while an inner join has no left row with its key."""

    def pack(self, state: Rows) -> tuple[Any, ...] | None:
        return None if self.join.join == "inner" and state["left"] is None else super().pack(state)


DeletedRowsStored = returning(
    TableTableLogic, "A key whose rows are both deleted stays in the state", pack=lambda found: found or (None,) * 4
)


class StampAtZeroNotSaved(TableTableLogic):
    """A row with timestamp 0 isn't saved between batches."""

    def pack(self, state: Rows) -> tuple[Any, ...] | None:
        return super().pack({side: None if row and not row[1] else row for side, row in state.items()})


class EqualSidesMerged(TableTableLogic):
    """If the left and the right row are equal in Python, for example 1 and true, the left row is emitted twice."""

    def result(self, state: Rows) -> Any:
        value = super().result(state)
        if value is None or value["left"] is None or not same(value["left"], value["right"]):
            return value
        return {**value, "right": value["left"]}


MUTANTS_OF_DRAWN = mutants_of(
    "table_table_join",
    TableTableLogic,
    "outer",
    logics_in(globals(), TableTableLogic),
    elsewhere={"inner": (RightGoesWithLeft,)},
)
