"""Draws the histories of a check of a job, and says which coverage goals they leave unmet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...generators.columns.drawing import closed, covered, draw_histories, goals
from ...generators.columns.inputs import ResolvedInput
from ...generators.columns.model import JobHistory
from ...laws.variation import BATCHES

DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Draws:
    """Draws the histories of a check.

    Attributes:
        inputs: The job's inputs.
        seed: The same seed draws the same histories.
        distances_us: The durations of the oracle and of the job's plan, in microseconds.
        takes_late: Whether rows may be late.
        delay_us: The delay of the query's watermark, in microseconds.
        out_of_order_us: How far out of order rows may be without being late, in microseconds.
        closes: Whether the end of a history closes everything.
    """

    inputs: Sequence[ResolvedInput]
    seed: int
    distances_us: Sequence[int]
    takes_late: bool
    delay_us: int
    out_of_order_us: int
    closes: bool

    def draw(self, count: int) -> list[JobHistory]:
        """Draw histories under one clock schedule."""
        drawn = draw_histories(
            self.inputs,
            self.distances_us,
            count,
            self.seed,
            BATCHES,
            late=self.takes_late,
            delay_us=self.out_of_order_us,
        )
        if not self.closes:
            return drawn
        beyond_us = 2 * sum(self.distances_us) + DAY_US
        return [closed(history, beyond_us) for history in drawn]

    def unmet(self, histories: Sequence[JobHistory]) -> list[str]:
        """Return the coverage goals that histories leave unmet."""
        wanted = goals(self.inputs, self.distances_us, late=self.takes_late and self.delay_us > 0)
        sources = [given.source for given in self.inputs]
        met = covered(histories, sources, self.distances_us, self.delay_us)
        return [goal for goal in wanted if goal not in met]
