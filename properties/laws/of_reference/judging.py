"""The base class of laws that compare the reference's outcome of each history with another witness's outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from ....reference.core.history import History
from ....reference.core.play import Played, play
from ...generators.coverage import clock_goals, coverage_goals, covered_by, neighbours
from ...generators.options import option_goals
from ...generators.variety import kind_goals
from ...outcomes.outcomes import Difference, Grain, Outcome, differences
from ...registration.registration import registration_of
from ...witnesses.spark.witness import QueryWitness
from ..base import OWN, REFERENCE, BrokenCase, Comparison, Law, LawResult, violations
from ..case import Case
from ..runs import Kind, ReferenceRun, Sample


class ReferenceLaw(Law):
    """A law that compares the reference's run of each history with another witness's outcome.

    Attributes:
        witness: The name of the other witness in reports.
    """

    witness: ClassVar[str]
    kinds: tuple[Kind, ...] = (Kind.REFERENCE, Kind.DEFINITIONS)
    is_plain = True

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the coverage goals of the profile and its clock, and a goal for each off-by-one error in a number,
        which must change a result.

        For random definitions, the goals are each value and each pair of values of the options, and the kinds of input
        values.
        """
        if sample.kind is Kind.DEFINITIONS:
            return [*option_goals(sample.registration), *_kind_goals(sample)]
        registration, definition = sample.registration, sample.definition
        differing = [neighbour.goal for neighbour in neighbours(registration.name, sample.options)]
        of_clock = clock_goals(registration, definition)
        return sample.goals([*coverage_goals(registration, definition), *of_clock, *differing])

    def outcomes(self, histories: Sequence[History], played: Sequence[Played]) -> list[Outcome]:
        """Return the other witness's outcome of each history, from the reference's runs."""
        raise NotImplementedError

    def served(self, run: ReferenceRun) -> list[tuple[History, Played]]:
        """Return the histories of a run that the law judges, with the reference's run of each history."""
        return list(zip(run.histories, run.played, strict=True))

    def differences(self, history: History, played: Played, outcome: Outcome) -> Sequence[Difference]:
        """Return the differences between the other witness's outcome and the reference's outcome."""
        unordered = outcome.grain is Grain.END and played.definition.unordered
        return differences(Outcome.of_play(history.name, played), outcome, unordered)

    def judge(self, run: ReferenceRun, result: LawResult) -> Iterator[BrokenCase]:  # type: ignore[override]
        """Judge each history of a sample."""
        served = self.served(run)
        histories, played = [history for history, _ in served], [one for _, one in served]
        if not histories:
            return
        outcomes = self.outcomes(histories, played)
        result.judged += len(histories)
        covered = run.covered if histories == run.histories else covered_by(histories, played=played)
        result.covered.update(run.sample.cover(covered))
        each = zip(histories, played, outcomes, strict=True)
        yield from violations(histories, (self.compared(*one, result) for one in each))

    def compared(self, history: History, played: Played, outcome: Outcome, result: LawResult) -> Comparison:
        """Compare the reference's run of a history with the other witness's outcome; count known divergences in
        `result`.
        """
        expected = Outcome.of_play(history.name, played)
        found = self.differences(history, played, outcome)
        return Comparison((REFERENCE, expected), (self.witness, outcome), found)

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Run the other witness again on each history, and compare the outcomes."""
        histories, unnoted = [case.history for case in cases], LawResult(self)
        played = [play(history) for history in histories]
        each = zip(histories, played, self.outcomes(histories, played), strict=True)
        return [self.compared(*one, unnoted) for one in each]


def _kind_goals(sample: Sample) -> list[str]:
    definitions = map(sample.registration.declare, (history.options for history in sample.histories))
    return [goal for one in definitions for goal in kind_goals(sample.registration.domain, one)]


def meaning_of(history: History, played: Played) -> Outcome:
    """Return the meaning (the correct table) of all records that a run of the reference accepted."""
    meaning = registration_of(history.operator).operator.meaning(played.definition, played.accepted, played.clock)
    return Outcome(history.name, Grain.END, final=meaning, is_stream=played.definition.is_stream)
