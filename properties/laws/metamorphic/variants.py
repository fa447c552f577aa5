"""The base class of laws that compare a history with a variant: a history with changed records and the same clock."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar

from ....reference.core.history import History
from ....reference.core.play import play
from ....reference.core.records import Record
from ...generators.cohorts import clock_schedule, one_cohort, record_batches, with_clock_advances
from ...generators.coverage import goals_met, keeps_null_keys
from ...outcomes.outcomes import Difference, Grain, Outcome, canonical, differences, result_differences, untimed
from ...registration.registration import FreeOrder, Registration, registration_of
from ...witnesses.spark.witness import QueryWitness
from ..base import OWN, REFERENCE, BrokenCase, CannotRecheck, Comparison, Law, LawResult
from ..case import Case
from ..runs import Kind, ReferenceRun, Run, Sample, Variant

TRIES = 3
"""The number of variants of each history that the shrinker tries."""


class VariantLaw(Law):
    """A law that compares a witness's outcomes of a history and of a variant of this history.

    Args:
        of_reference: Whether the witness is the reference; if not, Spark is the witness.

    Attributes:
        shows_order: Whether reports show each change of an outcome, instead of the table that the changes build up.
    """

    follows_changelog = True
    needs_original = True
    shows_order: ClassVar[bool] = False
    kinds: tuple[Kind, ...] = (Kind.RANDOM, Kind.WITHOUT_LATE_DATA)

    def __init__(self, of_reference: bool = False) -> None:
        self.of_reference = of_reference
        if of_reference:
            self.between = (REFERENCE,)
            self.kinds = (Kind.REFERENCE, Kind.DEFINITIONS, Kind.IN_TIME)

    def not_checked(self, registration: Registration) -> str | None:
        """Return the reason why the law skips an operator, for example because all profiles may have late data."""
        definitions = map(registration.declare, registration.profiles.values())
        if registration.without_late_data or not all(map(registration.by_clock, definitions)):
            return super().not_checked(registration)
        return super().not_checked(registration) or "its registration has no profile without late data"

    def is_asked_of(self, sample: Sample) -> bool:
        """Return whether a sample runs with variants, because some of its histories may have variants."""
        return super().is_asked_of(sample) and any(self.may_vary(sample, history) for history in sample.histories)

    def may_vary(self, sample: Sample, history: History) -> bool:
        """Return whether the law has variants of a history, which must have batches and no late data."""
        return history.clock == "batch" and sample.is_without_late_data(history)

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the law's goals: a variant differs from its history, and the goals in the operator's registration for
        this law.
        """
        return [*sample.goals([f"{self.name} changed"]), *self._goals_of_originals(sample.registration)]

    def _goals_of_originals(self, registration: Registration) -> Sequence[str]:
        return registration.coverage.of_variants.get(self.name, ()) if registration.coverage else ()

    def vary(self, history: History, generator: random.Random) -> Iterator[History]:
        """Yield independently drawn variants of a history; a check runs the first variant in the query of the
        sample.
        """
        raise NotImplementedError

    def differences(self, registration: Registration, case: Case, original: Outcome, variant: Outcome) -> list[Any]:
        """Return the differences between a variant's outcome and the outcome that follows from the original's.

        Args:
            registration: The operator.
            case: The variant, and its original history.
            original: The witness's outcome of the original.
            variant: The witness's outcome of the variant.
        """
        raise NotImplementedError

    def variants(self, sample: Sample, indexes: Iterable[int], seed: int) -> list[Variant]:
        """Return a variant of each history of a sample at the given indexes; the same seed draws the same variants."""
        generator, made = random.Random(seed), []
        for index in indexes:
            history = sample.histories[index]
            for variant in self.vary(history, generator) if self.may_vary(sample, history) else ():
                made.append(Variant(self.name, index, Case(variant, history)))
                break
        return made

    def judge(self, run: Run | ReferenceRun, result: LawResult) -> Iterator[BrokenCase]:
        """Compare each variant of this law in a run with its original."""
        registration = run.sample.registration
        has_goals = bool(self._goals_of_originals(registration))
        for index, variant in enumerate(run.variants, run.drawn):
            if variant.law == self.name:
                result.judged += 1
                result.covered.update(run.sample.cover({f"{self.name} changed": int(variant.changed)}))
                if has_goals:
                    original = variant.case.original or variant.case.history
                    result.covered.update(goals_met(registration, original, run.played[variant.index]))
                comparison = self.compare(variant.case, run.outcomes[variant.index], run.outcomes[index])
                if comparison.differences:
                    yield BrokenCase(variant.case, comparison)

    def compare(self, case: Case, original: Outcome, variant: Outcome) -> Comparison:
        """Compare the outcome of a history with the outcome of its variant."""
        found = self.differences(registration_of(case.history.operator), case, original, variant)
        shown = [outcome if self.shows_order else at_end(outcome) for outcome in (original, variant)]
        return Comparison(
            ("the original", shown[0]), ("the variant" if self.of_reference else "Spark", shown[1]), found
        )

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Run all originals and variants, on Spark in one query, and compare each variant with its original."""
        pairs = [history for case in cases for history in (require_original(self, case), case.history)]
        if self.of_reference:
            outcomes = [Outcome.in_batches(history.name, play(history)) for history in pairs]
        else:
            try:
                one_cohort(pairs)
            except ValueError:
                changed = "the history and its original can't share a query: the history or the original was changed"
                raise CannotRecheck(changed) from None
            outcomes = witness.answers(pairs).outcomes
        return [self.compare(case, outcomes[2 * index], outcomes[2 * index + 1]) for index, case in enumerate(cases)]

    def cases_of(self, history: History) -> list[Case]:
        """Return a few variants of a history for shrinking; the same history always has the same variants."""
        generator = random.Random(history.to_text())
        cases = []
        for _ in range(TRIES):
            cases += [Case(variant, history) for variant in self.vary(history, generator)]
        return cases


def require_original(law: Law, case: Case) -> History:
    """Return the original of a variant.

    Raises:
        CannotRecheck: The case has no original.
    """
    if case.original is None:
        raise CannotRecheck(
            f"the law {law.name!r} compares a variant with its original, which wasn't saved: run the check again"
        )
    return case.original


def with_batches(history: History, law: str, batches: Sequence[Sequence[Record]]) -> History:
    """Return a variant of a history under the same clock.

    Args:
        history: The history.
        law: The name of the law, which becomes part of the variant's name.
        batches: The variant's records.
    """
    by_null_keys = any(record.key is None for record in history.records) and keeps_null_keys(
        registration_of(history.operator).declare(history.options)
    )
    lines = with_clock_advances(batches, clock_schedule(history, by_null_keys))
    return replace(history, lines=lines, name=f"{history.name}/{law}")


def free_order(history: History) -> FreeOrder:
    """Return which order of a history's records is irrelevant by definition, such as the order between keys."""
    registration = registration_of(history.operator)
    return registration.free_order(registration.declare(history.options))


