"""The law *restart*: stopping a query after a batch and restarting it from its checkpoint doesn't change the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from ...witnesses.job.running import RESTORED
from ...witnesses.run_options import RunOptions
from ...witnesses.spark.answers import Answers
from ..runs import Sample
from ..variation import Variation
from .reruns import RerunLaw, numbered

ONCE, TWICE = "changes after the restart", "changes after two restarts in a row"
RESTARTS = 2
"""The number of a job's histories that run with all stops if each history runs alone, because such a query is slow."""


class Restart(RerunLaw):
    """Compares a run that is stopped, once or twice in a row, with a run without stops."""

    name, of_jobs = "restart", "a restart"
    says = "stopping at a batch and restarting from the checkpoint changes nothing"
    usual = (RunOptions(stop_after=(1, 2)),)

    def draw_ways(self, pool: int, batches: int, generator: Random) -> Sequence[RunOptions]:
        """Stop the query of every second pool twice in a row; in the first of these pools, records arrive after the
        stops.
        """
        if pool % 2:
            return ()
        stop = generator.randint(0, batches - (3 if pool else 4))
        return (RunOptions(stop_after=(stop, stop + 1)),)

    def goals(self, sample: Sample) -> Sequence[str]:
        return [ONCE, TWICE]

    def covered(self, sample: Sample, again: Answers, way: RunOptions) -> Mapping[str, int]:
        return {
            goal: sum(any(entry.batch > stop for entry in outcome.entries) for outcome in again.outcomes)
            for goal, stop in zip((ONCE, TWICE), sorted(way.stop_after), strict=False)
        }

    def names(self, plain: Answers, way: RunOptions) -> tuple[str, str]:
        return "Spark without a restart", f"Spark restarted after {numbered(way.stop_after)}"

    def everywhere(self, batches: int) -> RunOptions:
        return RunOptions(stop_after=tuple(range(max(1, batches - 1))))

    def draw(self, run: RunOptions, seed: int, batches: int) -> Sequence[int]:
        return range(batches - 1)

    def variation(self, run: RunOptions, given: Sequence[int]) -> Variation:
        """Return a variation that stops the query after batches, and restarts it from its checkpoint."""
        return Variation(
            replace(run, stop_after=tuple(given)),
            self.of_jobs,
            [*given],
            f"stopped after batch {', '.join(map(str, given))} and started again",
            "without a stop",
            # After a stop, `available_now` runs a batch without data, otherwise only at the end, so that rows are
            # late sooner.
            "batches" if run.trigger == "default" else "end",
            goals=(RESTORED,),
            parts=(lambda output: [self.variation(run, [stop]) for stop in given]) if len(given) > 1 else None,
            share=lambda number: self.variation(run, [*given][number % RESTARTS :: RESTARTS] or given),
        )
