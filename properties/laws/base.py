"""The base classes of laws, with coverage goals, the judgement of samples, and rechecks of single histories."""

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
"""The name of a witness in reports, and the witness's outcome."""
REFERENCE = "reference"
OWN = SPARK
"""The name in reports of the operator's own implementation on Spark."""


class Verdict(StrEnum):
    """The verdict of a check."""

    CONFORMS = "conforms"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"


class CannotRecheck(BadInput):
    """Raised if a law can't be rechecked (judged again) on a history; the message says why."""


@dataclass(frozen=True)
class Comparison:
    """The outcomes of a history from two witnesses, or from two runs of the same witness.

    Attributes:
        expected: The expected outcome, and the name of its witness.
        actual: The outcome to compare with the expected outcome, and the name of its witness.
        differences: The differences between the outcomes; empty if the law holds.
    """

    expected: Named
    actual: Named
    differences: Sequence[Difference]


@dataclass(frozen=True)
class BrokenCase:
    """A history that breaks a law, with the differences."""

    case: Case
    comparison: Comparison


@dataclass
class LawResult:
    """The result of a law for the histories that it judged.

    Attributes:
        law: The law.
        sentence: The law's statement about the operator.
        goals: The coverage goals that must be met for a verdict.
        judged: The number of judged histories.
        covered: The number of histories that met each coverage goal.
        violations: The histories that break the law.
        divergences: The number of histories that each known divergence of Kafka Streams explains.
        unfinished: Whether the check ended before the law had judged all its histories.
        skipped: The reason why the law was skipped; empty if it was judged.
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
        """The coverage goals that no history met."""
        return [goal for goal in self.goals if not self.covered[goal]]

    @property
    def verdict(self) -> Verdict:
        """The law's verdict: violated if a history breaks the law, inconclusive if no history was judged, a goal is
        unmet or the check ended early.
        """
        if self.violations:
            return Verdict.VIOLATED
        nothing_shown = self.unfinished or self.missing or not self.judged
        return Verdict.INCONCLUSIVE if nothing_shown else Verdict.CONFORMS


class Law:
    """A property that all histories of an operator must have.

    Attributes:
        name: The law's name in commands and reports.
        says: The law's statement, if it is the same for all operators.
        between: The witnesses whose outcomes the law compares; if there is one witness, the law compares several runs
            of this witness.
        kinds: The kinds of samples (sets of histories) that the law judges.
        needs: The field of a registration that the law requires; empty if the law applies to all operators.
        reason: The reason why the law skips an operator whose registration lacks the field.
        follows_changelog: Whether every wrong changelog breaks this law too; if so, the law creates no counterexample
            when the changelog law is broken.
        needs_original: Whether the law compares a history with its variant, so that a recheck needs both.
        is_plain: Whether the law can judge any number of histories in a single Spark query.
        null_keys_alone: Whether a recheck of a history with null keys needs its own query.
        shows_neighbours: Whether the law is inconclusive unless its histories would show an off-by-one error in each
            number of the definition.
        at_once: The largest number of candidates in a shrinking round, for laws that run a query for each candidate; 0:
            no limit.
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
        """Return the law's statement for an operator."""
        return self.says

    def not_checked(self, registration: Registration) -> str | None:
        """Return the reason why the law skips an operator, or None."""
        return self.reason if self.needs and not getattr(registration, self.needs) else None

    def is_asked_of(self, sample: Sample) -> bool:
        """Return whether the law judges the histories of a sample."""
        return sample.kind in self.kinds

    def goals(self, sample: Sample) -> Iterable[str]:
        """Return the coverage goals that a sample's histories must meet for a verdict."""
        return ()

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Yield the violations of a run; count the judged histories and the met goals in `result`."""
        raise NotImplementedError

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Judge the law again on each case, in as few queries as possible.

        Raises:
            CannotRecheck: The law can't be rechecked on one of the cases; the message says why.
            MissingTool: The machine lacks a tool that the law needs.
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
        """Judge a law without variants again on histories that share queries."""
        raise NotImplementedError

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Judge the law again on each history of a cohort, with as few queries as possible."""
        return self.recheck_together(cohort.histories, witness)

    def cases_of(self, history: History) -> list[Case]:
        """Return the cases to judge for a history; the shrinker searches for the smallest history that has a violating
        case.
        """
        return [Case(history)]


def violations(
    histories: Iterable[History], comparisons: Iterable[Comparison], way: RunOptions | None = None
) -> Iterator[BrokenCase]:
    """Yield a violation for each history whose outcomes differ; the last histories may lack a comparison.

    Args:
        histories: The histories.
        comparisons: The comparison of the outcomes of each history.
        way: The options of the second run, if the law compares two runs.
    """
    for history, comparison in zip(histories, comparisons, strict=False):
        if comparison.differences:
            yield BrokenCase(Case(history, way=way), comparison)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict: violated, then inconclusive, then conforms; return inconclusive if there are no
    verdicts.
    """
    found = set(verdicts)
    for verdict in (Verdict.VIOLATED, Verdict.INCONCLUSIVE):
        if verdict in found:
            return verdict
    return Verdict.CONFORMS if found else Verdict.INCONCLUSIVE
