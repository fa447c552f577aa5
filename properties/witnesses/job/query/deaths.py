"""The planned crashes of a job's query within its functions, and the crashes that have happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...run_options import MIDDLE, OF_SINKS, WITHIN, Crash, Moment
from ...spark.engine import Deaths, OfBatch, PlaceOf
from ...spark.failures import PlannedCrash
from ..dying import Steps, dying_writer
from ..dying.writes import Writes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DEATHS: Mapping[Moment, int] = {MIDDLE: 6}
"""The maximum number of deaths within a micro-batch's output; each death is at another step."""
MOST_STEPS = 30
"""The maximum number of steps of a `foreachBatch` function at which a query dies."""
MOST_CUTS = 6
"""The maximum number of positions within the writes of a `foreachBatch` function at which a query dies."""


class JobDeaths(Deaths):
    """The planned crashes of a job's query, and the crashes that have happened.

    Args:
        planned: The crashes.

    Attributes:
        happened: The crashes that have happened, in order, each with whether the micro-batch had rows.
        with_rows: The numbers of the micro-batches with rows; before the end of the run, only the micro-batches in
            which the query has died.
        asked: The numbers of the micro-batches in which the query has died.
        steps_left: For each moment, the steps of the `foreachBatch` function at which the query hasn't died yet (None:
            unknown).
        died_at: Where the query last died within an output, in words.
        dies_in: The number of the micro-batch in which a `foreach` writer dies, and the number of rows before the death
            (None: no micro-batch).
        writes_rows: Whether the sink writes with `foreach`.
        lost_state: The number of the micro-batch whose state is removed after the query has stopped; -1: none.
    """

    def __init__(self, planned: Sequence[Crash] = ()) -> None:
        # Each death in a micro-batch is at another step, so that a few batches cover all steps.
        super().__init__([at for at in planned for _ in range(1 if at.step else DEATHS.get(at.moment, 1))])
        self.happened: list[tuple[Crash, bool]] = []
        self.with_rows: set[int] = set()
        self.asked: set[int] = set()
        self.steps_left: dict[Moment, list[int]] | None = None
        self.died_at = ""
        self.dies_in: tuple[int, int] | None = None
        self.writes_rows, self.lost_state = False, -1

    def died(self, crash: Crash, rows: DataFrame, batch_id: int) -> None:
        """Record a crash, and whether its micro-batch has rows."""
        super().died(crash if crash in self.planned else crash._replace(step=0), rows, batch_id)
        if batch_id not in self.asked:  # once per micro-batch, because isEmpty may run the whole micro-batch
            self.asked.add(batch_id)
            self.with_rows |= set() if rows.isEmpty() else {batch_id}
        self.happened.append((crash, batch_id in self.with_rows))

    def dying(self, function: OfBatch, place: PlaceOf) -> OfBatch:
        """Wrap a `foreachBatch` function, so that it dies between its lines in the planned micro-batches."""

        def in_the_middle(rows: DataFrame, batch_id: int) -> None:
            planned = [at for at in self.planned if at.moment in OF_SINKS and place(batch_id) == at[:2]]
            crash = self.next_in_the_middle(planned, batch_id)
            if crash is not None:
                death = Steps(crash.step) if crash.moment == MIDDLE else Writes(crash.step)
                try:
                    death.run(function, rows, batch_id)
                except PlannedCrash:
                    self.died_at, self.lost_state = death.place, batch_id
                    self.died(crash, rows, batch_id)
                    raise
            elif planned and self.steps_left is None and self.may_have_rows(batch_id):
                steps, writes = Steps(), Writes()
                with writes.counted():
                    steps.run(function, rows, batch_id)
                self.steps_left = {
                    MIDDLE: _spread(steps.reached - 1, MOST_STEPS),
                    WITHIN: _spread(writes.reached, MOST_CUTS),
                }
                # the function has written this micro-batch completely
                planned = [at for at in planned if at.moment == WITHIN]
            else:
                function(rows, batch_id)
            for other in planned:  # the function has returned, so these crashes can no longer happen
                self.planned.remove(other)

        return super().dying(in_the_middle, place)

    def next_in_the_middle(self, planned: Sequence[Crash], batch_id: int) -> Crash | None:
        """Return the next crash within a micro-batch's output, with its step (None: no crash)."""
        for moment in OF_SINKS:
            first = next((at for at in planned if at.moment == moment), None)
            if first is not None and first.step:
                return first
            left = (self.steps_left or {}).get(moment)
            if first is not None and left and self.may_have_rows(batch_id):
                return first._replace(step=left.pop(0))
        return None

    def may_have_rows(self, batch_id: int) -> bool:
        """Return whether a micro-batch may have rows: a function may return early for a micro-batch without rows."""
        return batch_id not in self.asked or batch_id in self.with_rows

    def dying_writer(self, writer: Any) -> Any:
        """Wrap the argument of `foreach`, so that it dies in the planned micro-batch."""
        self.writes_rows = True
        return writer if self.dies_in is None else dying_writer(writer, *self.dies_in)

    def by_micro_batch(self, steps: int) -> list[tuple[int, list[Crash]]]:
        """Return the planned crashes, by the number of the micro-batch; a batch consists of `steps` micro-batches."""
        numbers: dict[int, list[Crash]] = {}
        for crash in dict.fromkeys(self.planned):
            numbers.setdefault(crash.batch * steps + (not crash.data), []).append(crash)
        return [*numbers.items()]


def _spread(count: int, most: int) -> list[int]:
    """Return at most `most` evenly spaced numbers from 1 to `count`."""
    return [*range(1, count + 1, count // most + 1)]
