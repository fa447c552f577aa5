"""Mutants of the stream-stream join that need drawn definitions, clocks, keys and values."""

from __future__ import annotations

from typing import Any

from .....reference.definitions.joins import StreamStreamJoin
from .....spark_impl.runtime.logic import TOMBSTONE, Arrived, Key, LogicOutput, changed, dropped
from .....spark_impl.stream_stream_join import OTHER, Buffered, Buffers, StreamStreamLogic
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, redeclared, redeclaring, returning
from .common import (
    DroppingEmptyKeys,
    MistakingCauses,
    altering,
    as_32_bit,
    before_separator,
    empty_text_to_null,
    is_falsy,
    mistaking_keys,
    zero_to_null,
)

ZeroDropped = altering(StreamStreamLogic, "A record whose value is 0 is dropped as null", zero_to_null)
EmptyTextDropped = altering(
    StreamStreamLogic, "A record whose value is the empty text is dropped as null", empty_text_to_null
)
ValuesOverflow = altering(StreamStreamLogic, "Whole numbers have 32 bits, and overflow", as_32_bit)
KeysCutAtSeparator = mistaking_keys(
    StreamStreamLogic, "Keys with the same part before `@` share their records", before_separator
)
EmptyKeyDropped = mixed(StreamStreamLogic, DroppingEmptyKeys)
CauseOfRowBefore = mixed(StreamStreamLogic, MistakingCauses, "A pair names the previous row as its cause")


class BoundsInOrder(StreamStreamLogic):
    """`before` and `after` are swapped if `before` is larger."""

    def __init__(self, join: StreamStreamJoin) -> None:
        before_ms, after_ms = sorted((join.before_ms, join.after_ms))
        super().__init__(redeclared(join, before_ms=before_ms, after_ms=after_ms))


GraceUpToReach = redeclaring(
    StreamStreamLogic,
    "A grace larger than both bounds together is cut to their sum",
    lambda join: {"grace_ms": min(join.grace_ms, join.before_ms + join.after_ms)},
)


class BoundOfZeroExclusive(StreamStreamLogic):
    """A bound of 0 excludes partners with the same timestamp."""

    def partners(self, state: Buffers, side: str, timestamp: int, clock: int) -> list[int]:
        found = super().partners(state, side, timestamp, clock)
        if self.join.before_ms and self.join.after_ms:
            return found
        return [index for index in found if state[OTHER[side]][index].timestamp != timestamp]


class OnePartnerAtBoundOfZero(StreamStreamLogic):
    """A right record finds only its first partner if a bound is 0."""

    def partners(self, state: Buffers, side: str, timestamp: int, clock: int) -> list[int]:
        found = super().partners(state, side, timestamp, clock)
        return found[:1] if side == "right" and 0 in (self.join.before_ms, self.join.after_ms) else found


class NullKeyKeptByInner(StreamStreamLogic):
    """An inner join that keeps null keys emits a row with a null key without a partner."""

    def take(self, key: Key, state: Buffers, row: Arrived, clock: int) -> list[LogicOutput]:
        emitted = super().take(key, state, row, clock)
        if self.keeps_null_keys and any(part is None for part in key) and self.join.join == "inner":
            return [changed(row, self.alone(row.side, row.value), row.timestamp)] if row.value is not None else emitted
        return emitted


class ForgetsAtTheEdge(StreamStreamLogic):
    """A record is forgotten 1 ms too early, at the last time when it could find a partner."""

    def keep(self, state: Buffers, emitted: int, clock: int) -> Buffers:
        kept = super().keep(state, emitted, clock)
        for side in kept:
            edge = self.join.close_edge(side, clock)
            kept[side] = [row for row in kept[side] if row.timestamp != edge]
        return kept


class PartnersAtTheEdgeMissed(StreamStreamLogic):
    """A record finds no partner at the last time when it could find one."""

    def partners(self, state: Buffers, side: str, timestamp: int, clock: int) -> list[int]:
        edge, others = self.join.close_edge(OTHER[side], clock), state[OTHER[side]]
        found = super().partners(state, side, timestamp, clock)
        return [index for index in found if others[index].timestamp != edge or not clock]


DueOneLate = returning(
    StreamStreamLogic,
    "The timer of an unmatched record is set 1 ms late",
    due=lambda found: None if found is None else found + 1,
)


class NeverDueForBothSides(StreamStreamLogic):
    """No timer is set for a key with records on both sides."""

    def due(self, state: Buffers, clock: int) -> int | None:
        return None if state["left"] and state["right"] else super().due(state, clock)


LastClosedFirst = returning(
    StreamStreamLogic,
    "Unmatched records of a key that close together are emitted in reverse order of time",
    close=lambda found: found[::-1],
)
ClosedAsTombstone = returning(
    StreamStreamLogic,
    "A record that closes without a partner is labelled a tombstone",
    close=lambda found: [one._replace(change=TOMBSTONE) for one in found],
)
UnpackedReversed = returning(
    StreamStreamLogic,
    "Records are read from the state in reverse order",
    unpack=lambda found: {side: rows[::-1] for side, rows in found.items()},
)


class MatchesNotSaved(StreamStreamLogic):
    """The state forgets that a record with a value of false, 0 or empty has found its partner."""

    def unpack(self, fields: tuple[Any, ...]) -> Buffers:
        def unmatched(row: Buffered) -> Buffered:
            return row._replace(matched=False) if is_falsy(row.value) else row

        return {side: list(map(unmatched, rows)) for side, rows in super().unpack(fields).items()}


class DroppedByTheClock(StreamStreamLogic):
    """A dropped late record is reported with the clock's time instead of its own time."""

    def take(self, key: Key, state: Buffers, row: Arrived, clock: int) -> list[LogicOutput]:
        emitted = super().take(key, state, row, clock)
        late = dropped(row, "late")
        return [late._replace(timestamp=clock) if one == late else one for one in emitted]


MUTANTS_OF_DRAWN = mutants_of(
    "stream_stream_join",
    StreamStreamLogic,
    "outer, close",
    logics_in(globals(), StreamStreamLogic),
    elsewhere={"inner": (NullKeyKeptByInner,)},
)
