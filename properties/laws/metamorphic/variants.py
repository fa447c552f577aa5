"""The base of laws that relate a history to a variant of it, made from its records under the same clock."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar

from ....reference.core.history import History
from ....reference.core.records import Record
from ...generators.cohorts import clock_schedule, one_cohort, record_batches, with_clock_advances
from ...generators.coverage import goals_met
from ...outcomes.outcomes import Difference, Grain, Outcome, canonical, differences, result_differences, untimed
from ...registration.registration import FreeOrder, Registration, registration_of
from ...witnesses.spark.witness import QueryWitness
from ..base import OWN, CannotRecheck, Comparison, Law, LawResult, Violation
from ..case import Case
from ..runs import Run, Sample, Variant

TRIES = 3
"""The number of variants of a history that are tried when it is shrunk."""


class VariantLaw(Law):
    """A law that relates Spark's outcomes of a history and of a variant; the reference isn't asked.

    Attributes:
        shows_order: Whether outcomes are shown change by change, rather than as the tables that they fold to.
    """

    follows_changelog = True
    needs_original = True
    shows_order: ClassVar[bool] = False

    def not_checked(self, registration: Registration) -> str | None:
        """Return the reason why an operator isn't asked: also if all of its profiles may have late data."""
        definitions = map(registration.declare, registration.profiles.values())
        if registration.without_late_data or not all(map(registration.by_clock, definitions)):
            return super().not_checked(registration)
        return super().not_checked(registration) or "its registration has no profile without late data"

    def is_asked_of(self, sample: Sample) -> bool:
        """Whether variants of a sample share its query: if nothing can be late."""
        return sample.is_without_late_data

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the goal that a variant differs from its history, and the registration's goals for this law."""
        coverage = sample.registration.coverage
        return [*sample.goals([f"{self.name} changed"]), *(coverage.of_variants.get(self.name, ()) if coverage else ())]

    def vary(self, history: History, generator: random.Random) -> Iterator[History]:
        """Yield variants of a history, each drawn anew; the first shares the sample's query."""
        raise NotImplementedError

    def differences(self, registration: Registration, case: Case, original: Outcome, variant: Outcome) -> list[Any]:
        """Return the violations of the relation between the outcomes of a history and of its variant.

        Args:
            registration: The operator.
            case: The variant, and the history that it was made from.
            original: Spark's outcome of that history.
            variant: Spark's outcome of the variant.
        """
        raise NotImplementedError

    def variants(self, sample: Sample, count: int, seed: int) -> list[Variant]:
        """Return a variant of each of the first `count` histories of a sample, the same for the same seed."""
        generator, made = random.Random(seed), []
        for index, history in enumerate(sample.histories[:count]):
            for variant in self.vary(history, generator):
                made.append(Variant(self.name, index, Case(variant, history)))
                break
        return made

    def judge(self, run: Run, result: LawResult) -> Iterator[Violation]:
        """Judge the law's variants in a run, each against its original."""
        for index, variant in enumerate(run.variants, run.drawn):
            if variant.law == self.name:
                result.judged += 1
                result.covered.update(run.sample.cover({f"{self.name} changed": int(variant.changed)}))
                original = variant.case.original or variant.case.history
                result.covered.update(goals_met(run.sample.registration, original, run.played[variant.index]))
                comparison = self.compare(variant.case, run.outcomes[variant.index], run.outcomes[index])
                if comparison.differences:
                    yield Violation(variant.case, comparison)

    def compare(self, case: Case, original: Outcome, variant: Outcome) -> Comparison:
        """Compare the outcomes of a history and of its variant."""
        found = self.differences(registration_of(case.history.operator), case, original, variant)
        shown = [outcome if self.shows_order else at_end(outcome) for outcome in (original, variant)]
        return Comparison(("the original", shown[0]), ("Spark", shown[1]), found)

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Run all originals and variants in one query, and compare each variant with its original."""
        pairs = [history for case in cases for history in (require_original(self, case), case.history)]
        try:
            one_cohort(pairs)
        except ValueError:
            raise CannotRecheck("the history and its original can't share a query: one of them was changed") from None
        outcomes = witness.answers(pairs).outcomes
        return [self.compare(case, outcomes[2 * index], outcomes[2 * index + 1]) for index, case in enumerate(cases)]

    def cases_of(self, history: History) -> list[Case]:
        """Return some variants of a history, the same for the same history."""
        generator = random.Random(history.to_text())
        cases = []
        for _ in range(TRIES):
            cases += [Case(variant, history) for variant in self.vary(history, generator)]
        return cases


def require_original(law: Law, case: Case) -> History:
    """Return the original of a case.

    Raises:
        CannotRecheck: The case has no original.
    """
    if case.original is None:
        raise CannotRecheck(
            f"the law {law.name!r} relates a variant to its original, which wasn't saved: check once more"
        )
    return case.original


def with_batches(history: History, law: str, batches: Sequence[Sequence[Record]]) -> History:
    """Return a history's variant under the same clock.

    Args:
        history: The history.
        law: The name of the law, which becomes part of the variant's name.
        batches: The variant's records.
    """
    lines = with_clock_advances(batches, clock_schedule(history))
    return replace(history, lines=lines, name=f"{history.name}/{law}")


def free_order(history: History) -> FreeOrder:
    """Return how the order of arrival of a history's records is free, by its definition."""
    registration = registration_of(history.operator)
    return registration.free_order(registration.declare(history.options))


LINES: dict[FreeOrder, Callable[[Record], Hashable] | None] = {
    FreeOrder.ANY: None,
    FreeOrder.INPUTS: lambda record: (record.input, record.key),
    FreeOrder.KEYS: lambda record: record.key,
}
"""The function from a record to its line, for each freedom: records of a line keep their order; None: all are free."""


def shuffled(history: History, generator: random.Random) -> list[Record]:
    """Return a history's records in another order that its definition leaves free."""
    line_of = LINES[free_order(history)]
    lines: dict[Hashable, list[Record]] = defaultdict(list)
    order: list[Hashable] = []
    for number, record in enumerate(record for batch in record_batches(history) for record in batch):
        line = number if line_of is None else line_of(record)
        lines[line].append(record)
        order.append(line)
    generator.shuffle(order)
    waiting = {line: iter(of_line) for line, of_line in lines.items()}
    return [next(waiting[line]) for line in order]


def split(records: Sequence[Record], sizes: Sequence[int]) -> list[list[Record]]:
    """Cut records into batches of the given sizes."""
    remaining = iter(records)
    return [list(islice(remaining, size)) for size in sizes]


def same_result(
    registration: Registration, case: Case, original: Outcome, variant: Outcome, unordered: bool
) -> list[Difference]:
    """Return the differences between the results of a history and its variant; as `VariantLaw.differences`.

    With `unordered`, list values are compared without their order.
    """
    definition = registration.declare(case.history.options)
    results = [canonical(outcome.result, unordered or definition.unordered) for outcome in (original, variant)]
    if registration.stamped_by_last:
        results = [untimed(result) for result in results]
    return result_differences(case.history.name, None, results[0], results[1])


def same_changes(original: Outcome, variant: Outcome) -> list[Difference]:
    """Return the differences between each key's changes, compared in order, in whichever batch they were emitted."""
    return differences(_in_one_batch(original), _in_one_batch(variant))


def _in_one_batch(outcome: Outcome) -> Outcome:
    return replace(outcome, entries=[entry._replace(batch=0) for entry in outcome.entries])


def at_end(outcome: Outcome) -> Outcome:
    """Return the result of an outcome at the end."""
    return replace(outcome, grain=Grain.END, entries=[], final=outcome.result)
