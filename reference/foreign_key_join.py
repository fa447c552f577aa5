"""Foreign-key joins: a field of each left row's value contains the key of a right row; the result has the left key.

Source: KIP-213, "Workflow" and its tables; timestamps and redundant tombstones are as in Kafka Streams. This module
delivers every message immediately. `foreign_key_protocol` models messages that may wait.
"""

from __future__ import annotations

from collections.abc import Iterable

from .core.clocks import Clock
from .core.records import Accepted, Change, Dropped, Key, Output, Record, Table, Value
from .definitions.joins import ForeignKeyJoin
from .foreign_key_protocol import Protocol
from .table_table_join import Latest


def meaning(join: ForeignKeyJoin, accepted: Iterable[Accepted], clock: int) -> Table:
    """Return the join of the two tables of accepted records, each left row with its right row.

    A result has the right record's timestamp if that record arrived last, otherwise the later timestamp of its two
    rows.
    """
    sides: dict[str, dict[Key | None, Latest]] = {"left": {}, "right": {}}
    for index, (record, _) in enumerate(accepted):
        sides[record.input][record.key] = Latest(record.value, record.timestamp, index)
    table: Table = {}
    for key, left in sides["left"].items():
        foreign_key = join.foreign_key_of(left.value)
        if left.value is None or (foreign_key is None and not join.keeps_null):
            continue
        right = sides["right"].get(foreign_key, Latest(None, 0, -1))
        if right.value is not None or join.join == "left":
            stamp = left.timestamp if right.value is None else max(left.timestamp, right.timestamp)
            stamp = right.timestamp if right.arrived > left.arrived else stamp
            table[key, None] = ([left.value, right.value], stamp)
    return table


class Direct:
    """The state machine without messages: both tables, and the left keys that have a result."""

    def __init__(self, join: ForeignKeyJoin, clock: Clock) -> None:
        self.join = join
        self.clock = clock
        self.left: dict[Key, Value] = {}
        self.right: dict[Key, tuple[Value, int]] = {}
        self.shown: set[Key] = set()

    def arrive(self, record: Record) -> list[Output]:
        """Change a row: a left row looks up its right row, a right row joins all left rows that refer to it."""
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        emitted = self._change_left(record) if record.input == "left" else self._change_right(record)
        for change in emitted:
            assert change.key is not None
            (self.shown.discard if change.value is None else self.shown.add)(change.key)
        return [*emitted]

    def _change_left(self, record: Record) -> list[Change]:
        join, key, new = self.join, record.key, record.value
        assert key is not None
        old = self.left.pop(key, None)
        if new is not None:
            self.left[key] = new
        before, after = join.foreign_key_of(old), join.foreign_key_of(new)
        right, stamp = self.right.get(after, (None, 0)) if after is not None else (None, 0)
        if right is not None:
            return [Change(key, None, [new, right], max(record.timestamp, stamp))]
        if new is not None and (join.keeps_null if after is None else join.join == "left"):
            return [Change(key, None, [new, None], record.timestamp)]
        if after is None:
            # Deleted, or now without a foreign key: emit a tombstone only if the row had a foreign key or a result.
            not_emitted = before is None and key not in self.shown
        else:
            not_emitted = before in (None, after) and not join.answers_all
        stamp = (
            self.right.get(before, (None, 0))[1] if after is None and before is not None and join.join == "inner" else 0
        )
        return [] if not_emitted else [Change(key, None, None, max(record.timestamp, stamp))]

    def _change_right(self, record: Record) -> list[Change]:
        key, right = record.key, record.value
        assert key is not None
        self.right.pop(key, None)
        if right is not None:
            self.right[key] = (right, record.timestamp)
        rows = sorted((name, left) for name, left in self.left.items() if self.join.foreign_key_of(left) == key)
        joins = right is not None or self.join.join == "left"
        return [Change(name, None, [left, right] if joins else None, record.timestamp) for name, left in rows]

    def advance(self) -> list[Output]:
        """Return no changes: the clock alone changes no result."""
        return []


def Behaviour(join: ForeignKeyJoin, clock: Clock) -> Direct | Protocol:
    """Return the state machine: `Protocol` if delivery is manual, otherwise `Direct`."""
    return Protocol(join, clock) if join.delivery == "manual" else Direct(join, clock)
