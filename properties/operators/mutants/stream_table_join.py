"""Mutants of the stream-table join on Spark."""

from __future__ import annotations

from typing import Any

from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput, changed, joined
from ....spark_impl.stream_table_join import StreamTableLogic
from ...registration.mutants import mutants_of
from .making import SharingState, logics_in, mixed, returning


class TableDrivesToo(StreamTableLogic):
    """A change of the table is emitted as well."""

    def take(self, key: Key, state: list[Any], row: Arrived, clock: int) -> list[LogicOutput]:
        emitted = super().take(key, state, row, clock)
        if row.side == "right" and row.value is not None:
            return [*emitted, changed(row, joined(None, row.value), row.timestamp)]
        return emitted


class DeletedRowFound(StreamTableLogic):
    """A deletion doesn't remove the row from the table."""

    def take(self, key: Key, state: list[Any], row: Arrived, clock: int) -> list[LogicOutput]:
        return [] if row.side == "right" and row.value is None else super().take(key, state, row, clock)


class FirstRowStands(StreamTableLogic):
    """A change of a table row is ignored."""

    def take(self, key: Key, state: list[Any], row: Arrived, clock: int) -> list[LogicOutput]:
        old = state[0]
        emitted = super().take(key, state, row, clock)
        if row.side == "right" and old is not None and row.value is not None:
            state[0] = old
        return emitted


TableOfTheBatch = returning(
    StreamTableLogic,
    "The table's rows of a batch are processed before the stream's rows, whatever their order of arrival",
    in_order=lambda found: sorted(found, key=lambda row: row.side == "left"),
)


class NullValueEmitted(StreamTableLogic):
    """A record whose value is null is emitted with its table row."""

    def take(self, key: Key, state: list[Any], row: Arrived, clock: int) -> list[LogicOutput]:
        if row.side == "left" and row.value is None and state[0] is not None:
            return [changed(row, joined(None, state[0]), row.timestamp)]
        return super().take(key, state, row, clock)


InnerOnly = returning(
    StreamTableLogic,
    "The left join doesn't emit records without a table row either",
    take=lambda found: [one for one in found if one.value is None or one.value["right"] is not None],
)


class RowUsedUp(StreamTableLogic):
    """A table row is found only once."""

    def take(self, key: Key, state: list[Any], row: Arrived, clock: int) -> list[LogicOutput]:
        emitted = super().take(key, state, row, clock)
        if row.side == "left" and row.value is not None:
            state[0] = None
        return emitted


ForgetsBetweenBatches = returning(StreamTableLogic, "State is not saved between batches", pack=lambda found: None)
StateOfAnotherKey = mixed(StreamTableLogic, SharingState)

MUTANTS = mutants_of("stream_table_join", StreamTableLogic, "left", logics_in(globals(), StreamTableLogic))
