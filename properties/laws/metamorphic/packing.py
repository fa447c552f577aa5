"""The law *packing*: a history has the same output in its own query as in a query with other histories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....reference.core.history import History
from ....reference.core.records import Record
from ...generators.cohorts import Cohort, cohorts_of, one_cohort
from ...outcomes.outcomes import Outcome, differences
from ...witnesses.run_options import ALONE, RunOptions
from ...witnesses.spark.witness import QueryWitness
from ..base import BrokenCase, CannotRecheck, Comparison, Law, LawResult, violations
from ..runs import Kind, Run, Sample
from ..variation import Invariant, Variation

MANY = 200
"""The number of histories that a recheck runs together with a history, so that several keys share a partition's
state.
"""


class Packing(Law, Invariant):
    """Compares a history in its own query, where each key has its own state, with the same history in a shared
    query.
    """

    name, of_jobs = "packing", "histories of other keys in the query"
    says = "a history emits the same alone as in its cohort"
    goal = "run alone"
    at_once = 6

    def is_asked_of(self, sample: Sample) -> bool:
        return sample.kind is Kind.RANDOM and sample.is_first

    def goals(self, sample: Sample) -> Sequence[str]:
        return [self.goal]

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Compare a history's outcome in the shared query with its outcome alone."""
        alone = run.whole.alone(run.subject)
        result.judged += 1
        result.covered[self.goal] += bool(alone.entries)
        index = run.whole.runs_alone
        yield from violations([run.histories[index]], [_compared(run.outcomes[index], alone)])

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Run each history alone, and in a query with `MANY` other histories, so that several keys share a partition's
        state.
        """
        return [_packed(history, witness) for history in cohort.histories]

    def variation(self, run: RunOptions, given: None) -> Variation:
        """Return a variation that runs a history without histories of other keys."""
        when, otherwise = "alone in its query", "beside histories of other keys"
        return Variation(run, self.of_jobs, when=when, otherwise=otherwise, is_alone=True)


def _packed(history: History, witness: QueryWitness) -> Comparison:
    """Compare the output of a history alone with its output in a query that also contains copies of the history, each
    without one record.
    """
    others = [
        history.with_lines([*history.lines[:index], *history.lines[index + 1 :]])
        for index, line in enumerate(history.lines)
        if isinstance(line, Record)
    ]
    mates = [other for other in others if cohorts_of([history, other])[0][0].histories == (history, other)]
    packed = [history, *mates] * (1 + MANY // (1 + len(mates)))
    if len(cohorts_of([history] * 2)) > 1:
        raise CannotRecheck(
            "a history with a null key can't share a query with other histories, so there is nothing to compare"
        )
    (alone,), _ = witness.run(one_cohort([history]), ALONE)
    own = witness.answers(packed).outcomes[:: 1 + len(mates)]
    return next((found for one in own if (found := _compared(one, alone)).differences), _compared(own[0], alone))


def _compared(together: Outcome, alone: Outcome) -> Comparison:
    return Comparison(("Spark in a cohort", together), ("Spark alone", alone), differences(together, alone))
