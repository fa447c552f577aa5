"""The base of laws: coverage goals, the samples that a law judges, its judgement, and rechecks of a single history."""

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
    """A law can't be asked again about a history; the message says why."""


@dataclass(frozen=True)
class Comparison:
    """The outcomes of a history from two witnesses, or from two runs of one witness.

    Attributes:
        expected: The witness with the expected outcome, and that outcome.
        actual: The other witness, and its outcome.
        differences: The differences between them; none if the law holds.
    """

    expected: Named
    actual: Named
    differences: Sequence[Difference]


@dataclass(frozen=True)
class BrokenCase:
    """A case on which a law is broken."""

    case: Case
    comparison: Comparison


@dataclass
class LawResult:
    """The result of a law for the histories that it judged.

    Attributes:
        law: The law.
        sentence: The law's sentence on the operator.
        goals: The coverage goals that must be met before it has shown anything.
        judged: The number of histories that it judged.
        covered: The number of histories that met each goal.
        violations: The cases on which it is broken.
        divergences: The number of histories whose answer is explained by each named divergence of Kafka Streams.
        unfinished: Whether the check ended before the law was done.
        skipped: The reason why it couldn't be asked at all, if so.
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
        """The goals that no history met."""
        return [goal for goal in self.goals if not self.covered[goal]]

    @property
    def verdict(self) -> Verdict:
        """Violated by one violation; inconclusive without a history or with an unmet goal, or when cut short."""
        if self.violations:
            return Verdict.VIOLATED
        nothing_shown = self.unfinished or self.missing or not self.judged
        return Verdict.INCONCLUSIVE if nothing_shown else Verdict.CONFORMS


class Law:
    """A property of all histories of an operator.

    Attributes:
        name: Its name in commands and reports.
        says: Its sentence, if it is the same for all operators.
        between: The witnesses whose answers it compares; with a single witness, its answers in several runs.
        kinds: The kinds of samples whose runs it judges.
        needs: The field of a registration without which an operator isn't asked; empty if all operators are asked.
        reason: The reason why an operator without that field isn't asked.
        follows_changelog: Whether a wrong changelog breaks it too: then it makes no counterexample of its own.
        needs_original: Whether it relates a variant to its original, so that both are needed to ask it again.
        is_plain: Whether single histories can be judged in one run of Spark, however many.
        null_keys_alone: Whether a history with null keys is asked again in a query of its own.
        shows_neighbours: Whether it has shown nothing until each number of a definition shows when off by one.
        at_once: The most candidates of a round of shrinking, if each costs a query; 0: all.
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
        """Return the law's sentence on an operator."""
        return self.says

    def not_checked(self, registration: Registration) -> str | None:
        """Return the reason why an operator isn't asked, or None if it is."""
        return self.reason if self.needs and not getattr(registration, self.needs) else None

    def is_asked_of(self, sample: Sample) -> bool:
        """Whether the law judges the run of a sample."""
        return sample.kind in self.kinds

    def goals(self, sample: Sample) -> Iterable[str]:
        """Return the coverage goals that histories of a sample must meet before the law has shown anything of it."""
        return ()

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Judge a run; count the judged histories and the covered goals in `result`."""
        raise NotImplementedError

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Ask the law again, about each case alone as far as it matters; cases that may share a query do.

        Raises:
            CannotRecheck: The law can't be asked about such a case; the message says why.
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
        """Ask a plain law again about each of histories that share queries, or a cohort."""
        raise NotImplementedError

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Ask the law again about each history of a cohort, in as few queries as it takes."""
        return self.recheck_together(cohort.histories, witness)

    def cases_of(self, history: History) -> list[Case]:
        """Return the cases that a history makes; shrinking looks for the smallest history with a broken case."""
        return [Case(history)]


def violations(
    histories: Iterable[History], comparisons: Iterable[Comparison], way: RunOptions | None = None
) -> Iterator[BrokenCase]:
    """Yield a violation for each history whose comparison has differences; there may be fewer comparisons.

    Args:
        histories: The histories.
        comparisons: The comparison of each.
        way: How they were run again, if they were.
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
