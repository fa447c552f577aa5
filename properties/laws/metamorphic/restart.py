"""The law *restart*: stopping at a batch and restarting from the checkpoint changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ...generators.cohorts import Cohort
from ...witnesses.base import RunOptions
from ...witnesses.outcomes import Outcome, differences
from ...witnesses.spark.witness import QueryWitness
from ..base import Comparison, LawResult, Violation, violations
from ..runs import Run
from .reruns import RerunLaw

STOPPED_AND_CRASHED = RunOptions(stop_after=1, crash_in=2)
"""After which batch the query is stopped, and in which one it crashes between output and commit."""


class Restart(RerunLaw):
    """A run that is stopped once, and crashes once, emits what a run without that emits."""

    name = "restart"
    says = "stopping at a batch and restarting from the checkpoint changes nothing"
    goal = "changes after the restart"
    ways = (STOPPED_AND_CRASHED,)
    of_all = True

    def judge(self, run: Run, result: LawResult) -> Iterator[Violation]:
        """Compare the outcomes of the part that is run again."""
        outcomes = run.again(STOPPED_AND_CRASHED).outcomes
        result.judged += len(outcomes)
        stopped_after = STOPPED_AND_CRASHED.stop_after or 0
        result.covered[self.goal] += sum(
            any(entry.batch > stopped_after for entry in outcome.entries) for outcome in outcomes
        )
        yield from violations(run.histories, map(_compared, run.outcomes, outcomes))

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Run a cohort without and with a restart."""
        plain = witness.answers(cohort.histories)
        restarted = witness.answers(cohort.histories, STOPPED_AND_CRASHED)
        return list(map(_compared, plain.outcomes, restarted.outcomes))


def _compared(before: Outcome, after: Outcome) -> Comparison:
    sides = ("Spark without a restart", before), ("Spark with a stop and a crash", after)
    return Comparison(*sides, differences(before, after))
