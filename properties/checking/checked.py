"""The result of a check, of an operator, a user's job or a specification, as plain data: a verdict for each law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

VerdictName: TypeAlias = Literal["conforms", "violated", "inconclusive", "not checked"]
ONE = {"histories": "history", "distinct states": "distinct state"}

MARKS: Mapping[VerdictName, str] = {"conforms": "✓", "violated": "✗", "inconclusive": "?", "not checked": "-"}
"""The mark before a verdict, so that it is seen without colour."""


@dataclass(frozen=True)
class LawCount:
    """A law, and its result.

    Attributes:
        law: The law's name.
        says: The law, as a sentence.
        witnesses: The witnesses whose answers it compares.
        verdict: Its verdict.
        histories: The number of histories that it judged.
        violations: The number of histories on which it is broken.
        why: The reason why it is inconclusive or not checked, if it is.
        met: The number of its histories that met each of its coverage goals.
        not_met: Its coverage goals that no history met.
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
        """The reason why it is inconclusive or not checked, with the coverage goals that no history met."""
        return f"{self.why}: {', '.join(self.not_met)}" if self.why and self.not_met else self.why


@dataclass(frozen=True)
class Checked:
    """A check, with the result of each law.

    Attributes:
        name: Its name in reports, such as `session_windows, on Spark`.
        verdict: Its verdict.
        laws: The laws.
        histories: The number of histories that were run, or of states that were found.
        queries: The number of streaming queries.
        seconds: The time that it took.
        seeds: The seeds, in words.
        covered: The number of drawn histories that met each coverage goal.
        notes: Further remarks, a sentence each.
        unfinished: `not begun` or `not finished`, if the check wasn't finished.
        counted: The unit that `histories` counts.
        not_checked: The parts that were not checked, each with the way to check it.
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
        """The numbers of histories, queries and seconds, in words."""
        queries = f" in {self.queries:,} queries" if self.queries else ""
        counted = ONE[self.counted] if self.histories == 1 else self.counted
        took = f"{self.seconds:.0f} s" if self.seconds else ""
        return f"{', '.join(filter(None, [f'{self.histories:,} {counted}{queries}', took, self.seeds]))}."

    @property
    def lines(self) -> list[str]:
        """The check as text: its verdict, then a line for each law, with the reason if it didn't conform."""
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
        """The witnesses whose answers its laws compare."""
        return list(dict.fromkeys(witness for law in self.laws for witness in law.witnesses))

    @property
    def met(self) -> list[tuple[str, int]]:
        """The number of histories that met each coverage goal, the goals of single laws included."""
        met = dict(self.covered)
        for goal, count in (pair for law in self.laws for pair in law.met.items()):
            met[goal] = max(met.get(goal, 0), count)
        return sorted(met.items())

    @property
    def not_met(self) -> list[str]:
        """The coverage goals of its laws that no history met."""
        return list(dict.fromkeys(goal for law in self.laws for goal in law.not_met))
