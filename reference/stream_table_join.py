"""Stream-table joins: each record of a stream looks up the current row of its key in a table.

Source: Kafka Streams Join Semantics, "KStream-KTable Joins": only stream records emit results, so the results depend on
the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable

from .core.clocks import Clock
from .core.records import Accepted, Bag, Change, Dropped, Key, Output, Record, Value, bag
from .definitions.joins import StreamTableJoin


def meaning(join: StreamTableJoin, accepted: Iterable[Accepted], clock: int) -> Bag:
    """Return the bag of the results: each stream record, with the row of its key in the table at its arrival."""
    records = [record for record, _ in accepted]
    answers = []
    for index, record in enumerate(records):
        if record.input == "left":
            rows = [
                other.value
                for other in records[:index]
                if other.input == "right" and other.key == record.key is not None
            ]
            row = rows[-1] if rows else None
            if row is not None or join.join == "left":
                answers.append(Change(record.key, None, [record.value, row], record.timestamp))
    return bag(answers)


class Behaviour:
    """The state machine: its only state is the table."""

    def __init__(self, join: StreamTableJoin, clock: Clock) -> None:
        self.join = join
        self.clock = clock
        self.table: dict[Key | None, Value] = {}

    def arrive(self, record: Record) -> list[Output]:
        """Change a row of the table, or look up a row for a stream record."""
        keep = self.join.null_key == "keep"
        if record.key is None and not keep:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        if record.key is None and (record.input == "right" or self.join.join == "inner"):
            return [Dropped(None, "null key")]
        if record.input == "right":
            self.table[record.key] = record.value
            return []
        if record.value is None:
            return [Dropped(record.key, "null value")]
        row = self.table.get(record.key)
        if row is None and self.join.join == "inner":
            return []
        return [Change(record.key, None, [record.value, row], record.timestamp)]

    def advance(self) -> list[Output]:
        """Return no changes: the clock alone changes no result."""
        return []
