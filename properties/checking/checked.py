"""The result of checking an operator, a user's job or a specification, as plain data with a verdict for each law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

VerdictName: TypeAlias = Literal["conforms", "violated", "inconclusive", "not checked"]
ONE = {"histories": "history", "distinct states": "distinct state"}

MARKS: Mapping[VerdictName, str] = {"conforms": "✓", "violated": "✗", "inconclusive": "?", "not checked": "-"}
"""The mark before each verdict, for readers who see no colours."""


@dataclass(frozen=True)
class LawCount:
    """The result of a law.

    Attributes:
        law: The law's name.
        says: The law's sentence.
        witnesses: The witnesses (implementations or oracles) whose outcomes the law compares.
        verdict: The law's verdict.
        histories: The number of judged histories.
        violations: The number of judged histories that break the law.
        why: The reason why the law is inconclusive or not checked; empty otherwise.
        met: The number of histories that met each coverage goal of the law.
        not_met: The coverage goals of the law that no history met.
    """

    law: str
    says: str
    witnesses: Sequence[str]
    verdict: VerdictName
    histories: int = 0
    violations: int = 0
    why: str = ""
    met: Mapping[str, int] = field(default_factory=dict)
    not_met: Sequence[str] = ()

    @property
    def reason(self) -> str:
        """The reason why the law is inconclusive or not checked, and the unmet coverage goals."""
        return f"{self.why}: {', '.join(self.not_met)}" if self.why and self.not_met else self.why


@dataclass(frozen=True)
class Checked:
    """The result of a check, with the result of each law.

    Attributes:
        name: The check's name in reports, such as `session_windows, on Spark`.
        verdict: The check's verdict.
        laws: The laws.
        histories: The number of histories that ran, or of the specification's distinct states.
        queries: The number of Spark's streaming queries.
        seconds: The duration of the check (s).
        seeds: The seeds of the check, as text.
        covered: The number of drawn histories that met each coverage goal.
        notes: Further remarks on the check, one sentence each.
        unfinished: `not begun` or `not finished` for an incomplete check; empty if the check is finished.
        counted: The noun for the items that `histories` counts, such as `states` of a specification.
        not_checked: The behaviours that the check didn't cover, each with a way to check the behaviour.
    """

    name: str
    verdict: VerdictName
    laws: Sequence[LawCount]
    histories: int = 0
    queries: int = 0
    seconds: float = 0.0
    seeds: str = ""
    covered: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    unfinished: str = ""
    counted: Literal["histories", "distinct states"] = "histories"
    not_checked: Sequence[str] = ()

    @property
    def counts(self) -> str:
        """The numbers of histories, queries and seconds, as text."""
        queries = f" in {self.queries:,} queries" if self.queries else ""
        counted = ONE[self.counted] if self.histories == 1 else self.counted
        took = f"{self.seconds:.0f} s" if self.seconds else ""
        return f"{', '.join(filter(None, [f'{self.histories:,} {counted}{queries}', took, self.seeds]))}."

    @property
    def lines(self) -> list[str]:
        """The check as lines of text: the verdict, then each law, with a reason unless the law conforms."""
        unfinished = f" ({self.unfinished})" if self.unfinished else ""
        lines = [f"{self.name}: {self.verdict}{unfinished}. {self.counts}"]
        for law in self.laws:
            between = f" [{', '.join(law.witnesses)}]" if law.witnesses else ""
            broken = f", {law.violations:,} violations" if law.violations else ""
            lines.append(f"  {MARKS[law.verdict]} {law.verdict:12} {law.histories:>9,}  {law.law}{between}{broken}")
            lines += [f"    {'':12} {'':>9}  {law.reason}"] if law.reason else []
        return lines

    @property
    def witnesses(self) -> list[str]:
        """The witnesses whose outcomes the laws compare."""
        return list(dict.fromkeys(witness for law in self.laws for witness in law.witnesses))

    @property
    def met(self) -> list[tuple[str, int]]:
        """The number of histories that met each coverage goal, including the goals of laws."""
        met = dict(self.covered)
        for goal, count in (pair for law in self.laws for pair in law.met.items()):
            met[goal] = max(met.get(goal, 0), count)
        return sorted(met.items())

    @property
    def not_met(self) -> list[str]:
        """The coverage goals of the laws that no history met."""
        return list(dict.fromkeys(goal for law in self.laws for goal in law.not_met))
