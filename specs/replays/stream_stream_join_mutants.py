"""The mutants of `StreamStreamJoin.tla` as mutants of the reference.

Some mutants are bugs of a release of Kafka or Spark (`docs/facts.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from ...reference.core.clocks import Clock
from ...reference.core.records import Change, Dropped, Output, Record
from ...reference.definitions.joins import StreamStreamJoin
from ...reference.stream_stream_join import Behaviour, Buffered, alone


def _as(kind: type[StreamStreamJoin], join: StreamStreamJoin) -> StreamStreamJoin:
    return kind(**{field.name: getattr(join, field.name) for field in fields(join)})


def _is_pair(output: Output) -> bool:
    return isinstance(output, Change) and None not in output.value


class _Declared(Behaviour):
    """A mutant with a changed definition. The buffer drops expired rows whenever a record arrives, as in the model."""

    kind: type[StreamStreamJoin] = StreamStreamJoin

    def __init__(self, join: StreamStreamJoin, clock: Clock) -> None:
        super().__init__(_as(self.kind, join), clock)

    def arrive(self, record: Record) -> list[Output]:
        self.clock.observe(record.timestamp)
        return [*self.advance(), *super().arrive(record)]


class PairForEveryWindow(Behaviour):
    """A pair is emitted for each hopping window that contains both records."""

    def __init__(self, join: StreamStreamJoin, clock: Clock) -> None:
        super().__init__(join, clock)
        self.timestamps: dict[int, int] = {}

    def arrive(self, record: Record) -> list[Output]:
        self.timestamps[record.value] = record.timestamp
        return [one for output in super().arrive(record) for one in [output] * self.times(output)]

    def times(self, output: Output) -> int:
        """Count the windows [start, start + after] that contain both records of a pair."""
        if not isinstance(output, Change) or not _is_pair(output):
            return 1
        first, last = sorted(self.timestamps[number] for number in output.value)
        return len(range(max(0, last - self.join.after_ms), first + 1))


class _BoundExclusive(StreamStreamJoin):
    def within(self, left: int, right: int) -> bool:
        return super().within(left, right) and right != left - self.before_ms


class BoundExclusive(_Declared):
    """A partner exactly `before_ms` earlier is not joined."""

    kind = _BoundExclusive


class _BoundsSwapped(StreamStreamJoin):
    def within(self, left: int, right: int) -> bool:
        return left - self.after_ms <= right <= left + self.before_ms


class BoundsSwapped(_Declared):
    """`before_ms` and `after_ms` are swapped."""

    kind = _BoundsSwapped


class _ExpiresEarly(StreamStreamJoin):
    def is_open(self, side: str, timestamp: int, clock: int) -> bool:
        return timestamp >= super().close_edge(side, clock)

    def close_edge(self, side: str, clock: int) -> int:
        return super().close_edge(side, clock) + 1


class ExpiresEarly(_Declared):
    """The buffer drops a row 1 ms too early."""

    kind = _ExpiresEarly


class _ClosesWithoutGrace(StreamStreamJoin):
    def is_open(self, side: str, timestamp: int, clock: int) -> bool:
        return timestamp >= super().close_edge(side, clock)

    def close_edge(self, side: str, clock: int) -> int:
        return super().close_edge(side, clock) + self.grace_ms


class ClosesWithoutGrace(_Declared):
    """A row is emitted without a partner after its time bounds, although its grace isn't over (KAFKA-19536)."""

    kind = _ClosesWithoutGrace


class MatchForgotten(Behaviour):
    """A row counts as matched only while its partner is stored (SPARK-26154)."""

    def advance(self) -> list[Output]:
        rows = {side: [row for kept in buffer.values() for row in kept] for side, buffer in self.buffers.items()}
        matched = [(row, row.matched) for side in rows for row in rows[side]]
        for left in rows["left"]:
            left.matched = any(self.joins(left.record, right.record) for right in rows["right"])
        for right in rows["right"]:
            right.matched = any(self.joins(left.record, right.record) for left in rows["left"])
        emitted = super().advance()
        for row, was in matched:
            row.matched = was
        return emitted

    def joins(self, left: Record, right: Record) -> bool:
        """Return whether two records are partners."""
        return left.key == right.key and self.join.within(left.timestamp, right.timestamp)


class _NeverLate(StreamStreamJoin):
    def is_open(self, side: str, timestamp: int, clock: int) -> bool:
        return True


class LateRecordsJoin(_Declared):
    """Late records are not dropped (KAFKA-16123)."""

    kind = _NeverLate


class _ClockOfEach(StreamStreamJoin):
    def clocks(self) -> dict[str, int]:
        """Return the largest timestamp of each input (ms)."""
        found: dict[str, int] = self.__dict__.setdefault("seen", {"left": 0, "right": 0})
        return found

    def close_edge(self, side: str, clock: int) -> int:
        return super().close_edge(side, self.clocks()[side])


class ClockOfEachInput(_Declared):
    """Each input has its own clock."""

    kind = _ClockOfEach

    def arrive(self, record: Record) -> list[Output]:
        assert isinstance(self.join, _ClockOfEach)
        clocks = self.join.clocks()
        clocks[record.input] = max(clocks[record.input], record.timestamp)
        return super().arrive(record)


class LeftRowsKept(Behaviour):
    """The join also stores left rows if only left records emit results, although no record looks up left rows."""

    def arrive(self, record: Record) -> list[Output]:
        emitted = super().arrive(record)
        taken = not any(isinstance(one, Dropped) for one in emitted)
        if taken and record.key is not None and record.input == "left" and not self.join.right_drives:
            self.buffers["left"][record.key].append(Buffered(record))
        return emitted


class NullInAnyCase(Behaviour):
    """A record is emitted without a partner when it arrives, even if it has a partner."""

    def arrive(self, record: Record) -> list[Output]:
        emitted = super().arrive(record)
        found = bool(emitted) and _is_pair(emitted[-1])
        return [*emitted, alone(record)] if found and self.join.emits_unmatched(record.input) else emitted


class NullAgainOnClose(Behaviour):
    """A row that was emitted without a partner at once is emitted again when it closes."""

    def advance(self) -> list[Output]:
        declared, self.join = self.join, replace(self.join, emit="close")
        emitted = super().advance()
        self.join = declared
        return emitted


class RightClosesSilently(Behaviour):
    """Only left rows are emitted when they close."""

    def advance(self) -> list[Output]:
        return [one for one in super().advance() if isinstance(one, Change) and one.value[0] is not None]


MUTANTS: Mapping[str, type[Behaviour]] = {
    "none": Behaviour,
    "pair for every window": PairForEveryWindow,
    "bound exclusive": BoundExclusive,
    "bounds swapped": BoundsSwapped,
    "expires early": ExpiresEarly,
    "closes without grace": ClosesWithoutGrace,
    "match forgotten": MatchForgotten,
    "late records join": LateRecordsJoin,
    "clock of each input": ClockOfEachInput,
    "clock goes back": _Declared,
    "left rows kept": LeftRowsKept,
    "null in any case": NullInAnyCase,
    "null again on close": NullAgainOnClose,
    "right closes silently": RightClosesSilently,
}
"""The state machine for each value of the constant `Mutant`; "clock goes back" is a clock."""
