"""Mutants of range aggregates on Spark."""

from __future__ import annotations

from typing import Any

from ....spark_impl.range_aggregate import RangeLogic, Retained
from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput, changed, dropped
from ...registration.mutants import mutants_of
from .making import SharingState, logics_in, mixed, returning


class StartExclusive(RangeLogic):
    """A row exactly at the start of a range is excluded."""

    def inside(self, state: list[Retained], timestamp: int) -> list[Retained]:
        start = timestamp - self.ranges.preceding_ms
        return [row for row in super().inside(state, timestamp) if row.timestamp > start or row.timestamp == timestamp]


class StartOneEarly(RangeLogic):
    """A range starts a step too early."""

    def inside(self, state: list[Retained], timestamp: int) -> list[Retained]:
        start = timestamp - self.ranges.preceding_ms - 1
        return [row for row in state if start <= row.timestamp <= timestamp]


class EndExclusive(RangeLogic):
    """A range contains its own row, but no other row with the same timestamp."""

    def inside(self, state: list[Retained], timestamp: int) -> list[Retained]:
        *before, own = super().inside(state, timestamp)
        return [*(row for row in before if row.timestamp < timestamp), own]


class LooksAhead(RangeLogic):
    """A late row's range also contains rows after the late row."""

    def inside(self, state: list[Retained], timestamp: int) -> list[Retained]:
        return [row for row in state if row.timestamp >= timestamp - self.ranges.preceding_ms]


class WrongSign(RangeLogic):
    """A range lies after its row, instead of before it."""

    def inside(self, state: list[Retained], timestamp: int) -> list[Retained]:
        return super().inside(state, timestamp + self.ranges.preceding_ms)


class RowsForRange(RangeLogic):
    """The range is counted in rows, not in ms (ROWS for RANGE)."""

    def inside(self, state: list[Retained], timestamp: int) -> list[Retained]:
        return [row for row in state if row.timestamp <= timestamp][-self.ranges.preceding_ms - 1 :]


class OrderOfArrival(RangeLogic):
    """The rows of a range are aggregated by arrival, not by timestamp."""

    def hold(self, state: list[Retained], row: Retained) -> None:
        state.append(row)

    def inside(self, state: list[Retained], timestamp: int) -> list[Retained]:
        return [row for row in state if timestamp - self.ranges.preceding_ms <= row.timestamp <= timestamp]


class TiesReversed(RangeLogic):
    """A row is stored before earlier arrivals with the same timestamp."""

    def hold(self, state: list[Retained], row: Retained) -> None:
        state.insert(sum(other.timestamp < row.timestamp for other in state), row)


class TiesOverwrite(RangeLogic):
    """A row replaces another row with the same timestamp."""

    def hold(self, state: list[Retained], row: Retained) -> None:
        state[:] = [other for other in state if other.timestamp != row.timestamp]
        super().hold(state, row)


class LateDropped(RangeLogic):
    """A row that arrives after a later row of its key is dropped."""

    def take(self, key: Key, state: list[Retained], row: Arrived, clock: int) -> list[LogicOutput]:
        if state and row.timestamp is not None and row.timestamp < state[-1].timestamp:
            return [dropped(row, "late")]
        return super().take(key, state, row, clock)


class MendsAnswers(RangeLogic):
    """A late row makes Spark emit again the results of later rows whose ranges contain the late row."""

    def take(self, key: Key, state: list[Retained], row: Arrived, clock: int) -> list[LogicOutput]:
        emitted, at = super().take(key, state, row, clock), row.timestamp or 0
        later = {other.timestamp for other in state if at < other.timestamp <= at + self.ranges.preceding_ms}
        return [*emitted, *(changed(row, self.answer(key, self.inside(state, one)), one) for one in sorted(later))]


class NewestDecidesWhatIsKept(RangeLogic):
    """Rows outside the newest row's range are forgotten, so a late row misses them."""

    def pack(self, state: list[Retained]) -> tuple[Any, ...] | None:
        return super().pack(self.inside(state, state[-1].timestamp) if state else state)


class NewestStamps(RangeLogic):
    """A result has the timestamp of its key's newest row, instead of its own row's timestamp."""

    def take(self, key: Key, state: list[Retained], row: Arrived, clock: int) -> list[LogicOutput]:
        return [emitted._replace(timestamp=state[-1].timestamp) for emitted in super().take(key, state, row, clock)]


EmittedTwice = returning(RangeLogic, "Every row has two results", take=lambda found: found * 2)
ForgetsBetweenBatches = returning(RangeLogic, "State is not saved between batches", pack=lambda found: None)
ShuffleOrder = returning(
    RangeLogic, "A batch is processed in reverse order of arrival", in_order=lambda found: found[::-1]
)
StateOfAnotherKey = mixed(RangeLogic, SharingState)

MUTANTS = mutants_of("range_aggregate", RangeLogic, "list", logics_in(globals(), RangeLogic))
