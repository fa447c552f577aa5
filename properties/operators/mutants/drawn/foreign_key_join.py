"""Mutants of the foreign-key join that need drawn definitions, keys and values."""

from __future__ import annotations

from typing import Any

from .....spark_impl.foreign_keys.referring import ReferredState
from .....spark_impl.foreign_keys.stages import (
    LeftState,
    ReceiverLogic,
    ResponderLogic,
    SenderLogic,
    Subscription,
    foreign_key_stages,
)
from .....spark_impl.runtime.logic import Arrived, Key, LogicOutput
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, returning
from .common import (
    DeletingFalsyRights,
    DroppingEmptyKeys,
    LosingFalsyRights,
    LosingLeftsWithoutRight,
    MislabellingTombstones,
    MistakingCauses,
    RoundingRights,
    before_separator,
    is_empty_key,
    is_falsy,
    key_after_bug,
    lower_case,
    mistaking_keys,
    normalised,
    same,
    stripped,
)

EmptyForeignKeyIsNull = returning(
    SenderLogic,
    "The empty foreign key is treated as null",
    foreign_key_of=lambda found: None if found is None or is_empty_key(found) else found,
)
ForeignKeyInLowerCase = returning(
    SenderLogic,
    "A foreign key is looked up in lower case",
    foreign_key_of=lambda found: None if found is None else key_after_bug(found, lower_case),
)
ForeignKeyStripped = returning(
    SenderLogic,
    "A foreign key is looked up without the spaces around it",
    foreign_key_of=lambda found: None if found is None else key_after_bug(found, stripped),
)
ForeignKeyCutAtSeparator = returning(
    SenderLogic,
    "A foreign key is looked up by its text before `@`",
    foreign_key_of=lambda found: None if found is None else key_after_bug(found, before_separator),
)


class MoveWithinCaseForgotten(SenderLogic):
    """A row that moves to a foreign key that differs only in case isn't unsubscribed from the old key."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        if before and after and key_after_bug(before, lower_case) == key_after_bug(after, lower_case):
            return super().subscriptions(after, after, digest)
        return super().subscriptions(before, after, digest)


EmptyKeyDropped = mixed(SenderLogic, DroppingEmptyKeys, "The empty left key is treated as null")
LeftKeysInLowerCase = mistaking_keys(SenderLogic, "Left keys that differ only in case share a row", lower_case)


class RowsWithoutForeignKeyStored(SenderLogic):
    """A left row that is deleted, or has no foreign key, stays in the state as null."""

    def pack(self, state: list[Key]) -> tuple[Any, ...] | None:
        return super().pack(state) or (None,)

    def unpack(self, fields: tuple[Any, ...]) -> list[Key]:
        return [] if fields[0] is None else super().unpack(fields)


FalsyRightDeletes = mixed(ResponderLogic, DeletingFalsyRights)
RightThroughFloat = mixed(ResponderLogic, RoundingRights)


class EqualRightStays(ResponderLogic):
    """A right row isn't changed to a value that is equal in Python, for example from 1 to true."""

    def change(self, state: ReferredState, row: Arrived) -> list[LogicOutput]:
        old = state.right
        kept = old is not None and row.value is not None and same(old.value, row.value)
        return super().change(state, row._replace(value=old.value) if kept and old else row)


RightKeysNormalised = mistaking_keys(
    ResponderLogic, "Right keys that differ only in Unicode composition share a row", normalised
)
EmptyRightKeyDropped = mixed(
    ResponderLogic, DroppingEmptyKeys, "The empty right key is treated as null, in messages too"
)
SubscribersGoWithRow = mixed(
    ResponderLogic,
    LosingLeftsWithoutRight,
    "Subscribers to a missing right row aren't saved between batches",
)
FalsyRightNotSaved = mixed(ResponderLogic, LosingFalsyRights)


class NoOneToUnsubscribe(ResponderLogic):
    """A left row can't be unsubscribed while the right row is missing."""

    def unsubscribe(self, state: ReferredState, key: Key) -> None:
        if state.right is not None:
            super().unsubscribe(state, key)


EmptyRightStored = returning(
    ResponderLogic,
    "A foreign key without a row and without subscribers stays in the state",
    pack=lambda found: found or (None, None, []),
)
CauseOfMessageBefore = mixed(ReceiverLogic, MistakingCauses, "A result names the previous message as its cause")
TombstonesAreUpdates = mixed(ReceiverLogic, MislabellingTombstones)


class FalsyRightMissing(ReceiverLogic):
    """A right row that is false, 0 or empty is treated as missing."""

    def emit(self, state: LeftState, row: Arrived, right: Any, timestamp: int) -> LogicOutput:
        return super().emit(state, row, None if is_falsy(right) else right, timestamp)


class ShownNotSaved(ReceiverLogic):
    """The state forgets that a row without a foreign key has a result."""

    def pack(self, state: LeftState) -> tuple[Any, ...] | None:
        packed = super().pack(state)
        return packed and (*packed[:3], packed[3] and state.refers)


DeletedRowsStored = returning(
    ReceiverLogic,
    "A deleted left row stays in the state, as null",
    pack=lambda found: found or (None, None, False, False),
)

MUTANTS_OF_DRAWN = mutants_of(
    "foreign_key_join", foreign_key_stages, "inner", logics_in(globals(), SenderLogic, ResponderLogic, ReceiverLogic)
)
