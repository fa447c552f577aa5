"""Mutants of the one-to-many join that need drawn definitions, keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .....spark_impl.foreign_keys.referring import ReferredState, ValueAt
from .....spark_impl.one_to_many_join import LeftLogic, RightLogic, one_to_many_stages
from .....spark_impl.runtime.logic import UPDATE, Arrived, Key, LogicOutput
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, returning
from .common import (
    DeletingFalsyRights,
    DroppingEmptyKeys,
    LosingFalsyRights,
    LosingLeftsWithoutRight,
    MistakingCauses,
    RoundingRights,
    is_empty_key,
    is_falsy,
    key_after_bug,
    lower_case,
    mistaking_keys,
    normalised,
    same,
    stripped,
)


class EmptyForeignKeyIsNull(LeftLogic):
    """The empty foreign key is treated as null."""

    def foreign_key_at(self, value: Any, names: Sequence[Any]) -> Key | None:
        empty = is_empty_key(tuple(names))
        return super().foreign_key_at(value, [None] * len(names) if empty else names)


class ForeignKeyNormalised(LeftLogic):
    """A row is stored under a foreign key with recomposed characters."""

    def foreign_key_at(self, value: Any, names: Sequence[Any]) -> Key | None:
        return super().foreign_key_at(value, key_after_bug(tuple(names), normalised))


class MoveWithinSpacesForgotten(LeftLogic):
    """A row that moves to a foreign key that differs only in spaces isn't removed from the old key."""

    def moves(self, before: Key | None, after: Key | None, value: Any) -> list[tuple[Key, Any]]:
        stays = before and after and key_after_bug(before, stripped) == key_after_bug(after, stripped)
        return super().moves(None if stays else before, after, value)


EmptyKeyDropped = mixed(LeftLogic, DroppingEmptyKeys, "The empty left key is treated as null")


class RowsWithoutForeignKeyStored(LeftLogic):
    """A deleted left row stays in the state, marked as deleted."""

    # A real foreign key may be null or empty, so neither can mark a deleted row.
    mark = "\0deleted"

    def pack(self, state: list[Key]) -> tuple[Any, ...] | None:
        return super().pack(state) or (self.mark,)

    def unpack(self, fields: tuple[Any, ...]) -> list[Key]:
        return [] if fields[0] == self.mark else super().unpack(fields)


FalsyRightDeletes = mixed(RightLogic, DeletingFalsyRights)
RightThroughFloat = mixed(RightLogic, RoundingRights)


class EqualLeftStays(RightLogic):
    """A stored left row isn't changed to a value that is equal in Python, for example from 1 to true."""

    def put(self, state: ReferredState, key: Key, left: ValueAt | None) -> None:
        old = state.lefts.get(key)
        kept = left is not None and old is not None and same(old.value, left.value)
        super().put(state, key, left._replace(value=old.value) if kept and left and old else left)


class LeftKeysInLowerCase(RightLogic):
    """Left keys that differ only in case share a stored row."""

    def put(self, state: ReferredState, key: Key, left: ValueAt | None) -> None:
        super().put(state, key_after_bug(key, lower_case), left)


RightKeysInLowerCase = mistaking_keys(RightLogic, "Right keys that differ only in case share their rows", lower_case)
EmptyRightKeyDropped = mixed(RightLogic, DroppingEmptyKeys, "The empty right key is treated as null, in messages too")
LeftsGoWithRight = mixed(
    RightLogic,
    LosingLeftsWithoutRight,
    "Left rows that refer to a missing right row aren't saved between batches",
)
FalsyRightNotSaved = mixed(RightLogic, LosingFalsyRights)


class StampAtZeroNotSaved(RightLogic):
    """A right row with timestamp 0 isn't saved between batches."""

    def pack(self, state: ReferredState) -> tuple[Any, ...] | None:
        unstamped = state.right is not None and not state.right.timestamp
        return super().pack(ReferredState(None, state.lefts) if unstamped else state)


EmptyRightStored = returning(
    RightLogic, "A foreign key without rows stays in the state", pack=lambda found: found or (None, None, [])
)
CauseOfMessageBefore = mixed(RightLogic, MistakingCauses, "A result names the previous message as its cause")
TombstonesAreUpdates = returning(
    RightLogic, "A tombstone is labelled an update", result=lambda found: found._replace(change=UPDATE)
)


class FalsyRightMissing(RightLogic):
    """A right row that is false, 0 or empty is treated as missing."""

    def result(self, state: ReferredState, row: Arrived, key: Key, left: Any, timestamp: int) -> LogicOutput:
        falsy = state.right is not None and is_falsy(state.right.value)
        return super().result(ReferredState(None, state.lefts) if falsy else state, row, key, left, timestamp)


MUTANTS_OF_DRAWN = mutants_of(
    "one_to_many_join", one_to_many_stages, "inner", logics_in(globals(), LeftLogic, RightLogic)
)
