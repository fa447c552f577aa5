"""The mutants of `TableTableJoin.tla` as mutants of the reference, and the join that emits no tombstone twice."""

from __future__ import annotations

from collections.abc import Mapping

from ...reference.core.clocks import Clock
from ...reference.core.records import Change, Output, Record, Table, TableKey, Value, fold
from ...reference.definitions.joins import TableTableJoin
from ...reference.table_table_join import Behaviour, TableJoin


class _Joins(Behaviour):
    """A mutant of the join of two tables."""

    tables_of: type[TableJoin] = TableJoin

    def __init__(self, join: TableTableJoin, clock: Clock) -> None:
        super().__init__(join, clock)
        self.tables = self.tables_of(join.join)


class _LeftTombstoneIgnored(TableJoin):
    def change(self, side: str, row: TableKey, value: Value, timestamp: int) -> list[Change]:
        if side == "left" and value is None and row in self.tables[side]:
            value = self.tables[side][row][0]
        return super().change(side, row, value, timestamp)


class LeftTombstoneIgnored(_Joins):
    """A tombstone of the left table deletes nothing."""

    tables_of = _LeftTombstoneIgnored


class _RightSilent(TableJoin):
    def change(self, side: str, row: TableKey, value: Value, timestamp: int) -> list[Change]:
        emitted = super().change(side, row, value, timestamp)
        return [] if (self.join, side) == ("left", "right") else emitted


class RightSilent(_Joins):
    """Only changes of the left table update the left join's result."""

    tables_of = _RightSilent


class _StaleOtherSide(TableJoin):
    def __init__(self, join: str) -> None:
        super().__init__(join)
        self.stale: dict[str, Table] = {"left": {}, "right": {}}

    def change(self, side: str, row: TableKey, value: Value, timestamp: int) -> list[Change]:
        other = "right" if side == "left" else "left"
        self.stale[side] = dict(self.tables[side])
        current, self.tables[other] = self.tables[other], self.stale[other]
        emitted = super().change(side, row, value, timestamp)
        self.tables[other] = current
        return emitted


class StaleOtherSide(_Joins):
    """A change is joined with the previous version of the other table's row."""

    tables_of = _StaleOtherSide


class _NullShown(TableJoin):
    def change(self, side: str, row: TableKey, value: Value, timestamp: int) -> list[Change]:
        other = self.tables["right" if side == "left" else "left"].get(row, (None, 0))
        super().change(side, row, value, timestamp)
        pair = [value, other[0]] if side == "left" else [other[0], value]
        return [Change(*row, None if value is None else pair, max(timestamp, other[1]))]


class NullShown(_Joins):
    """An inner join emits a row without a partner, with null."""

    tables_of = _NullShown


class _TombstoneForNothing(TableJoin):
    def change(self, side: str, row: TableKey, value: Value, timestamp: int) -> list[Change]:
        drives = self.join == "outer" or (self.join, side) == ("left", "left")
        nothing = value is None and not any(row in table for table in self.tables.values())
        emitted = super().change(side, row, value, timestamp)
        return [Change(*row, None, timestamp)] if drives and nothing else emitted


class TombstoneForNothing(_Joins):
    """A tombstone is emitted although neither table has or had a row."""

    tables_of = _TombstoneForNothing


class EmitsOnce(Behaviour):
    """Not a mutant: the join emits a tombstone only for an existing result, the model's `Tombstones = "once"`."""

    def __init__(self, join: TableTableJoin, clock: Clock) -> None:
        super().__init__(join, clock)
        self.result: Table = {}

    def arrive(self, record: Record) -> list[Output]:
        shown = (record.key, None) in self.result
        outputs = super().arrive(record)
        emitted = [one for one in outputs if shown or not isinstance(one, Change) or one.value is not None]
        self.result = fold(emitted, self.result)
        return emitted


MUTANTS: Mapping[str, type[Behaviour]] = {
    "none": Behaviour,
    "left tombstone ignored": LeftTombstoneIgnored,
    "right silent": RightSilent,
    "stale other side": StaleOtherSide,
    "null shown": NullShown,
    "tombstone for nothing": TombstoneForNothing,
    "changes overtake": Behaviour,
}
"""The state machine for each value of the constant `Mutant`; overtaking changes are simulated before the join."""
