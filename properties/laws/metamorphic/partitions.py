"""The law *partitions*: how many shuffle partitions a query has plays no part.

The keys of a partition share a task, a Python worker and a state store; another number of partitions mixes them anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...generators.cohorts import Cohort
from ...witnesses.base import RunOptions
from ...witnesses.outcomes import Outcome, differences
from ...witnesses.spark.witness import QueryWitness
from ..base import Comparison, LawResult, Violation, violations
from ..runs import Run, Sample
from .reruns import RerunLaw

PARTITIONS = (1, 2, 7)
"""The numbers that are compared: one worker for all keys, and more partitions than cores or keys."""


def counted(partitions: int) -> str:
    """Return what reports call a number of partitions."""
    return f"{partitions} partition{'s' * (partitions != 1)}"


class Partitions(RerunLaw):
    """Runs with other numbers of partitions emit the same."""

    name = "partitions"
    says = "how many shuffle partitions a query has plays no part"
    ways = (RunOptions(partitions=PARTITIONS[0]), RunOptions(partitions=PARTITIONS[-1]))

    def goals(self, sample: Sample) -> Sequence[str]:
        """Something must be emitted with each number of partitions."""
        return [counted(count) for count in PARTITIONS]

    def judge(self, run: Run, result: LawResult) -> Iterator[Violation]:
        """Compare the runs with other numbers of partitions with the sample's own."""
        own = run.answers.partitions
        for count in PARTITIONS:
            if count == own:
                continue
            again = run.again(RunOptions(partitions=count))
            outcomes = again.outcomes
            result.judged += len(outcomes)
            before = run.outcomes[: len(outcomes)]
            result.covered[counted(own)] += sum(bool(outcome.entries) for outcome in before)
            result.covered[counted(again.partitions)] += sum(bool(outcome.entries) for outcome in outcomes)
            pairs = zip(before, outcomes, strict=True)
            yield from violations(run.histories, (_compared(own, one, count, other) for one, other in pairs))

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Compare runs with more partitions with that with the fewest, of each history until one differs."""
        first, *others = PARTITIONS
        expected = witness.answers(cohort.histories, RunOptions(partitions=first)).outcomes
        comparisons: list[Comparison] = []
        for count in others:
            outcomes = witness.answers(cohort.histories, RunOptions(partitions=count)).outcomes
            now = [_compared(first, before, count, after) for before, after in zip(expected, outcomes, strict=True)]
            comparisons = [one if one.differences else new for one, new in zip(comparisons or now, now, strict=True)]
        return comparisons


def _compared(own: int, expected: Outcome, count: int, actual: Outcome) -> Comparison:
    sides = (f"Spark in {counted(own)}", expected), (f"Spark in {counted(count)}", actual)
    return Comparison(*sides, differences(expected, actual))
