"""Range aggregates: each record's aggregate over its key's records in a range of time before it.

Source: Samza's window operator, "Windowed Aggregation": `OVER (ORDER BY time RANGE … PRECEDING)`. A stream has no key
that could update an earlier result, so each record has one result, from the records so far.
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
    """The aggregate of a record's range, in order of timestamp and then of arrival."""
    assert record.key is not None
    earliest = record.timestamp - ranges.preceding_ms
    inside = [other for other in arrived if other.key == record.key and earliest <= other.timestamp <= record.timestamp]
    values = [other.value for other in sorted(inside, key=lambda other: other.timestamp)]
    return Change(record.key, None, ranges.aggregate.of(record.key, values), record.timestamp)


class Behaviour:
    """The state machine: it stores every record of a key, because the range of a late record may contain it."""

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
        """Return no changes, because time alone changes nothing."""
        return []
