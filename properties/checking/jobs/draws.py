"""Draws the histories of a job's check, and lists the coverage goals that the histories miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....reference.core.durations import microseconds_of
from ...generators.columns.histories.drawing import BASES, closed, draw_histories
from ...generators.columns.histories.goals import covered, goals
from ...generators.columns.model import JobHistory
from ...generators.coverage import fewest_missing
from ...laws.expected.oracle import Oracle
from ...witnesses.job.plan.plans import Plan
from ...witnesses.run_options import RunOptions
from .arguments import CheckOptions

DAY_US = 86_400_000_000


def with_identities(options: CheckOptions, oracle: Oracle) -> CheckOptions:
    """Return the options of a check, with inputs that repeat whole rows if the oracle treats rows of equal identity as
    one event.
    """
    inputs = [one if one.identity else replace(one, identity=(*oracle.identity(one.source),)) for one in options.inputs]
    return replace(options, inputs=inputs)


class Draws:
    """Draws the histories of a check; the same seed draws the same histories.

    Args:
        options: The options of the check.
        oracle: The oracle; the durations of the oracle and of the job's plan determine the drawn times.
        run: The run options of the job's queries.
        plan: The job's plan.
        takes_late: Whether drawn rows may be late.

    Attributes:
        delay_us: The delay of the query's watermark (µs).
        out_of_order_us: How far out of order rows may be without being late (µs).
        closes: Whether the last batch of each history closes all windows and groups.
    """

    def __init__(self, options: CheckOptions, oracle: Oracle, run: RunOptions, plan: Plan, takes_late: bool) -> None:
        self.options, self.inputs, self.takes_late = options, options.inputs, takes_late
        self.distances_us = sorted({*oracle.distances_us, *plan.durations_us, *options.timers_us})
        self.oracle, self.run = oracle, run
        self.delay_us, given = run.delay_us(plan.delays_us), options.out_of_order
        self.out_of_order_us = self.delay_us if given is None else microseconds_of("out_of_order", given)
        self.closes = oracle.closes(run.mode)

    def draw(self, count: int) -> list[JobHistory]:
        """Draw histories under several clock schedules, and return the histories that miss the fewest coverage goals of
        the oracle.
        """

        def draw(attempt: int) -> tuple[list[JobHistory], list[str]]:
            drawn = self._drawn(count, self.options.seed + attempt * len(BASES))  # the same day
            return drawn, self._unmet_of_oracle(drawn)

        return fewest_missing(draw)

    def _drawn(self, count: int, seed: int) -> list[JobHistory]:
        drawn = draw_histories(
            self.inputs,
            self.distances_us,
            count,
            seed,
            self.options.batches,
            late=self.takes_late,
            delay_us=self.out_of_order_us,
            timeouts_us=self.options.timeouts_us,
            edges_us=self.oracle.edges_us,
        )
        if not self.closes:
            return drawn
        beyond_us = 2 * sum((*self.distances_us, *self.options.timeouts_us)) + DAY_US
        return [closed(history, beyond_us) for history in drawn]

    def _unmet_of_oracle(self, histories: Sequence[JobHistory]) -> list[str]:
        return self.oracle.unmet(histories, [given.source for given in self.inputs], self.run)

    def unmet(self, histories: Sequence[JobHistory]) -> list[str]:
        """Return the coverage goals that none of the histories meets."""
        timeouts_us, sources = self.options.timeouts_us, [given.source for given in self.inputs]
        wanted = goals(self.inputs, self.distances_us, self.takes_late and self.delay_us > 0, timeouts_us)
        met = covered(histories, sources, self.distances_us, self.delay_us, timeouts_us)
        return [*(goal for goal in wanted if goal not in met), *self._unmet_of_oracle(histories)]
