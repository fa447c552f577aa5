"""The law *partitions*: the number of shuffle partitions doesn't change the output.

The keys of a partition share a Spark task, a Python worker and a state store. Another number of partitions distributes
the keys differently, and leaves some partitions empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from ...generators.cohorts import Cohort
from ...witnesses.run_options import ALONE, RunOptions
from ...witnesses.spark.answers import Answers
from ...witnesses.spark.witness import QueryWitness
from ..base import Comparison
from ..runs import Sample
from ..variation import Variation
from .reruns import RerunLaw

TWO, SEVERAL, EMPTY = "two partitions", "several partitions with keys", "a partition without keys"
SCATTERED = RunOptions(partitions=7, state_groups=5)
"""A number of partitions that is larger than the number of key groups."""
DRAWN = (4, 5, 6, 7)
"""The numbers of partitions that the second run of a pool with fewer key groups may have."""
MIN_GROUPS = 3


def counted(partitions: int) -> str:
    """Return the words for a number of partitions in reports."""
    return f"{partitions} partition{'s' * (partitions != 1)}"


class Partitions(RerunLaw):
    """Compares the outputs of runs with different numbers of partitions."""

    name, of_jobs = "partitions", "the number of partitions"
    given = 5
    says = "the number of shuffle partitions changes nothing"
    usual = (RunOptions(partitions=2), RunOptions(partitions=7))

    def draw_ways(self, pool: int, batches: int, generator: Random) -> Sequence[RunOptions]:
        """Draw the options of a second run of the first pool, with more shuffle partitions than groups of keys in the
        state.
        """
        if pool:
            return ()
        partitions = generator.choice(DRAWN)
        groups = generator.randint(MIN_GROUPS, partitions - 1)
        return (RunOptions(partitions=partitions, state_groups=groups),)

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the goals; a pool's run has fewer groups of keys than partitions, and so must have an empty
        partition.
        """
        return [SEVERAL, EMPTY] if sample.is_pooled else [TWO, SEVERAL]

    def covered(self, sample: Sample, again: Answers, way: RunOptions) -> Mapping[str, int]:
        emitting = sum(bool(outcome.entries) for outcome in again.outcomes)
        # Samples with their own queries have far more keys than partitions, so several partitions emit rows.
        several = again.emitting > 1 if sample.is_pooled else again.partitions > 1
        return {
            TWO: emitting * (again.partitions == 2),
            SEVERAL: emitting * several,
            EMPTY: emitting * (several and again.without_keys > 0),
        }

    def names(self, plain: Answers, way: RunOptions) -> tuple[str, str]:
        return f"Spark in {counted(plain.partitions)}", f"Spark in {counted(way.partitions or plain.partitions)}"

    def recheck_in(self, cohort: Cohort, witness: QueryWitness, way: RunOptions | None) -> list[Comparison]:
        """Compare each history's run in one partition with runs in other numbers of partitions, until a run differs."""
        plain = witness.answers(cohort.histories, ALONE)
        found: list[list[Comparison]] = [[] for _ in cohort.histories]
        for one in (RunOptions(partitions=2), SCATTERED) if way is None else (way,):
            # Run enough copies of each history to fill every key group; a history with a null key must run alone.
            alone = any(record.key is None for history in cohort.histories for record in history.records)
            copies = 1 if alone else one.state_groups or one.partitions or 1
            histories = [history for history in cohort.histories for _ in range(copies)]
            expected = replace(plain, outcomes=[outcome for outcome in plain.outcomes for _ in range(copies)])
            compared = self.compare(expected, witness.answers(histories, one), one)
            for index, of_history in enumerate(found):
                of_history += compared[index * copies : (index + 1) * copies]
        # Return the first comparison with a difference; if no run differs, return the first copy of the last run.
        return [next((one for one in each if one.differences), each[-copies]) for each in found]

    def variation(self, run: RunOptions, given: int) -> Variation:
        """Return a variation that runs the query with another number of shuffle partitions."""
        when = f"with {given} shuffle partitions"
        return Variation(
            replace(run, partitions=given), self.of_jobs, given, when, "with the session's number of shuffle partitions"
        )
