"""The report of an operator's check: the result of each law, and the counterexamples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...reference.core.history import History
from ..counterexamples.counterexample import Counterexample
from ..laws.base import LawResult, Verdict, worst
from .checked import Checked, LawCount


@dataclass(repr=False)
class Report:
    """The report of an operator's check.

    Attributes:
        operator: The operator's name.
        results: The result of each law.
        seed: The seed of the first round.
        found: The counterexamples, with their folders.
        histories: The number of executed histories, including variants of histories.
        queries: The number of streaming queries, including queries shared with other operators.
        seconds: The duration of the check (s).
        covered: The number of drawn histories that met each goal of the operator.
        not_checked: The reason why a law doesn't apply to the operator, by the law's name.
        subject: The implementation that the check ran: `on Spark`, a mutant on Spark, or `the reference`.
        only: The names of the only laws that are checked; empty: all laws.
        all_laws: Whether laws that are usually checked only on the reference are also checked on Spark.
        beside_reference: Whether the check also checks the reference.
        is_whole: Whether every sample of the first round has been judged.
        rounds: The number of started rounds; the seed of the last round is `seed` plus this number minus 1.
    """

    operator: str
    results: list[LawResult]
    seed: int
    found: list[tuple[Counterexample[History], Path]] = field(default_factory=list)
    histories: int = 0
    queries: int = 0
    seconds: float = 0.0
    covered: Counter[str] = field(default_factory=Counter)
    not_checked: Mapping[str, str] = field(default_factory=dict)
    subject: str = "on Spark"
    only: Collection[str] = ()
    all_laws: bool = False
    beside_reference: bool = False
    is_whole: bool = False
    rounds: int = 0

    def __str__(self) -> str:
        """Return the report as text, with the violated law and the folder of each counterexample."""
        found = [f"  {counterexample.sentence} ({path})" for counterexample, path in self.found]
        return "\n".join([*self.checked.lines, *found])

    def __repr__(self) -> str:
        return f"<Report {self.operator}, {self.subject}: {self.verdict}>"

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the checked laws."""
        return worst(result.verdict for result in self.results if not result.skipped)

    @property
    def seeds(self) -> str:
        """The seeds of all rounds, as text."""
        return f"seed {self.seed}" if self.rounds < 2 else f"seeds {self.seed} to {self.seed + self.rounds - 1}"

    @property
    def divergences(self) -> Counter[str]:
        """The number of histories that each known divergence of Kafka Streams explains."""
        return sum((result.divergences for result in self.results), Counter())

    def result(self, law: str) -> LawResult:
        """Return the result of a law."""
        return next(result for result in self.results if result.law.name == law)

    @property
    def checked(self) -> Checked:
        """Return the report as plain data; the check may have been interrupted."""
        named = ", ".join(f"{name} {count:,}" for name, count in self.divergences.most_common())
        left_out = [LawCount(law, "", (), "not checked", why=why) for law, why in sorted(self.not_checked.items())]
        return Checked(
            f"{self.operator}, {self.subject}",
            self.verdict.value,
            [*map(_count, self.results), *left_out],
            self.histories,
            self.queries,
            self.seconds,
            self.seeds,
            dict(sorted(self.covered.items())),
            [f"Known divergences of Kafka Streams, with numbers of histories: {named}."] if named else [],
            "" if self.is_whole else "not finished" if self.results else "not begun",
        )


def _count(result: LawResult) -> LawCount:
    law, why = result.law, ""
    if result.skipped:
        return LawCount(law.name, result.sentence, law.between, "not checked", why=result.skipped)
    if result.verdict == "inconclusive":
        unmet = "coverage goals not met" if result.judged else "no history judged"
        why = "not finished" if result.unfinished else unmet
    return LawCount(
        law.name,
        result.sentence,
        law.between,
        result.verdict.value,
        result.judged,
        len(result.violations),
        why,
        {goal: result.covered[goal] for goal in result.goals if result.covered[goal]},
        result.missing,
    )
