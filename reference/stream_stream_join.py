"""Stream-stream joins: records of two streams with the same key, within time bounds, make one output a pair.

Source: join semantics, "KStream-KStream Join" and "Output of Join"; Samza's window operator, "Stream-Stream Join";
`facts/kafka_streams` for the order of unmatched rows. The definition says when an unmatched row is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .clocks import Clock
from .joins import StreamStreamJoin
from .records import Accepted, Bag, Change, Dropped, Key, Output, Record, bag


def meaning(join: StreamStreamJoin, accepted: Iterable[Accepted], clock: int) -> Bag:
    """Give the bag of the pairs and of the unmatched rows that have been told, when the clock says `clock` (ms)."""
    taken = list(accepted)
    results: list[Change] = []
    for place, (record, now) in enumerate(taken):
        earlier = [other for other, _ in taken[:place] if _matches(join, record, other, now)]
        later = [other for other, then in taken[place + 1 :] if _matches(join, other, record, then)]
        if record.input == "left" or join.right_drives:
            results += [pair(record, other) for other in earlier]
        told = not later and not join.is_open(record.input, record.timestamp, clock) if join.emit == "close" else True
        if join.tells_unmatched(record.input) and not earlier and (told or record.key is None):
            results.append(alone(record))
    return bag(results)


def _matches(join: StreamStreamJoin, record: Record, earlier: Record, clock: int) -> bool:
    """Whether a record that arrives when the clock says `clock` finds an earlier one of the other stream."""
    if record.key is None or record.key != earlier.key or record.input == earlier.input:
        return False
    left, right = (record, earlier) if record.input == "left" else (earlier, record)
    bounded = join.within(left.timestamp, right.timestamp)
    return bounded and join.is_open(earlier.input, earlier.timestamp, clock)


def pair(one: Record, other: Record) -> Change:
    """Give what two partners are told as."""
    left, right = (one, other) if one.input == "left" else (other, one)
    return Change(one.key, None, [left.value, right.value], max(one.timestamp, other.timestamp))


def alone(record: Record) -> Change:
    """Give what a row without partner is told as."""
    value = [record.value, None] if record.input == "left" else [None, record.value]
    return Change(record.key, None, value, record.timestamp)


@dataclass
class Row:
    """A buffered record, and whether it has found a partner."""

    record: Record
    matched: bool = False


class Behaviour:
    """The state machine: a stream is buffered, as long as a record of the other can still find a partner in it."""

    def __init__(self, join: StreamStreamJoin, clock: Clock) -> None:
        self.join = join
        self.clock = clock
        self.buffers: dict[str, dict[Key, list[Row]]] = {"left": defaultdict(list), "right": defaultdict(list)}

    def arrive(self, record: Record) -> list[Output]:
        """Take a record: tell what the clock has closed, then its pairs, or that it has none."""
        join = self.join
        if record.key is None and join.null_key == "drop":
            return [Dropped(None, "null key")]
        before = self.clock.now
        self.clock.observe(record.timestamp)
        told = self.advance() if self.clock.now > before else []
        if record.key is None and not join.tells_unmatched(record.input):
            return [*told, Dropped(None, "null key")]
        if record.value is None:
            return [*told, Dropped(record.key, "null value")]
        if not join.is_open(record.input, record.timestamp, self.clock.now):
            return [*told, Dropped(record.key, "late")]
        if record.key is None:
            return [*told, alone(record)]

        others = self.buffers["right" if record.input == "left" else "left"][record.key]
        partners = [row for row in others if _matches(join, record, row.record, self.clock.now)]
        if record.input == "right" or join.right_drives:  # else no one looks up left rows
            self.buffers[record.input][record.key].append(Row(record, matched=bool(partners)))
        if record.input == "right" and not join.right_drives:
            return told
        for partner in partners:
            partner.matched = True
        told += [pair(record, row.record) for row in sorted(partners, key=lambda row: row.record.timestamp)]
        if not partners and join.emit != "close" and join.tells_unmatched(record.input):
            told.append(alone(record))
        return told

    def advance(self) -> list[Output]:
        """Forget the rows that can find no partner any more, and tell the unmatched (where emit is close)."""
        closed: list[Record] = []
        for side, buffer in self.buffers.items():
            edge = self.join.close_edge(side, self.clock.now)
            for key, rows in list(buffer.items()):
                gone = [row.record for row in rows if row.record.timestamp < edge and not row.matched]
                closed += gone if self.join.tells_unmatched(side) else []
                buffer[key] = [row for row in rows if row.record.timestamp >= edge]
        if self.join.emit != "close":
            return []
        closed.sort(key=lambda record: (record.timestamp, record.input == "left", record.key))
        return list(map(alone, closed))
