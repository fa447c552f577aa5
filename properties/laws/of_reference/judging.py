"""The base of the reference's laws, which compare a witness's outcome of each history with the reference's."""

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
    """A law that judges the reference's run of each history by another witness's outcome.

    Attributes:
        witness: The witness' name in reports.
    """

    witness: ClassVar[str]
    kinds: tuple[Kind, ...] = (Kind.REFERENCE, Kind.DEFINITIONS)
    is_plain = True

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the coverage goals of the profile, of its clock, and of its neighbours, whose results must differ.

        For drawn definitions, the goals are each value and each pair of values of their options, and the kinds of input
        values.
        """
        if sample.kind is Kind.DEFINITIONS:
            return [*option_goals(sample.registration), *_kind_goals(sample)]
        registration, definition = sample.registration, sample.definition
        differing = [neighbour.goal for neighbour in neighbours(registration.name, sample.options)]
        of_clock = clock_goals(registration, definition)
        return sample.goals([*coverage_goals(registration, definition), *of_clock, *differing])

    def outcomes(self, histories: Sequence[History], played: Sequence[Played]) -> list[Outcome]:
        """Return the witness's outcome of each history, from the reference's run of each."""
        raise NotImplementedError

    def served(self, run: ReferenceRun) -> list[tuple[History, Played]]:
        """Return the histories of a run that the law judges, with the reference's run of each."""
        return list(zip(run.histories, run.played, strict=True))

    def differences(self, history: History, played: Played, outcome: Outcome) -> Sequence[Difference]:
        """Return the differences between the witness's outcome and the reference's."""
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
        """Compare the reference's run of a history with the witness's outcome; record explanations in `result`."""
        expected = Outcome.of_play(history.name, played)
        found = self.differences(history, played, outcome)
        return Comparison((REFERENCE, expected), (self.witness, outcome), found)

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Run the witness again on each history, and judge it."""
        histories, unnoted = [case.history for case in cases], LawResult(self)
        played = [play(history) for history in histories]
        each = zip(histories, played, self.outcomes(histories, played), strict=True)
        return [self.compared(*one, unnoted) for one in each]


def _kind_goals(sample: Sample) -> list[str]:
    definitions = map(sample.registration.declare, (history.options for history in sample.histories))
    return [goal for one in definitions for goal in kind_goals(sample.registration.domain, one)]


def meaning_of(history: History, played: Played) -> Outcome:
    """Return the meaning of a run's accepted records at the end."""
    meaning = registration_of(history.operator).operator.meaning(played.definition, played.accepted, played.clock)
    return Outcome(history.name, Grain.END, final=meaning, is_stream=played.definition.is_stream)