LINES: dict[FreeOrder, Callable[[Record], Hashable] | None] = {
    FreeOrder.ANY: None,
    FreeOrder.INPUTS: lambda record: (record.input, record.key),
    FreeOrder.KEYS: lambda record: record.key,
}
"""For each open order, a function from a record to its group; records of a group keep their order. None: the order of
all records is open.
"""


def shuffled(history: History, generator: random.Random) -> list[Record]:
    """Return a history's records in another order that the definition allows."""
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
    """Return the differences between the final results of a history and its variant; arguments as in
    `VariantLaw.differences`.

    If `unordered`, the order of members in list values isn't compared.
    """
    definition = registration.declare(case.history.options)
    results = [canonical(outcome.result, unordered or definition.unordered) for outcome in (original, variant)]
    if registration.stamped_by_last:
        results = [untimed(result) for result in results]
    return result_differences(case.history.name, None, results[0], results[1])


def same_changes(original: Outcome, variant: Outcome) -> list[Difference]:
    """Return the differences between the ordered changes of each key; ignore which batch emits a change."""
    return differences(_in_one_batch(original), _in_one_batch(variant))


def _in_one_batch(outcome: Outcome) -> Outcome:
    return replace(outcome, entries=[entry._replace(batch=0) for entry in outcome.entries])


def at_end(outcome: Outcome) -> Outcome:
    """Return the final result in an outcome."""
    return replace(outcome, grain=Grain.END, entries=[], final=outcome.result)
