"""Mutants of the one-to-many join that show on drawn definitions, keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .....spark_impl.one_to_many_join import LeftLogic, RightLogic, one_to_many_stages
from .....spark_impl.runtime.logic import UPDATE, Arrived, Emitted, Key
from .....spark_impl.runtime.stages import ReferredState, Row
from ....registration.mutants import logics_in, mutants_of
from .common import (
    DroppingEmptyKeys,
    MistakingCauses,
    MistakingKeys,
    after_bug,
    is_empty_key,
    is_falsy,
    key_after_bug,
    lower_case,
    normalised,
    same,
    stripped,
    through_float,
)


class EmptyForeignKeyIsNull(LeftLogic):
    """The empty foreign key is taken for null."""

    def foreign_key_at(self, value: Any, names: Sequence[Any]) -> Key | None:
        empty = is_empty_key(tuple(names))
        return super().foreign_key_at(value, [None] * len(names) if empty else names)


class ForeignKeyNormalised(LeftLogic):
    """A row is stored under a foreign key whose characters are composed anew."""

    def foreign_key_at(self, value: Any, names: Sequence[Any]) -> Key | None:
        return super().foreign_key_at(value, key_after_bug(tuple(names), normalised))


class MoveWithinSpacesForgotten(LeftLogic):
    """A row that moves to a foreign key that differs in spaces alone isn't removed from the old one."""

    def moves(self, before: Key | None, after: Key | None, value: Any) -> list[tuple[Key, Any]]:
        stays = before and after and key_after_bug(before, stripped) == key_after_bug(after, stripped)
        return super().moves(None if stays else before, after, value)


class EmptyKeyDropped(DroppingEmptyKeys, LeftLogic):
    """The empty left key is taken for null."""


class RowsWithoutForeignKeyStored(LeftLogic):
    """A deleted left row stays in the state, marked as deleted."""

    # Null and the empty text are foreign keys.
    mark = "\0deleted"

    def pack(self, state: list[Key]) -> tuple[Any, ...] | None:
        return super().pack(state) or (self.mark,)

    def unpack(self, fields: tuple[Any, ...]) -> list[Key]:
        return [] if fields[0] == self.mark else super().unpack(fields)


class FalsyRightDeletes(RightLogic):
    """A right row that becomes false, 0 or empty is taken for deleted."""

    def change(self, state: ReferredState, row: Arrived) -> list[Emitted]:
        return super().change(state, row._replace(value=None) if is_falsy(row.value) else row)


class RightThroughFloat(RightLogic):
    """Whole numbers of a right row aren't exact beyond 2^53."""

    def change(self, state: ReferredState, row: Arrived) -> list[Emitted]:
        return super().change(state, row._replace(value=after_bug(row.value, through_float)))


class EqualLeftStays(RightLogic):
    """A stored left row that changes to what Python takes for equal, such as from 1 to true, stays as it was."""

    def put(self, state: ReferredState, key: Key, left: Row | None) -> None:
        old = state.lefts.get(key)
        kept = left is not None and old is not None and same(old.value, left.value)
        super().put(state, key, left._replace(value=old.value) if kept and left and old else left)


class LeftKeysInLowerCase(RightLogic):
    """Left keys that differ in case alone share a stored row."""

    def put(self, state: ReferredState, key: Key, left: Row | None) -> None:
        super().put(state, key_after_bug(key, lower_case), left)


class RightKeysInLowerCase(MistakingKeys, RightLogic):
    """Right keys that differ in case alone share their rows."""

    bug = staticmethod(lower_case)


class EmptyRightKeyDropped(DroppingEmptyKeys, RightLogic):
    """The empty right key is taken for null, in messages too."""


class LeftsGoWithRight(RightLogic):
    """The left rows that refer to a missing right row aren't saved from one batch to the next."""

    def pack(self, state: ReferredState) -> tuple[Any, ...] | None:
        return None if state.right is None else super().pack(state)


class FalsyRightNotSaved(RightLogic):
    """A right row that is false, 0 or empty isn't saved from one batch to the next."""

    def pack(self, state: ReferredState) -> tuple[Any, ...] | None:
        falsy = state.right is not None and is_falsy(state.right.value)
        return super().pack(ReferredState(None, state.lefts) if falsy else state)


class StampAtZeroNotSaved(RightLogic):
    """A right row with timestamp 0 isn't saved from one batch to the next."""

    def pack(self, state: ReferredState) -> tuple[Any, ...] | None:
        unstamped = state.right is not None and not state.right.timestamp
        return super().pack(ReferredState(None, state.lefts) if unstamped else state)


class EmptyRightStored(RightLogic):
    """A foreign key without rows stays in the state."""

    def pack(self, state: ReferredState) -> tuple[Any, ...] | None:
        return super().pack(state) or (None, None, [])


class CauseOfMessageBefore(MistakingCauses, RightLogic):
    """A result names the message before as its cause."""


class TombstonesAreUpdates(RightLogic):
    """A tombstone is labelled an update."""

    def result(self, state: ReferredState, row: Arrived, key: Key, left: Any, timestamp: int) -> Emitted:
        return super().result(state, row, key, left, timestamp)._replace(change=UPDATE)


class FalsyRightMissing(RightLogic):
    """A right row that is false, 0 or empty is joined as none."""

    def result(self, state: ReferredState, row: Arrived, key: Key, left: Any, timestamp: int) -> Emitted:
        falsy = state.right is not None and is_falsy(state.right.value)
        return super().result(ReferredState(None, state.lefts) if falsy else state, row, key, left, timestamp)


MUTANTS_OF_DRAWN = mutants_of("one_to_many_join", one_to_many_stages, "inner", logics_in(globals()))
