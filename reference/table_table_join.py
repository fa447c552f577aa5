"""Table-table joins: rows of two tables with the same key; changes of either table update the result.

Source: Kafka Streams Join Semantics, "KTable-KTable Join"; changes without effect are emitted as in Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .core.clocks import Clock
from .core.records import Accepted, Change, Dropped, Output, Record, Table, TableKey, Value
from .definitions.joins import TableTableJoin


class Latest(NamedTuple):
    """A row of one side: its value (None after a tombstone), its timestamp (ms), and its ordinal among all changes."""

    value: Value
    timestamp: int
    arrived: float


def meaning(join: TableTableJoin, accepted: Iterable[Accepted], clock: int) -> Table:
    """Return the join of the two tables of accepted records."""
    sides: dict[str, dict[TableKey, Latest]] = {"left": {}, "right": {}}
    for index, (record, _) in enumerate(accepted):
        sides[record.input][record.key, None] = Latest(record.value, record.timestamp, index)
    return table_of(joined_tables(join.join, sides["left"], sides["right"]))


def table_of(rows: dict[TableKey, Latest]) -> Table:
    """Return rows as a table, without their ordinals."""
    return {row: (at.value, at.timestamp) for row, at in rows.items()}


def joined_tables(join: str, left: dict[TableKey, Latest], right: dict[TableKey, Latest]) -> dict[TableKey, Latest]:
    """Join two tables row by row; a result's timestamp is the latest of the last change and of both rows.

    Args:
        join: `inner`, `left` or `outer`.
        left: The rows of the left table, by key and window.
        right: The rows of the right table.
    """
    joined: dict[TableKey, Latest] = {}
    nothing = Latest(None, 0, -1)
    for row in left.keys() | right.keys():
        one, other = left.get(row, nothing), right.get(row, nothing)
        has_left, has_right = one.value is not None, other.value is not None
        if {"inner": has_left and has_right, "left": has_left, "outer": has_left or has_right}[join]:
            last = max(one, other, key=lambda side: side.arrived)
            present = [side.timestamp for side in (one, other) if side.value is not None]
            joined[row] = Latest([one.value, other.value], max(last.timestamp, *present), last.arrived)
    return joined


class TableJoin:
    """Two tables, and their join; changes of either table update the join."""

    def __init__(self, join: str) -> None:
        self.join = join
        self.tables: dict[str, Table] = {"left": {}, "right": {}}

    def change(self, side: str, row: TableKey, value: Value, timestamp: int) -> list[Change]:
        """Change a row, and return the join's output: at most one change.

        Args:
            side: `left` or `right`.
            row: The row's key and window.
            value: The row's new value; None deletes the row.
            timestamp: The timestamp of the change (ms).
        """
        own, others = self.tables[side], self.tables["right" if side == "left" else "left"]
        old, other = own.pop(row, None), others.get(row)
        if value is not None:
            own[row] = (value, timestamp)
        other_value = None if other is None else other[0]
        if self.join == "inner" or (self.join == "left" and side == "right"):
            emitted = other is not None
        else:
            emitted = not (old is None and value is None and other is None)
        if not emitted:
            return []
        left, right = (value, other_value) if side == "left" else (other_value, value)
        joins = {"inner": left is not None and right is not None, "left": left is not None, "outer": True}[self.join]
        result = [left, right] if joins and (left is not None or right is not None) else None
        return [Change(*row, result, max(timestamp, other[1] if other else timestamp))]


class Behaviour:
    """The state machine: its state is both tables, and a change of either table emits the joined row."""

    def __init__(self, join: TableTableJoin, clock: Clock) -> None:
        self.clock = clock
        self.tables = TableJoin(join.join)

    def arrive(self, record: Record) -> list[Output]:
        """Change a row; the last arrival counts, regardless of its timestamp."""
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        return [*self.tables.change(record.input, (record.key, None), record.value, record.timestamp)]

    def advance(self) -> list[Output]:
        """Return no changes: the clock alone changes no result."""
        return []
