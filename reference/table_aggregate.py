"""Table aggregates: a table aggregated by a field that is not its key.

Source: Kafka Streams Join Semantics, "KTable Aggregate": a row's old value is subtracted, then the new value is added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .core.clocks import Clock
from .core.records import Accepted, Change, Dropped, Key, Output, Record, Table, Value
from .definitions.aggregates import TableAggregate


def meaning(groups: TableAggregate, accepted: Iterable[Accepted], clock: int) -> Table:
    """Return the aggregate of each group that ever had a row; a group's rows are in the order of their last change."""
    rows: dict[Key | None, Value] = {}
    touched: dict[Key, int] = defaultdict(int)
    for record, _ in accepted:
        for group in (groups.group(rows.pop(record.key, None)), groups.group(record.value)):
            if group is not None:
                touched[group] = max(touched[group], record.timestamp)
        rows[record.key] = record.value
    return {
        (group, None): (
            groups.aggregate.of(
                group, [groups.member(value) for value in rows.values() if groups.group(value) == group]
            ),
            timestamp,
        )
        for group, timestamp in touched.items()
    }


class Behaviour:
    """The state machine: stores the table, to subtract old values, and each group's aggregate."""

    def __init__(self, groups: TableAggregate, clock: Clock) -> None:
        self.groups = groups
        self.clock = clock
        self.rows: dict[Key, Value] = {}
        self.aggregates: dict[Key, tuple[Any, int]] = {}

    def arrive(self, record: Record) -> list[Output]:
        """Change a row: subtract the old value, add the new value, and emit each changed group."""
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        old, new = self.rows.get(record.key), record.value
        self.rows[record.key] = new
        before, after = self.groups.group(old), self.groups.group(new)
        emitted: list[Output] = []
        for group in (before,) if before == after else (before, after):  # emit one change per group
            if group is not None:
                aggregate, largest = self.aggregates.get(group, (self.groups.aggregate.initializer(), 0))
                if group == before:
                    assert self.groups.aggregate.subtractor is not None
                    aggregate = self.groups.aggregate.subtractor(group, self.groups.member(old), aggregate)
                if group == after:
                    aggregate = self.groups.aggregate.aggregator(group, self.groups.member(new), aggregate)
                self.aggregates[group] = (aggregate, max(largest, record.timestamp))
                emitted.append(Change(group, None, *self.aggregates[group]))
        return emitted

    def advance(self) -> list[Output]:
        """Return no changes: the clock alone changes no result."""
        return []
