"""Stream-stream joins: records of two streams with the same key, within time bounds, are joined in pairs.

Source: Kafka Streams Join Semantics, "KStream-KStream Join", "Output of Join"; Samza's window operator, "Stream-Stream
Join"; unmatched rows are ordered as in Kafka Streams. The option `emit` decides when an unmatched row is emitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .core.clocks import Clock
from .core.records import Accepted, Bag, Change, Dropped, Key, Output, Record, bag
from .definitions.joins import StreamStreamJoin


def meaning(join: StreamStreamJoin, accepted: Iterable[Accepted], clock: int) -> Bag:
    """Return the bag of the pairs and of the unmatched rows emitted by the time `clock` (ms)."""
    taken = list(accepted)
    results: list[Change] = []
    for index, (record, now) in enumerate(taken):
        earlier = [other for other, _ in taken[:index] if _matches(join, record, other, now)]
        later = [other for other, then in taken[index + 1 :] if _matches(join, other, record, then)]
        if record.input == "left" or join.right_drives:
            results += [pair(record, other) for other in earlier]
        emitted = (
            not later and not join.is_open(record.input, record.timestamp, clock) if join.emit == "close" else True
        )
        if join.emits_unmatched(record.input) and not earlier and (emitted or record.key is None):
            results.append(alone(record))
    return bag(results)


def _matches(join: StreamStreamJoin, record: Record, earlier: Record, clock: int) -> bool:
    """Return whether a record that arrives at the clock time `clock` (ms) can join a record that arrived before."""
    if record.key is None or record.key != earlier.key or record.input == earlier.input:
        return False
    left, right = (record, earlier) if record.input == "left" else (earlier, record)
    bounded = join.within(left.timestamp, right.timestamp)
    return bounded and join.is_open(earlier.input, earlier.timestamp, clock)


def pair(record: Record, partner: Record) -> Change:
    """Return the result of two partners: `[left value, right value]`, with the later timestamp."""
    left, right = (record, partner) if record.input == "left" else (partner, record)
    return Change(record.key, None, [left.value, right.value], max(record.timestamp, partner.timestamp))


def alone(record: Record) -> Change:
    """Return the result of a record without a partner: its value, and None for the other side."""
    value = [record.value, None] if record.input == "left" else [None, record.value]
    return Change(record.key, None, value, record.timestamp)


@dataclass
class Buffered:
    """A buffered record, and whether it has found a partner."""

    record: Record
    matched: bool = False


class Behaviour:
    """The state machine: stores a record as long as a record of the other stream can still join it."""

    def __init__(self, join: StreamStreamJoin, clock: Clock) -> None:
        self.join = join
        self.clock = clock
        self.buffers: dict[str, dict[Key, list[Buffered]]] = {"left": defaultdict(list), "right": defaultdict(list)}

    def arrive(self, record: Record) -> list[Output]:
        """Emit the results that the clock has closed, then the record's pairs, or the record without a partner."""
        join = self.join
        if record.key is None and join.null_key == "drop":
            return [Dropped(None, "null key")]
        before = self.clock.now
        self.clock.observe(record.timestamp)
        emitted = self.advance() if self.clock.now > before else []
        if record.key is None and not join.emits_unmatched(record.input):
            return [*emitted, Dropped(None, "null key")]
        if record.value is None:
            return [*emitted, Dropped(record.key, "null value")]
        if not join.is_open(record.input, record.timestamp, self.clock.now):
            return [*emitted, Dropped(record.key, "late")]
        if record.key is None:
            return [*emitted, alone(record)]

        others = self.buffers["right" if record.input == "left" else "left"][record.key]
        partners = [row for row in others if _matches(join, record, row.record, self.clock.now)]
        # Store no left rows if right records emit nothing, because then no record looks up left rows.
        if record.input == "right" or join.right_drives:
            self.buffers[record.input][record.key].append(Buffered(record, matched=bool(partners)))
        if record.input == "right" and not join.right_drives:
            return emitted
        for partner in partners:
            partner.matched = True
        emitted += [pair(record, row.record) for row in sorted(partners, key=lambda row: row.record.timestamp)]
        if not partners and join.emit != "close" and join.emits_unmatched(record.input):
            emitted.append(alone(record))
        return emitted

    def advance(self) -> list[Output]:
        """Forget the rows that can't find a partner any more; if emit is `close`, emit those that never found one."""
        closed: list[Record] = []
        for side, buffer in self.buffers.items():
            edge = self.join.close_edge(side, self.clock.now)
            for key, rows in list(buffer.items()):
                gone = [row.record for row in rows if row.record.timestamp < edge and not row.matched]
                closed += gone if self.join.emits_unmatched(side) else []
                buffer[key] = [row for row in rows if row.record.timestamp >= edge]
        if self.join.emit != "close":
            return []
        closed.sort(key=lambda record: (record.timestamp, record.input == "left", record.key))
        return list(map(alone, closed))
