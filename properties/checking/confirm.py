"""Confirm a violation: run the violating history alone, judge its law again, and shrink the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from ...reference.core.history import History
from ..counterexamples.counterexample import ALONE
from ..generators.cohorts import record_batches
from ..laws.base import OWN, BrokenCase, CannotRecheck, Comparison, Law
from ..laws.case import Case
from ..witnesses.spark.witness import QueryWitness
from .shrinking import ended_after, shrink, trimmed, without_clock_advances

ROUNDS = 8


def confirmed(
    law: Law,
    violation: BrokenCase,
    witness: QueryWitness = OWN,
    asked: Callable[[int], None] = lambda histories: None,
) -> tuple[BrokenCase, str]:
    """Judge a law again on a violating history alone, and shrink this history.

    Args:
        law: The law that the history breaks.
        violation: The history that breaks the law; if the law compares a history with a variant, both.
        witness: The witness that runs the operator's own implementation on Spark, or a mutant of the operator.
        asked: The callback that receives the number of histories before the law is judged on these histories again.

    Returns: The smallest violation, and an empty text; or the unchanged violation, and the reason why the recheck
        didn't confirm it.
    """

    def recheck(cases: Sequence[Case]) -> list[Comparison]:
        asked(len(cases))
        return law.recheck(cases, witness)

    def broken(histories: Sequence[History]) -> list[BrokenCase | None]:
        cases = [
            (index, replace(case, way=violation.case.way))
            for index, history in enumerate(histories)
            for case in law.cases_of(history)
        ]
        found: list[BrokenCase | None] = [None] * len(histories)
        for (index, case), comparison in zip(cases, recheck([case for _, case in cases]), strict=True):
            if comparison.differences and found[index] is None:
                found[index] = BrokenCase(case, comparison)
        return found

    for case in [*_sooner(law, violation), violation.case]:
        try:
            (alone,) = recheck([case])
        except CannotRecheck as reason:
            return violation, str(reason)
        if alone.differences:
            break
    else:
        return violation, ALONE
    best = BrokenCase(case, alone)
    first = case.original or case.history
    with suppress(CannotRecheck):  # if shrinking fails, the violation is still confirmed
        smallest = shrink(first, lambda histories: [one is not None for one in broken(histories)], ROUNDS, law.at_once)
        # Keep a variant's clock advances, without which the variant and its original would have different clocks.
        plainer = [] if law.needs_original else [without_clock_advances(smallest), trimmed(smallest)]
        for history in [one for one in plainer if one.lines != smallest.lines] + [smallest]:
            if history.lines != first.lines and (found := broken([history])[0]) is not None:
                return found, ""
    return best, ""


def _sooner(law: Law, violation: BrokenCase) -> Iterator[Case]:
    """Yield the case without the batches after the first difference, because a shorter history runs faster on Spark."""
    history, first = violation.case.history, next(iter(violation.comparison.differences), None)
    when = None if first is None else first.when
    if law.is_plain and "spark" in law.between and when is not None and when + 1 < len(record_batches(history)):
        yield replace(violation.case, history=ended_after(history, when))
