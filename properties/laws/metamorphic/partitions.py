"""The law *partitions*: how many shuffle partitions a query has plays no part.

The keys of a partition share a task, a Python worker and a state store; another number of partitions mixes them anew,
and leaves some without a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...generators.cohorts import Cohort
from ...outcomes.outcomes import Outcome, differences
from ...witnesses.run_options import PLAIN, RunOptions
from ...witnesses.spark.witness import QueryWitness
from ..base import Comparison, LawResult, Violation, violations
from ..runs import Run, Sample
from .reruns import RerunLaw

ONE, SEVERAL, EMPTY = "one partition", "several partitions with keys", "a partition without keys"
SCATTERED = RunOptions(partitions=7, state_groups=5)
"""More partitions than groups of keys."""


def counted(partitions: int) -> str:
    """Return what reports call a number of partitions."""
    return f"{partitions} partition{'s' * (partitions != 1)}"


class Partitions(RerunLaw):
    """Runs with other numbers of partitions emit the same."""

    name = "partitions"
    says = "how many shuffle partitions a query has plays no part"
    usual = (RunOptions(partitions=1), RunOptions(partitions=7))

    def goals(self, sample: Sample) -> Sequence[str]:
        """Where keys come in groups, fewer than there are partitions, one of these must be empty."""
        return [ONE, SEVERAL, EMPTY] if sample.is_pooled else [ONE, SEVERAL]

    def judge(self, run: Run, result: LawResult) -> Iterator[Violation]:
        """Compare the runs with other numbers of partitions with the sample's own."""
        own = run.answers.partitions
        for way in self.ways(run.sample):
            again = run.again(way)
            result.judged += len(again.outcomes)
            emitting = sum(bool(outcome.entries) for outcome in again.outcomes)
            result.covered[ONE] += emitting * (again.partitions == 1)
            # Where it isn't known from which partitions something came, there are far more keys than partitions.
            several = again.emitting > 1 if run.sample.is_pooled else again.partitions > 1
            result.covered[SEVERAL] += emitting * several
            result.covered[EMPTY] += emitting * (several and again.without_keys > 0)
            compared = (_compared(own, *both, way) for both in zip(run.outcomes, again.outcomes, strict=False))
            yield from violations(run.histories, compared, way)

    def recheck_in(self, cohort: Cohort, witness: QueryWitness, way: RunOptions | None) -> list[Comparison]:
        """Compare a run as usual with those in other numbers of partitions, of each history until one differs."""
        plain = witness.answers(cohort.histories, PLAIN)
        comparisons: list[Comparison] = []
        for one in (RunOptions(partitions=1), SCATTERED) if way is None else (way,):
            # So many of each that it comes in each group of keys; one with a null key may have no company.
            alone = any(record.key is None for history in cohort.histories for record in history.records)
            copies = 1 if alone else one.state_groups or one.partitions or 1
            histories = [history for history in cohort.histories for _ in range(copies)]
            outcomes = witness.answers(histories, one).outcomes
            for index, expected in enumerate(plain.outcomes):
                own = outcomes[index * copies : (index + 1) * copies]
                each = [_compared(plain.partitions, expected, outcome, one) for outcome in own]
                found = next((comparison for comparison in each if comparison.differences), each[0])
                if index == len(comparisons):
                    comparisons.append(found)
                elif not comparisons[index].differences:
                    comparisons[index] = found
        return comparisons


def _compared(own: int, expected: Outcome, actual: Outcome, way: RunOptions) -> Comparison:
    sides = (f"Spark in {counted(own)}", expected), (f"Spark in {counted(way.partitions or own)}", actual)
    return Comparison(*sides, differences(expected, actual))
