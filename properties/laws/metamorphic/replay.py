"""The law *replay*: a batch that runs again after a crash between output and commit writes the same again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...generators.cohorts import Cohort
from ...witnesses.outcomes import Difference, Outcome
from ...witnesses.spark.answers import Answers
from ...witnesses.spark.witness import QueryWitness
from ..base import Comparison, LawResult, Violation, violations
from ..runs import Run
from .reruns import RerunLaw
from .restart import STOPPED_AND_CRASHED


class Replay(RerunLaw):
    """Rows of different keys may be swapped between two runs of a batch; rows of one key may not."""

    name = "replay"
    says = "a batch replayed after a crash between output and commit changes nothing downstream"
    goal = "batch replayed"
    ways = (STOPPED_AND_CRASHED,)
    of_all = True

    def judge(self, run: Run, result: LawResult) -> Iterator[Violation]:
        """Compare what the crashed batch wrote at first with what it wrote again."""
        again = run.again(STOPPED_AND_CRASHED)
        result.judged += len(again.outcomes)
        result.covered[self.goal] += again.replayed
        yield from violations(run.histories, _compared(run.outcomes, again))

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Run a cohort without and with a crash."""
        plain = witness.answers(cohort.histories)
        return _compared(plain.outcomes, witness.answers(cohort.histories, STOPPED_AND_CRASHED))


def _compared(plain: Sequence[Outcome], again: Answers) -> list[Comparison]:
    """Compare what was written twice."""
    comparisons = []
    for before, after, keys in zip(plain, again.outcomes, again.rewritten, strict=False):
        batch = STOPPED_AND_CRASHED.crash_in
        found = [Difference(after.history, key, batch, "written first", "written otherwise") for key in sorted(keys)]
        sides = ("Spark without a restart", before), ("Spark with a stop and a crash", after)
        comparisons.append(Comparison(*sides, found))
    return comparisons
