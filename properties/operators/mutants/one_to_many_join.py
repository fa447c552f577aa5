"""Mutants of the one-to-many join on Spark."""

from __future__ import annotations

from typing import Any

from ....spark_impl.foreign_keys.referring import ReferredState, ValueAt
from ....spark_impl.one_to_many_join import LeftLogic, RightLogic, one_to_many_stages
from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput
from ...registration.mutants import mutants_of
from .making import SharingState, logics_in, mixed, returning


class OldKeyKept(LeftLogic):
    """A row that has moved also stays under its old foreign key."""

    def moves(self, before: Key | None, after: Key | None, value: Any) -> list[tuple[Key, Any]]:
        return super().moves(None if after is not None else before, after, value)


class DeletionSilent(LeftLogic):
    """A deleted row isn't removed."""

    def moves(self, before: Key | None, after: Key | None, value: Any) -> list[tuple[Key, Any]]:
        return super().moves(before, after, value) if value is not None else []


class RemovedAfterPut(LeftLogic):
    """A row that keeps its foreign key is stored again, and then removed as the old row."""

    def moves(self, before: Key | None, after: Key | None, value: Any) -> list[tuple[Key, Any]]:
        moves = super().moves(before, after, value)
        return [*moves, (before, None)] if before is not None and before == after else moves


StateOfAnotherKey = mixed(LeftLogic, SharingState)
FirstRowOnly = returning(RightLogic, "A right change reaches only the first left row", change=lambda found: found[:1])


class RightTombstoneSilent(RightLogic):
    """A deleted right row isn't emitted."""

    def change(self, state: ReferredState, row: Arrived) -> list[LogicOutput]:
        emitted = super().change(state, row)
        return [] if row.value is None else emitted


class LeftRowsForgotten(RightLogic):
    """A left row is joined once, and isn't stored for later changes."""

    def put(self, state: ReferredState, key: Key, left: ValueAt | None) -> None:
        return


class OwnTimestamp(RightLogic):
    """A result has only the timestamp of the changed row."""

    def result(self, state: ReferredState, row: Arrived, key: Key, left: Any, timestamp: int) -> LogicOutput:
        own = row.timestamp if row.side == "right" else row.value[0]
        return super().result(state, row, key, left, timestamp)._replace(timestamp=own)


ForgetsBetweenBatches = returning(RightLogic, "State is not saved between batches", pack=lambda found: None)

MUTANTS = mutants_of("one_to_many_join", one_to_many_stages, "inner", logics_in(globals(), LeftLogic, RightLogic))
