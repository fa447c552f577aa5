"""Seeded bugs of the stream-table join on Spark."""

from __future__ import annotations

from typing import Any

from ...spark_impl.keyed import Arrived, Key, Told, changed, joined
from ...spark_impl.stream_table_join import StreamTableLogic
from .common import SharingState, mutants_of


class TableDrivesToo(StreamTableLogic):
    """A change of the table is told as well."""

    def take(self, key: Key, kept: list[Any], row: Arrived, clock: int) -> list[Told]:
        told = super().take(key, kept, row, clock)
        if row.side == "right" and row.value is not None:
            return [*told, changed(row, joined(None, row.value), row.timestamp)]
        return told


class DeletedRowFound(StreamTableLogic):
    """A deletion leaves the row in the table."""

    def take(self, key: Key, kept: list[Any], row: Arrived, clock: int) -> list[Told]:
        return [] if row.side == "right" and row.value is None else super().take(key, kept, row, clock)


class FirstRowStands(StreamTableLogic):
    """A row of the table can't be changed."""

    def take(self, key: Key, kept: list[Any], row: Arrived, clock: int) -> list[Told]:
        old = kept[0]
        told = super().take(key, kept, row, clock)
        if row.side == "right" and old is not None and row.value is not None:
            kept[0] = old
        return told


class TableOfTheBatch(StreamTableLogic):
    """The table's rows of a batch are taken before the stream's, whatever their order of arrival."""

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        return sorted(super().in_order(rows), key=lambda row: row.side == "left")


class NullValueTold(StreamTableLogic):
    """A record whose value is null is told with the row that it finds."""

    def take(self, key: Key, kept: list[Any], row: Arrived, clock: int) -> list[Told]:
        if row.side == "left" and row.value is None and kept[0] is not None:
            return [changed(row, joined(None, kept[0]), row.timestamp)]
        return super().take(key, kept, row, clock)


class InnerOnly(StreamTableLogic):
    """A record that finds no row isn't told by the left join either."""

    def take(self, key: Key, kept: list[Any], row: Arrived, clock: int) -> list[Told]:
        told = super().take(key, kept, row, clock)
        return [one for one in told if one.value is None or one.value["right"] is not None]


class RowUsedUp(StreamTableLogic):
    """A row of the table is found once."""

    def take(self, key: Key, kept: list[Any], row: Arrived, clock: int) -> list[Told]:
        told = super().take(key, kept, row, clock)
        if row.side == "left" and row.value is not None:
            kept[0] = None
        return told


class ForgetsBetweenBatches(StreamTableLogic):
    """State is not kept from one batch to the next."""

    def pack(self, kept: list[Any]) -> tuple[Any, ...] | None:
        return None


class StateOfAnotherKey(SharingState, StreamTableLogic):
    """A row meets the state of the key that had the row before."""


MUTANTS = mutants_of(
    "stream_table_join",
    StreamTableLogic,
    "left",
    (
        TableDrivesToo,
        DeletedRowFound,
        FirstRowStands,
        TableOfTheBatch,
        NullValueTold,
        InnerOnly,
        RowUsedUp,
        ForgetsBetweenBatches,
        StateOfAnotherKey,
    ),
)
