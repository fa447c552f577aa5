"""One-to-many joins: the first design of KIP-213, by a range scan over a combined key.

The join stores every left row under its foreign key and its left key. A result's key is a JSON array of both keys.
Source: KIP-213, "Jan Filipiak's Original Proposal", "Algorithm" and "Step by Step".
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from .core.clocks import Clock
from .core.records import Accepted, Change, Dropped, Key, Output, Record, Table, TableKey, Value
from .definitions.joins import OneToManyJoin
from .table_table_join import Latest, joined_tables, table_of


def combined(foreign_key: Key | None, key: Key) -> Key:
    """Return the key of a result, from the foreign key and the left key: `["A2", "B0"]`."""
    return json.dumps([foreign_key, key], ensure_ascii=False)


def meaning(join: OneToManyJoin, accepted: Iterable[Accepted], clock: int) -> Table:
    """Return the join of the two tables of accepted records: each left row with its right row."""
    sides: dict[str, dict[Key | None, Latest]] = {"left": {}, "right": {}}
    for index, (record, _) in enumerate(accepted):
        sides[record.input][record.key] = Latest(record.value, record.timestamp, index)
    lefts: dict[TableKey, Latest] = {}
    rights: dict[TableKey, Latest] = {}
    for key, left in sides["left"].items():
        foreign_key = join.foreign_key_of(left.value)
        if key is not None and left.value is not None and (foreign_key is not None or join.keeps_null):
            row = (combined(foreign_key, key), None)
            lefts[row] = left
            if foreign_key in sides["right"]:
                rights[row] = sides["right"][foreign_key]
    return table_of(joined_tables(join.join, lefts, rights))


class Behaviour:
    """The state machine: the left rows, the right rows, and the left rows of each right key."""

    def __init__(self, join: OneToManyJoin, clock: Clock) -> None:
        self.join = join
        self.clock = clock
        self.left: dict[Key, Value] = {}
        self.right: dict[Key | None, tuple[Value, int]] = {}
        self.rows: dict[tuple[Key | None, Key], tuple[Value, int]] = {}  # (right key, left key) -> (value, time)

    def arrive(self, record: Record) -> list[Output]:
        """Change a row: a left row looks up its right row; a right row finds its left rows by a range scan."""
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        return self._change_left(record) if record.input == "left" else self._change_right(record)

    def _change_left(self, record: Record) -> list[Output]:
        join, key, new = self.join, record.key, record.value
        assert key is not None
        old = self.left.get(key)
        self.left[key] = new
        before, after = join.foreign_key_of(old), join.foreign_key_of(new)
        emitted: list[Output] = []
        if (before, key) in self.rows and (new is None or before != after):
            del self.rows[before, key]
            if before in self.right or join.answers_all:
                emitted.append(self._result(before, key, None, record.timestamp))
        if new is not None and (after is not None or join.keeps_null):
            self.rows[after, key] = (new, record.timestamp)
            if after in self.right or join.answers_all:
                emitted.append(self._result(after, key, new, record.timestamp))
        return emitted

    def _change_right(self, record: Record) -> list[Output]:
        if record.value is None:
            self.right.pop(record.key, None)
        else:
            self.right[record.key] = (record.value, record.timestamp)
        found = sorted(key for foreign_key, key in self.rows if foreign_key == record.key)
        rows = [(key, *self.rows[record.key, key]) for key in found]
        return [self._result(record.key, key, left, max(record.timestamp, timestamp)) for key, left, timestamp in rows]

    def _result(self, foreign_key: Key | None, key: Key, left: Value, timestamp: int) -> Change:
        right, stamp = self.right.get(foreign_key, (None, timestamp))
        joins = left is not None and (right is not None or self.join.join == "left")
        return Change(combined(foreign_key, key), None, [left, right] if joins else None, max(timestamp, stamp))

    def advance(self) -> list[Output]:
        """Return no changes: the clock alone changes no result."""
        return []
