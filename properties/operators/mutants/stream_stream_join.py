"""Mutants of the stream-stream join on Spark."""

from __future__ import annotations

from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput
from ....spark_impl.stream_stream_join import OTHER, Buffered, Buffers, StreamStreamLogic
from ...registration.mutants import mutants_of
from .making import SharingState, logics_in, mixed, returning


class ExclusiveBounds(StreamStreamLogic):
    """A record exactly on a bound finds no partner."""

    def partners(self, state: Buffers, side: str, timestamp: int, clock: int) -> list[int]:
        def distance(row: Buffered) -> int:
            return row.timestamp - timestamp if side == "left" else timestamp - row.timestamp

        found = super().partners(state, side, timestamp, clock)
        return [
            at for at in found if distance(state[OTHER[side]][at]) not in (self.join.after_ms, -self.join.before_ms)
        ]


class BoundsSwapped(StreamStreamLogic):
    """`before` and `after` are swapped."""

    def partners(self, state: Buffers, side: str, timestamp: int, clock: int) -> list[int]:
        edge = self.join.close_edge(OTHER[side], clock)

        def within(other: int) -> bool:
            return self.join.within(*((other, timestamp) if side == "left" else (timestamp, other)))

        return [
            index for index, row in enumerate(state[OTHER[side]]) if row.timestamp >= edge and within(row.timestamp)
        ]


FirstPartnerOnly = returning(
    StreamStreamLogic, "A record is paired with only one partner", partners=lambda found: found[:1]
)


class LeftDrivesAlone(StreamStreamLogic):
    """A right record finds no partner."""

    def partners(self, state: Buffers, side: str, timestamp: int, clock: int) -> list[int]:
        return super().partners(state, side, timestamp, clock) if side == "left" else []


LateRecordsJoin = returning(
    StreamStreamLogic, "Records beyond the grace are accepted (KAFKA-16123)", is_late=lambda found: False
)


class GraceForgotten(StreamStreamLogic):
    """A record is late as soon as its time bounds are over, despite the grace."""

    def is_late(self, side: str, timestamp: int, clock: int) -> bool:
        return super().is_late(side, timestamp - self.join.grace_ms, clock)


class NullThenPair(StreamStreamLogic):
    """A row that has found a partner is also emitted with null when it closes (SPARK-26154)."""

    def close(self, state: Buffers, emitted: int, clock: int) -> list[LogicOutput]:
        forgetful = {side: [row._replace(matched=False) for row in rows] for side, rows in state.items()}
        self.forget(state, clock)
        return super().close(forgetful, emitted, clock)


class ClosesOneEarly(StreamStreamLogic):
    """An unmatched row is emitted one step before it closes."""

    def close(self, state: Buffers, emitted: int, clock: int) -> list[LogicOutput]:
        return super().close(state, emitted, clock + 1)

    def due(self, state: Buffers, clock: int) -> int | None:
        time = super().due(state, clock + 1)
        return None if time is None else time - 1


class UnmatchedNotEmitted(StreamStreamLogic):
    """A row without a partner is forgotten without output."""

    def close(self, state: Buffers, emitted: int, clock: int) -> list[LogicOutput]:
        super().close(state, emitted, clock)
        return []


class OwnTimestamp(StreamStreamLogic):
    """A pair has the timestamp of the row that arrived last."""

    def pair(self, row: Arrived, partner: Buffered) -> LogicOutput:
        return super().pair(row, partner)._replace(timestamp=row.timestamp)


class StateNeverExpires(StreamStreamLogic):
    """Records stay in the state forever."""

    def keep(self, state: Buffers, emitted: int, clock: int) -> Buffers:
        return state

    def forget(self, state: Buffers, clock: int) -> None:
        for side, rows in state.items():
            edge = self.join.close_edge(side, clock)
            state[side] = [row._replace(matched=row.matched or row.timestamp < edge) for row in rows]


ForgetsBetweenBatches = returning(StreamStreamLogic, "State is not saved between batches", pack=lambda found: None)


class NullValueJoins(StreamStreamLogic):
    """A record whose value is null isn't dropped."""

    def take(self, key: Key, state: Buffers, row: Arrived, clock: int) -> list[LogicOutput]:
        return super().take(key, state, row if row.value is not None else row._replace(value="null"), clock)


NeverDue = returning(
    StreamStreamLogic,
    "No timer is set, so closed rows wait for the next row of their key",
    due=lambda found: None,
)
StateOfAnotherKey = mixed(StreamStreamLogic, SharingState)

MUTANTS = mutants_of("stream_stream_join", StreamStreamLogic, "outer, close", logics_in(globals(), StreamStreamLogic))
