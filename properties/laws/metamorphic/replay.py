"""The law *replay*: a batch that runs again after a crash between output and commit writes the same again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...generators.cohorts import Cohort
from ...outcomes.outcomes import Difference, Outcome, differences
from ...witnesses.run_options import Crash, RunOptions
from ...witnesses.spark.answers import Answers
from ...witnesses.spark.witness import QueryWitness
from ..base import Comparison, LawResult, Violation, violations
from ..runs import Run, Sample
from .reruns import RerunLaw, numbered

ONCE, TWICE = "changes in a replayed batch", "changes in a batch replayed twice"


class Replay(RerunLaw):
    """Rows of different keys may be swapped between two runs of a batch; rows of one key may not.

    What comes after the crash is compared too.
    """

    name = "replay"
    says = "a batch replayed after a crash between output and commit changes nothing downstream"
    usual = (RunOptions(crash_in=(Crash(2),) * 2),)

    def goals(self, sample: Sample) -> Sequence[str]:
        return [ONCE, TWICE]

    def judge(self, run: Run, result: LawResult) -> Iterator[Violation]:
        """Compare what a crashed batch wrote at first with what it wrote again, and what came in the end."""
        for way in self.ways(run.sample):
            again = run.again(way)
            result.judged += len(again.outcomes)
            for goal, least in ((ONCE, 1), (TWICE, 2)):
                crashed = {at.batch for at in way.crash_in if way.crash_in.count(at) >= least}
                if again.replayed >= least:
                    result.covered[goal] += sum(
                        any(entry.batch in crashed for entry in outcome.entries) for outcome in again.outcomes
                    )
            yield from violations(run.histories, _compared(run.outcomes, again, way), way)

    def recheck_in(self, cohort: Cohort, witness: QueryWitness, way: RunOptions | None) -> list[Comparison]:
        """Run a cohort without and with crashes: in the batches where it was broken, or in every one, twice."""
        count = len(cohort.schedule)
        every = tuple(Crash(batch) for batch in range(count) for _ in range(2))
        way = RunOptions(crash_in=every) if way is None else way.clipped(count)
        plain = witness.answers(cohort.histories)
        return _compared(plain.outcomes, witness.answers(cohort.histories, way), way)


def _compared(plain: Sequence[Outcome], again: Answers, way: RunOptions) -> list[Comparison]:
    """Compare what was written twice, and then what came in the end."""
    comparisons = []
    crashed = [at.batch for at in way.crash_in]
    batch = crashed[0] if len({*crashed}) == 1 else None
    for before, after, keys in zip(plain, again.outcomes, again.rewritten, strict=False):
        found = [Difference(after.history, key, batch, "written first", "written otherwise") for key in sorted(keys)]
        sides = ("Spark without a crash", before), (f"Spark with a crash in {numbered(crashed)}", after)
        comparisons.append(Comparison(*sides, found or differences(before, after)))
    return comparisons
