"""The base class of laws that compare Spark's outcome of each history with an expected outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ....reference.core.history import History
from ....reference.core.play import Played, play
from ...generators.cohorts import record_batches
from ...generators.coverage import EMITTED, coverage_goals, goals
from ...generators.options import option_goals
from ...generators.schedules import edge_goals
from ...generators.variety import kind_goals
from ...outcomes.outcomes import Difference, Outcome
from ...witnesses.run_options import PLAIN
from ...witnesses.spark.answers import Answers, StoredState
from ...witnesses.spark.witness import JobWitness, QueryWitness
from ..base import REFERENCE, BrokenCase, Comparison, Law, LawResult, Named, violations
from ..runs import Kind, Run, Sample

EMPTY_BATCH = "empty batch"


def by_reference(history: History, played: Played | None = None) -> Named:
    """Return the reference's name, and the reference's outcome of a history."""
    return REFERENCE, Outcome.of_play(history.name, played or play(history))


def covered(run: Run) -> Counter[str]:
    """Count the coverage goals that a run's drawn histories met, including an empty last batch if the histories have
    one.
    """
    found = run.sample.cover(run.whole.covered)
    found[EMPTY_BATCH] = sum(not all(record_batches(one)[:-1]) for one in run.histories[: run.drawn])
    return found


class OutcomeLaw(Law):
    """A law that judges the outcome on Spark of each history of a random sample, variants included."""

    kinds: tuple[Kind, ...] = (Kind.RANDOM, Kind.WITHOUT_LATE_DATA)
    is_plain = True
    shows_neighbours = True
    options = PLAIN

    def goals(self, sample: Sample) -> Sequence[str]:
        if sample.kind is not Kind.RANDOM:
            return ()
        registration = sample.registration
        if sample.is_pooled:
            of_clock = edge_goals((registration.name, sample.options))
            of_definition = coverage_goals(registration, sample.definition)
            of_values = kind_goals(registration.domain, sample.definition)
            return [EMPTY_BATCH, EMITTED, *of_definition, *of_values, *of_clock, *option_goals(registration)]
        return [EMPTY_BATCH, *sample.goals(goals(registration.name, sample.options))]

    def differences(
        self, history: History, played: Played, outcome: Outcome, left: Sequence[StoredState]
    ) -> Sequence[Difference]:
        """Return the differences between a history's outcome on Spark and the expected outcome.

        Args:
            history: The history.
            played: The reference's run of the history.
            outcome: The history's outcome on Spark.
            left: The state of the history's keys at the end; empty if the law doesn't read the state.
        """
        raise NotImplementedError

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Judge each history of a run."""
        result.judged += len(run.histories)
        result.covered.update(covered(run))
        yield from violations(run.histories, self._compared(run.histories, run.played, run.answers, "Spark"))

    def recheck_together(self, histories: Sequence[History], witness: QueryWitness) -> list[Comparison]:
        """Run histories again, and judge each history."""
        name = "the job" if isinstance(witness, JobWitness) else "Spark"
        return [*self._compared(histories, map(play, histories), witness.answers(histories, self.options), name)]

    def _compared(
        self, histories: Sequence[History], played: Iterable[Played], answers: Answers, name: str
    ) -> Iterator[Comparison]:
        for history, own, outcome, left in zip(histories, played, answers.outcomes, answers.left, strict=True):
            found = self.differences(history, own, outcome, left)
            yield Comparison(by_reference(history, own), (name, outcome), found)
