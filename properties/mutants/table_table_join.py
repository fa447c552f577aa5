"""Seeded bugs of the table-table join on Spark."""

from __future__ import annotations

from typing import Any

from ...spark_impl.keyed import Arrived, Key, Told, changed, joined
from ...spark_impl.table_table_join import Side, TableTableLogic
from .common import SharingState, mutants_of

Rows = dict[str, Side]


class LatestTimestampStands(TableTableLogic):
    """Of two rows of a key the one with the larger timestamp stands, not the last to arrive."""

    def take(self, key: Key, kept: Rows, row: Arrived, clock: int) -> list[Told]:
        old = kept[row.side]
        return [] if old is not None and (row.timestamp or 0) < old[1] else super().take(key, kept, row, clock)


class DeletionSilent(TableTableLogic):
    """A deletion is not told, so that the old result lives on."""

    def take(self, key: Key, kept: Rows, row: Arrived, clock: int) -> list[Told]:
        told = super().take(key, kept, row, clock)
        return [] if row.value is None else told


class NeedlessTombstones(TableTableLogic):
    """A change that meets no row of the other side is told with a tombstone, though nothing was shown."""

    def tells(self, row: Arrived, old: Side, other: Side) -> bool:
        return True


class OwnTimestamp(TableTableLogic):
    """A result is stamped by the changed row alone."""

    def take(self, key: Key, kept: Rows, row: Arrived, clock: int) -> list[Told]:
        return [told._replace(timestamp=row.timestamp) for told in super().take(key, kept, row, clock)]


class SidesSwapped(TableTableLogic):
    """The joined value holds the right side first."""

    def result(self, kept: Rows) -> Any:
        value = super().result(kept)
        return None if value is None else joined(value["right"], value["left"])


class LeftDrivesAlone(TableTableLogic):
    """A change of the right table isn't told, as in a stream-table join."""

    def tells(self, row: Arrived, old: Side, other: Side) -> bool:
        return row.side == "left" and super().tells(row, old, other)


class RepeatsDropped(TableTableLogic):
    """A row that comes again with the same value isn't told (KIP-557, reverted in KAFKA-12508)."""

    def take(self, key: Key, kept: Rows, row: Arrived, clock: int) -> list[Told]:
        old = kept[row.side]
        told = super().take(key, kept, row, clock)
        return [] if old is not None and old[0] == row.value else told


class ToldTwice(TableTableLogic):
    """Every change is told twice, which no table shows (bug museum: duplicate tombstones)."""

    def take(self, key: Key, kept: Rows, row: Arrived, clock: int) -> list[Told]:
        return super().take(key, kept, row, clock) * 2


class ForgetsBetweenBatches(TableTableLogic):
    """State is not kept from one batch to the next."""

    def pack(self, kept: Rows) -> tuple[Any, ...] | None:
        return None


class ShuffleOrder(TableTableLogic):
    """A batch is taken in reverse order of arrival."""

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        return super().in_order(rows)[::-1]


class OuterMissesTheRight(TableTableLogic):
    """An outer join tells no row that the left table hasn't."""

    def take(self, key: Key, kept: Rows, row: Arrived, clock: int) -> list[Told]:
        told = super().take(key, kept, row, clock)
        return [changed(row, None, one.timestamp) if kept["left"] is None else one for one in told]


class RepeatDeletes(TableTableLogic):
    """A row that comes again with the same value is taken for its deletion."""

    def take(self, key: Key, kept: Rows, row: Arrived, clock: int) -> list[Told]:
        old = kept[row.side]
        again = old is not None and old[0] == row.value
        return super().take(key, kept, row._replace(value=None) if again else row, clock)


class StateOfAnotherKey(SharingState, TableTableLogic):
    """A row meets the state of the key that had the row before."""


MUTANTS = mutants_of(
    "table_table_join",
    TableTableLogic,
    "outer",
    (
        LatestTimestampStands,
        DeletionSilent,
        NeedlessTombstones,
        OwnTimestamp,
        SidesSwapped,
        LeftDrivesAlone,
        RepeatsDropped,
        ToldTwice,
        ForgetsBetweenBatches,
        ShuffleOrder,
        OuterMissesTheRight,
        RepeatDeletes,
        StateOfAnotherKey,
    ),
)
