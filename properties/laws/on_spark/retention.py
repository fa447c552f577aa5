"""The law *retention*: an operator that by definition keeps rows forever may run with a retention, as an option of the
implementation.

With the parameter `retention`, the operator's output equals the reference's output within the retention; the reference
has no such parameter. Long after the retention, the operator's state is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ....reference.core.history import History
from ...generators.cohorts import Cohort
from ...registration.registration import Options, registration_of
from ...witnesses.run_options import RunOptions
from ...witnesses.spark.answers import Answers
from ...witnesses.spark.witness import JobWitness, QueryWitness
from ..base import BrokenCase, CannotRecheck, Comparison, Law, LawResult, violations
from ..runs import Kind, Run, Sample
from .judging import by_reference
from .state import state_left

WITH_STATE = RunOptions(read_state=True)
SIDES = ("within the retention", "beyond the retention")


class RetentionLaw(Law):
    """The law *retention*, for profiles with a retention in the operator's registration."""

    name = "retention"
    between = ("reference", "spark")
    kinds = (Kind.RETENTION,)
    says = "within its retention a row counts as if it were kept for ever, and then it is gone"
    needs = "retention"
    reason = "its registration has no retention besides the definition's retention"

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the goals: some records are within the retention, and some beyond it."""
        return sample.goals(SIDES)

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Judge each history of a run with a retention."""
        retention = run.sample.registration.retention
        assert retention is not None
        result.judged += len(run.histories)
        for history in run.histories:
            met = retention.sides(history, run.sample.more)
            result.covered.update(run.sample.cover(dict.fromkeys(met, 1)))
        yield from violations(run.histories, _compared(run.histories, run.sample.more, run.answers))

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Run the histories again with the retention of their profile."""
        retention_ms = retention_of(cohort)
        bounded = with_retention(cohort.operator, cohort.options, retention_ms, witness)
        return _compared(cohort.histories, retention_ms, bounded.answers(cohort.histories, WITH_STATE))


def with_retention(operator: str, options: Options, retention_ms: int, witness: QueryWitness) -> JobWitness:
    """Return the witness that runs an operator's implementation, or a mutant, with a retention.

    Args:
        operator: The operator's name.
        options: The operator's options, as in a history file.
        retention_ms: The retention (ms).
        witness: The witness whose implementation (of the operator, or of a mutant) runs.
    """
    registration = registration_of(operator)
    assert registration.retention is not None
    definition = registration.declare(options)
    build = registration.retention.build
    return JobWitness(
        partial(build, definition, logic=witness.logic, state_groups=None, retention=f"{retention_ms} ms"), has_rows
    )


def retention_of(cohort: Cohort) -> int:
    """Return the law's retention (ms) for histories with given options.

    Raises:
        CannotRecheck: No profile with these options has a retention.
    """
    registration = registration_of(cohort.operator)
    profiles = registration.retention.profiles if registration.retention else {}
    for name, (changed, retention_ms) in profiles.items():
        if {**registration.profiles[name], **changed} == dict(cohort.options):
            return retention_ms
    raise CannotRecheck(f"the retention with which {cohort.operator} ran under {dict(cohort.options)} is unknown")


def _compared(histories: Sequence[History], retention_ms: int, answers: Answers) -> list[Comparison]:
    retention = registration_of(histories[0].operator).retention
    assert retention is not None
    return [
        Comparison(
            by_reference(history),
            ("Spark", outcome),
            retention.differences(history, retention_ms, outcome) or state_left(history.name, keys),
        )
        for history, outcome, keys in zip(histories, answers.outcomes, answers.left, strict=True)
    ]


def has_rows(fields: Sequence[Any]) -> bool:
    """Return whether a key still has rows or windows in the state; a table's current row, whose last field is a time,
    doesn't count.
    """
    lists = [rows for rows in fields if isinstance(rows, list) and rows]
    return any(all(isinstance(row, list) for row in rows) for rows in lists)
