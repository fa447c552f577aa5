"""The law *restart*: stopping at a batch and restarting from the checkpoint changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...generators.cohorts import Cohort
from ...outcomes.outcomes import Outcome, differences
from ...witnesses.run_options import RunOptions
from ...witnesses.spark.witness import QueryWitness
from ..base import Comparison, LawResult, Violation, violations
from ..runs import Run, Sample
from .reruns import RerunLaw, numbered

ONCE, TWICE = "changes after the restart", "changes after two restarts in a row"


class Restart(RerunLaw):
    """A run that is stopped, once or twice in a row, emits what a run without that emits."""

    name = "restart"
    says = "stopping at a batch and restarting from the checkpoint changes nothing"
    usual = (RunOptions(stop_after=(1, 2)),)

    def goals(self, sample: Sample) -> Sequence[str]:
        return [ONCE, TWICE]

    def judge(self, run: Run, result: LawResult) -> Iterator[Violation]:
        """Compare the outcomes of the part that is run again."""
        for way in self.ways(run.sample):
            outcomes = run.again(way).outcomes
            result.judged += len(outcomes)
            for goal, stop in zip((ONCE, TWICE), sorted(way.stop_after), strict=False):
                result.covered[goal] += sum(any(entry.batch > stop for entry in one.entries) for one in outcomes)
            compared = (_compared(*both, way) for both in zip(run.outcomes, outcomes, strict=False))
            yield from violations(run.histories, compared, way)

    def recheck_in(self, cohort: Cohort, witness: QueryWitness, way: RunOptions | None) -> list[Comparison]:
        """Run a cohort without and with restarts: after the batches where it was broken, or after every one."""
        count = len(cohort.schedule)
        way = RunOptions(stop_after=tuple(range(max(1, count - 1)))) if way is None else way.clipped(count)
        plain, restarted = witness.answers(cohort.histories), witness.answers(cohort.histories, way)
        return [_compared(*both, way) for both in zip(plain.outcomes, restarted.outcomes, strict=True)]


def _compared(before: Outcome, after: Outcome, way: RunOptions) -> Comparison:
    sides = ("Spark without a restart", before), (f"Spark restarted after {numbered(way.stop_after)}", after)
    return Comparison(*sides, differences(before, after))
