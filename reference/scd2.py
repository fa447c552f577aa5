"""Slowly changing dimensions of type 2: every version of each row with its interval, from change events.

Source: Kimball, "The Data Warehouse Toolkit", type 2; order, deletes and tracked columns as in AUTO CDC of Spark's
Declarative Pipelines. The table is a function of the set of events: arrival order, repeated events and batches have no
effect. A version is valid from the sequence of its first event (inclusive) to the sequence of the next version or
delete (exclusive). The current version ends at `OPEN`. Only one of several events of equal sequence counts, so no
version is empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .core.clocks import Clock
from .core.records import Accepted, Change, Dropped, Key, Output, Record, Table, TableKey
from .definitions.changes import OPEN, Event, Kept, Scd2, decisive


class Version(NamedTuple):
    """A version of a row, from the sequence `start` to `end` (exclusive); the current version has the end None."""

    start: Any
    end: Any
    row: Kept


def meaning(changes: Scd2, accepted: Iterable[Accepted], clock: int) -> Table:
    """Return every version of each row, with its start as the timestamp."""
    found = versions((changes.event(record) for record, _ in accepted), changes.tracked)
    return {row: (one.row.value, one.start) for row, one in _rows(found).items()}


def _rows(found: dict[Any, list[Version]]) -> dict[TableKey, Version]:
    return {
        (key, (one.start, OPEN if one.end is None else one.end)): one for key, of_key in found.items() for one in of_key
    }


def versions(events: Iterable[Event], tracked: Callable[[Kept], Any]) -> dict[Any, list[Version]]:
    """Return the versions of each key, in the order of their starts.

    Args:
        events: The events.
        tracked: Returns the part of a row that is constant within a version; a version contains its newest row.

    Raises:
        BadInput: Events of a key differ, and have the same sequence and order.
    """
    at: dict[Any, dict[Any, list[Event]]] = defaultdict(lambda: defaultdict(list))
    for event in events:
        at[event.key][event.sequence].append(event)
    found: dict[Any, list[Version]] = {}
    for key, of_key in at.items():
        found[key] = []
        for sequence in sorted(of_key):
            row, last = decisive(of_key[sequence]).row, found[key][-1:]
            before = last[0] if last and last[0].end is None else None
            if before is not None and row is not None and tracked(before.row) == tracked(row):
                found[key][-1] = before._replace(row=row)
                continue
            if before is not None:
                found[key][-1] = before._replace(end=sequence)
            found[key] += [] if row is None else [Version(sequence, None, row)]
    return found


class Behaviour:
    """The state machine: the events of each key, deletes included."""

    def __init__(self, changes: Scd2, clock: Clock) -> None:
        self.changes = changes
        self.clock = clock
        self.events: dict[Key, list[Event]] = defaultdict(list)

    def arrive(self, record: Record) -> list[Output]:
        """Add an event to its key; emit tombstones for removed versions, then the new versions."""
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        if self.changes.is_nothing(record):
            return [Dropped(record.key, "null value")]
        if record.timestamp < self.changes.edge(self.clock.now):
            return [Dropped(record.key, "late")]
        before, event = self.rows(record.key), self.changes.event(record)
        self.events[record.key] += [] if event in self.events[record.key] else [event]
        after = self.rows(record.key)
        gone = [Change(*row, None, one.start) for row, one in before.items() if row not in after]
        new = {row: one for row, one in after.items() if before.get(row) != one}
        return [*gone, *(Change(*row, one.row.value, one.start) for row, one in new.items())]

    def rows(self, key: Key) -> dict[TableKey, Version]:
        """Return the versions of a key, by their table keys (key and interval)."""
        return _rows(versions(self.events[key], self.changes.tracked))

    def advance(self) -> list[Output]:
        """Return no changes: the clock alone changes no result."""
        return []
