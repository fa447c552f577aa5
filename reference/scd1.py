"""Slowly changing dimensions of type 1: the newest version of each row, from change events.

Source: Kimball, "The Data Warehouse Toolkit", type 1; order and deletes as in AUTO CDC of Spark's Declarative
Pipelines. The table is a function of the set of events: arrival order, repeated events and batches have no effect. The
sources don't define the result of different events with equal sequence: this model refuses them, unless `ties` orders
them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .core.clocks import Clock
from .core.records import Accepted, Change, Dropped, Key, Output, Record, Table
from .definitions.changes import Event, Scd1, decisive


def meaning(changes: Scd1, accepted: Iterable[Accepted], clock: int) -> Table:
    """Return the newest version of each row that isn't deleted, with its sequence as the timestamp."""
    newest = current(changes.event(record) for record, _ in accepted)
    return {(key, None): (event.value, event.sequence) for key, event in newest.items()}


def current(events: Iterable[Event]) -> dict[Any, Event]:
    """Return the newest event of each key, except for keys whose newest event is a delete.

    Raises:
        BadInput: The newest events of a key differ, and have the same sequence and order.
    """
    by_key: dict[Any, list[Event]] = defaultdict(list)
    for event in events:
        by_key[event.key].append(event)
    newest = {key: decisive(of_key) for key, of_key in by_key.items()}
    return {key: event for key, event in newest.items() if event.row is not None}


class Behaviour:
    """The state machine: the newest event of each key, tombstones included."""

    def __init__(self, changes: Scd1, clock: Clock) -> None:
        self.changes = changes
        self.clock = clock
        self.newest: dict[Key, Event] = {}

    def arrive(self, record: Record) -> list[Output]:
        """Store an event if it is the newest of its key, and emit its row, or a tombstone if it deletes a row."""
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        self.advance()
        if self.changes.is_nothing(record):
            return [Dropped(record.key, "null value")]
        if record.timestamp < self.changes.edge(self.clock.now):
            return [Dropped(record.key, "late")]
        event, old = self.changes.event(record), self.newest.get(record.key)
        self.newest[record.key] = newest = event if old is None else decisive([old, event])
        if newest is old or (newest.row is None and (old is None or old.row is None)):
            return []
        return [Change(record.key, None, newest.value, newest.sequence)]

    def advance(self) -> list[Output]:
        """Forget the tombstones older than any event that can still be accepted; the clock alone changes no row."""
        edge = self.changes.edge(self.clock.now)
        self.newest = {key: one for key, one in self.newest.items() if one.row is not None or one.sequence >= edge}
        return []
