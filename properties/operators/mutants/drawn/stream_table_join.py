"""Mutants of the stream-table join that need drawn definitions, keys and values."""

from __future__ import annotations

from typing import Any

from .....spark_impl.runtime.logic import TOMBSTONE, Arrived, Key, LogicOutput, changed, dropped, joined
from .....spark_impl.stream_table_join import StreamTableLogic
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, returning
from .common import (
    DroppingEmptyKeys,
    MistakingCauses,
    altering,
    ascii_only,
    is_falsy,
    lower_case,
    mistaking_keys,
    same,
    stripped,
    through_float,
    without_fraction,
    without_sign,
)


class FalsyRowMissing(StreamTableLogic):
    """A table row that is false, 0 or empty isn't found."""

    def take(self, key: Key, state: list[Any], row: Arrived, clock: int) -> list[LogicOutput]:
        found = [None] if row.side == "left" and is_falsy(state[0]) else state
        return super().take(key, found, row, clock)


class FalsyRecordDropped(StreamTableLogic):
    """A stream record that is false, 0 or empty is dropped as null."""

    def take(self, key: Key, state: list[Any], row: Arrived, clock: int) -> list[LogicOutput]:
        if row.side == "left" and is_falsy(row.value):
            return [dropped(row, "null value")]
        return super().take(key, state, row, clock)


class EqualRowStays(StreamTableLogic):
    """A table row isn't changed to a value that is equal in Python, for example from 1 to true."""

    def take(self, key: Key, state: list[Any], row: Arrived, clock: int) -> list[LogicOutput]:
        if row.side == "right" and state[0] is not None and same(state[0], row.value):
            return []
        return super().take(key, state, row, clock)


LargeNumbersRounded = altering(StreamTableLogic, "Whole numbers aren't exact beyond 2^53", through_float)
SignsDropped = altering(StreamTableLogic, "A negative number loses its sign", without_sign)
FractionsCut = altering(StreamTableLogic, "A number loses its fraction", without_fraction)
TextsStripped = altering(StreamTableLogic, "A text loses the spaces around it", stripped)
AsciiOnly = altering(StreamTableLogic, "Characters beyond ASCII become question marks", ascii_only)
KeysInLowerCase = mistaking_keys(StreamTableLogic, "Keys that differ only in case share a row", lower_case)
EmptyKeyDropped = mixed(StreamTableLogic, DroppingEmptyKeys)
CauseOfRowBefore = mixed(StreamTableLogic, MistakingCauses, "A result names the previous row as its cause")


class NullKeyKeptByInner(StreamTableLogic):
    """An inner join that keeps null keys emits records without a key."""

    def take(self, key: Key, state: list[Any], row: Arrived, clock: int) -> list[LogicOutput]:
        without_key = any(part is None for part in key)
        if without_key and self.keeps_null_keys and row.side == "left" and row.value is not None:
            return [changed(row, joined(row.value, None), row.timestamp)]
        return super().take(key, state, row, clock)


class FalsyRowNotSaved(StreamTableLogic):
    """A table row that is false, 0 or empty isn't saved between batches."""

    def pack(self, state: list[Any]) -> tuple[Any, ...] | None:
        return None if is_falsy(state[0]) else super().pack(state)


class DeletedRowStored(StreamTableLogic):
    """A deleted row stays in the state as null."""

    def pack(self, state: list[Any]) -> tuple[Any, ...] | None:
        return tuple(state)


MissingRowIsTombstone = returning(
    StreamTableLogic,
    "A record that finds no row is labelled a tombstone",
    take=lambda found: [
        emitted._replace(change=TOMBSTONE) if emitted.value and emitted.value["right"] is None else emitted
        for emitted in found
    ],
)

MUTANTS_OF_DRAWN = mutants_of(
    "stream_table_join",
    StreamTableLogic,
    "left",
    logics_in(globals(), StreamTableLogic),
    elsewhere={"inner": (NullKeyKeptByInner,)},
)
