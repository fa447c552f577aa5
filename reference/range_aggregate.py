"""Range aggregates: for each record, the aggregate of its key's records in a range of time that ends at the record.

Source: Samza's window operator, "Windowed Aggregation": `OVER (ORDER BY time RANGE … PRECEDING)`. Later records don't
update a result, so each record has one result, from the records that have arrived.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from .core.clocks import Clock
from .core.records import Accepted, Bag, Change, Dropped, Key, Output, Record, bag
from .definitions.windows import RangeAggregate


def meaning(ranges: RangeAggregate, accepted: Iterable[Accepted], clock: int) -> Bag:
    """Return the bag of the results, one for each accepted record."""
    records = [record for record, _ in accepted]
    return bag(_answer(ranges, record, records[: index + 1]) for index, record in enumerate(records))


def _answer(ranges: RangeAggregate, record: Record, arrived: Iterable[Record]) -> Change:
    """Return the aggregate of the values in a record's range, ordered by timestamp and then by arrival."""
    assert record.key is not None
    earliest = record.timestamp - ranges.preceding_ms
    inside = [other for other in arrived if other.key == record.key and earliest <= other.timestamp <= record.timestamp]
    values = [other.value for other in sorted(inside, key=lambda other: other.timestamp)]
    return Change(record.key, None, ranges.aggregate.of(record.key, values), record.timestamp)


class Behaviour:
    """The state machine: stores every record, because the range of a late record may contain any earlier record."""

    def __init__(self, ranges: RangeAggregate, clock: Clock) -> None:
        self.ranges = ranges
        self.clock = clock
        self.records: dict[Key, list[Record]] = defaultdict(list)

    def arrive(self, record: Record) -> list[Output]:
        """Add a record, and emit the aggregate of its range."""
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        self.records[record.key].append(record)
        return [_answer(self.ranges, record, self.records[record.key])]

    def advance(self) -> list[Output]:
        """Return no changes: the clock alone changes no result."""
        return []
