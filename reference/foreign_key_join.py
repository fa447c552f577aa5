"""Foreign-key joins: each left row refers, by a field of its value, to one right row; the result has the left key.

Source: KIP-213, "Workflow" and its tables; `facts/kafka_streams` for timestamps and for tombstones of no use.
Here is what comes out when every message is delivered at once. How the sides talk, and what comes out when messages
wait, is the protocol's: `foreign_key_protocol`.
"""

from __future__ import annotations

from collections.abc import Iterable

from .clocks import Clock
from .foreign_key_protocol import Protocol
from .joins import ForeignKeyJoin
from .records import Accepted, Change, Dropped, Key, Output, Record, Table, Value
from .table_table_join import Latest


def meaning(join: ForeignKeyJoin, accepted: Iterable[Accepted], clock: int) -> Table:
    """Give the join of the two tables that the accepted records fold to, each left row with the right row it names.

    A row is stamped by its right row's change alone where that came last, otherwise by the later of both rows.
    """
    sides: dict[str, dict[Key | None, Latest]] = {"left": {}, "right": {}}
    for place, (record, _) in enumerate(accepted):
        sides[record.input][record.key] = Latest(record.value, record.timestamp, place)
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
    """The state machine without messages: both tables, and whether a row's result is shown."""

    def __init__(self, join: ForeignKeyJoin, clock: Clock) -> None:
        self.join = join
        self.clock = clock
        self.left: dict[Key, Value] = {}
        self.right: dict[Key, tuple[Value, int]] = {}
        self.shown: set[Key] = set()

    def arrive(self, record: Record) -> list[Output]:
        """Take a change of a row: a left one looks its right row up, a right one goes to all left rows that name it."""
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        told = self._change_left(record) if record.input == "left" else self._change_right(record)
        for change in told:
            assert change.key is not None
            (self.shown.discard if change.value is None else self.shown.add)(change.key)
        return [*told]

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
            # The row is gone, or joins nothing.
            untold = before is None and key not in self.shown
        else:
            untold = before in (None, after) and not join.answers_all
        stamp = (
            self.right.get(before, (None, 0))[1] if after is None and before is not None and join.join == "inner" else 0
        )
        return [] if untold else [Change(key, None, None, max(record.timestamp, stamp))]

    def _change_right(self, record: Record) -> list[Change]:
        key, right = record.key, record.value
        assert key is not None
        self.right.pop(key, None)
        if right is not None:
            self.right[key] = (right, record.timestamp)
        rows = sorted((name, left) for name, left in self.left.items() if self.join.foreign_key_of(left) == key)
        kept = right is not None or self.join.join == "left"
        return [Change(name, None, [left, right] if kept else None, record.timestamp) for name, left in rows]

    def advance(self) -> list[Output]:
        """Time alone changes nothing."""
        return []


def Behaviour(join: ForeignKeyJoin, clock: Clock) -> Direct | Protocol:
    """Make the state machine: with messages where a schedule is to deliver them, else without."""
    return Protocol(join, clock) if join.delivery == "manual" else Direct(join, clock)
