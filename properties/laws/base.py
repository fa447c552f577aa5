"""The base of laws: coverage goals, the judged samples, the judgement, and rechecks of a single history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, TypeAlias

from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ..generators.cohorts import Cohort, cohorts_of
from ..outcomes.outcomes import Difference, Outcome
from ..registration.registration import Registration
from ..witnesses.run_options import RunOptions
from ..witnesses.spark.witness import SPARK, QueryWitness
from .case import Case
from .runs import Kind, Run, Sample

Named: TypeAlias = tuple[str, Outcome]
"""A witness' name in reports, and its outcome."""
REFERENCE = "reference"
OWN = SPARK
"""The operator's own Spark implementation."""


class Verdict(StrEnum):
    """The verdict of a check."""

    CONFORMS = "conforms"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"


class CannotRecheck(BadInput):
    """A law can't be rechecked on a history; the message says why."""


@dataclass(frozen=True)
class Comparison:
    """The outcomes of a history from two witnesses, or from two runs of one witness.

    Attributes:
        expected: The witness of the expected outcome, and that outcome.
        actual: The other witness, and its outcome.
        differences: The differences between the outcomes; none if the law holds.
    """

    expected: Named
    actual: Named
    differences: Sequence[Difference]


@dataclass(frozen=True)
class BrokenCase:
    """A case that breaks a law."""

    case: Case
    comparison: Comparison


@dataclass
class LawResult:
    """The result of a law for its judged histories.

    Attributes:
        law: The law.
        sentence: The law's sentence for the operator.
        goals: The coverage goals that a verdict requires.
        judged: The number of judged histories.
        covered: The number of histories that met each goal.
        violations: The cases that break the law.
        divergences: The number of histories explained by each named divergence of Kafka Streams.
        unfinished: Whether the check ended before the law was finished.
        skipped: The reason why the law was skipped, if so.
    """

    law: Law
    sentence: str = ""
    goals: tuple[str, ...] = ()
    judged: int = 0
    covered: Counter[str] = field(default_factory=Counter)
    violations: list[BrokenCase] = field(default_factory=list)
    divergences: Counter[str] = field(default_factory=Counter)
    unfinished: bool = False
    skipped: str = ""

    @property
    def missing(self) -> list[str]:
        """The unmet goals."""
        return [goal for goal in self.goals if not self.covered[goal]]

    @property
    def verdict(self) -> Verdict:
        """Violated by a single violation; inconclusive without a history, with an unmet goal, or after an early end."""
        if self.violations:
            return Verdict.VIOLATED
        nothing_shown = self.unfinished or self.missing or not self.judged
        return Verdict.INCONCLUSIVE if nothing_shown else Verdict.CONFORMS


class Law:
    """A property of all histories of an operator.

    Attributes:
        name: Its name in commands and reports.
        says: Its sentence, if it is the same for all operators.
        between: The witnesses whose outcomes the law compares; with a single witness, its outcomes in several runs.
        kinds: The kinds of samples whose runs the law judges.
        needs: The field of a registration that the law requires; empty if it applies to all operators.
        reason: The reason why the law skips an operator without that field.
        follows_changelog: Whether a wrong changelog also breaks this law: then the law creates no counterexample of its
            own.
        needs_original: Whether the law relates a variant to its original, so that a recheck needs both.
        is_plain: Whether a single run of Spark judges any number of histories.
        null_keys_alone: Whether a history with null keys is rechecked in its own query.
        shows_neighbours: Whether the law is inconclusive until the output changes for each off-by-one number of a
            definition.
        at_once: The largest number of candidates of a shrinking round, if each costs a query; 0: all.
    """

    name: ClassVar[str]
    says: ClassVar[str] = ""
    between: tuple[str, ...] = ("spark",)
    kinds: tuple[Kind, ...]
    needs: ClassVar[str] = ""
    reason: ClassVar[str] = ""
    follows_changelog: ClassVar[bool] = False
    needs_original: ClassVar[bool] = False
    is_plain: ClassVar[bool] = False
    null_keys_alone: ClassVar[bool] = True
    shows_neighbours: ClassVar[bool] = False
    at_once: ClassVar[int] = 0

    def sentence(self, registration: Registration) -> str:
        """Return the law's sentence for an operator."""
        return self.says

    def not_checked(self, registration: Registration) -> str | None:
        """Return the reason why the law skips an operator, or None."""
        return self.reason if self.needs and not getattr(registration, self.needs) else None

    def is_asked_of(self, sample: Sample) -> bool:
        """Return whether the law judges the run of a sample."""
        return sample.kind in self.kinds

    def goals(self, sample: Sample) -> Iterable[str]:
        """Return the coverage goals that histories of a sample must meet for a verdict."""
        return ()

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Judge a run; count the judged histories and the covered goals in `result`."""
        raise NotImplementedError

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Recheck the law on each case, alone as far as it matters; cases that may share a query do.

        Raises:
            CannotRecheck: The law doesn't apply to such a case; the message says why.
            MissingTool: The machine lacks what the law needs.
            StreamproofError: A query failed.
        """
        histories = [case.history for case in cases]
        if self.is_plain and witness.shares(histories):
            return self.recheck_together(histories, witness)
        comparisons: dict[int, Comparison] = {}
        for cohort, indexes in cohorts_of(histories, self.null_keys_alone):
            comparisons |= zip(indexes, self.recheck_cohort(cohort, witness), strict=True)
        return [comparisons[index] for index in range(len(cases))]

    def recheck_together(self, histories: Sequence[History], witness: QueryWitness) -> list[Comparison]:
        """Recheck a plain law on histories that share queries, or a cohort."""
        raise NotImplementedError

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Recheck the law on each history of a cohort, with as few queries as possible."""
        return self.recheck_together(cohort.histories, witness)

    def cases_of(self, history: History) -> list[Case]:
        """Return the cases of a history; shrinking searches for the smallest history with a violating case."""
        return [Case(history)]


def violations(
    histories: Iterable[History], comparisons: Iterable[Comparison], way: RunOptions | None = None
) -> Iterator[BrokenCase]:
    """Yield a violation for each history whose comparison contains differences; the comparisons may be fewer.

    Args:
        histories: The histories.
        comparisons: The comparison of each history.
        way: The options of a second run, if any.
    """
    for history, comparison in zip(histories, comparisons, strict=False):
        if comparison.differences:
            yield BrokenCase(Case(history, way=way), comparison)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict: violated before inconclusive before conforms; inconclusive for no verdicts."""
    found = set(verdicts)
    for verdict in (Verdict.VIOLATED, Verdict.INCONCLUSIVE):
        if verdict in found:
            return verdict
    return Verdict.CONFORMS if found else Verdict.INCONCLUSIVE
