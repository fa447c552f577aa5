"""The deaths of a job's query: those that are planned, in its functions, and those that have happened."""

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
"""How often a query dies at most while a micro-batch's output is written, each time at another of its steps."""
MOST_STEPS = 30
"""At how many steps of a function for `foreachBatch` a query dies at most."""
MOST_CUTS = 6
"""At how many places within the writes of a function for `foreachBatch` a query dies at most."""


class JobDeaths(Deaths):
    """The planned crashes of a job's query, and those that have happened.

    Args:
        planned: The crashes.

    Attributes:
        happened: The crashes that have happened, in order, each with whether the micro-batch had rows.
        with_rows: The numbers of the micro-batches with rows: those in which the query has died, and all at the end.
        asked: The numbers of the micro-batches in which the query has died.
        steps_left: By the moment, the steps of the function for `foreachBatch` at which it hasn't died; None: they
            aren't known.
        died_at: Where it last died in the middle of an output.
        dies_in: The number of the micro-batch in which a writer of rows dies, and after how many rows; None: in none.
        writes_rows: Whether the sink writes by `foreach`.
        lost_state: The number of the micro-batch whose state is to be removed once the query has stopped; -1: of none.
    """

    def __init__(self, planned: Sequence[Crash] = ()) -> None:
        # Each death in a micro-batch is at another step, so that a few batches have them all.
        super().__init__([at for at in planned for _ in range(1 if at.step else DEATHS.get(at.moment, 1))])
        self.happened: list[tuple[Crash, bool]] = []
        self.with_rows: set[int] = set()
        self.asked: set[int] = set()
        self.steps_left: dict[Moment, list[int]] | None = None
        self.died_at = ""
        self.dies_in: tuple[int, int] | None = None
        self.writes_rows, self.lost_state = False, -1

    def died(self, crash: Crash, rows: DataFrame, batch_id: int) -> None:
        """Note that a crash happens, and whether the micro-batch has rows."""
        super().died(crash if crash in self.planned else crash._replace(step=0), rows, batch_id)
        if batch_id not in self.asked:  # the answer takes as long as the micro-batch, and is the same each time
            self.asked.add(batch_id)
            self.with_rows |= set() if rows.isEmpty() else {batch_id}
        self.happened.append((crash, batch_id in self.with_rows))

    def dying(self, function: OfBatch, place: PlaceOf) -> OfBatch:
        """Wrap a function for `foreachBatch`, so that it dies in the planned micro-batches, and between its lines."""

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
                planned = [at for at in planned if at.moment == WITHIN]  # all of this micro-batch is written
            else:
                function(rows, batch_id)
            for other in planned:  # the function has returned, so these deaths can't happen any more
                self.planned.remove(other)

        return super().dying(in_the_middle, place)

    def next_in_the_middle(self, planned: Sequence[Crash], batch_id: int) -> Crash | None:
        """Return the crash that is next while a micro-batch's output is written, with its step; None: there is none."""
        for moment in OF_SINKS:
            first = next((at for at in planned if at.moment == moment), None)
            if first is not None and first.step:
                return first
            left = (self.steps_left or {}).get(moment)
            if first is not None and left and self.may_have_rows(batch_id):
                return first._replace(step=left.pop(0))
        return None

    def may_have_rows(self, batch_id: int) -> bool:
        """Return whether a micro-batch may have rows: a function may return early where there are none."""
        return batch_id not in self.asked or batch_id in self.with_rows

    def dying_writer(self, writer: Any) -> Any:
        """Wrap what `foreach` is given, so that it dies in the micro-batch that is planned."""
        self.writes_rows = True
        return writer if self.dies_in is None else dying_writer(writer, *self.dies_in)

    def by_micro_batch(self, steps: int) -> list[tuple[int, list[Crash]]]:
        """Return the planned crashes of each micro-batch, by its number, where each batch has so many."""
        numbers: dict[int, list[Crash]] = {}
        for crash in dict.fromkeys(self.planned):
            numbers.setdefault(crash.batch * steps + (not crash.data), []).append(crash)
        return [*numbers.items()]


def _spread(count: int, most: int) -> list[int]:
    """Return at most so many numbers from 1 to `count`, at equal distances."""
    return [*range(1, count + 1, count // most + 1)]
