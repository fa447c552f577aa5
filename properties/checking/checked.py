"""What came of a check, of an operator, of a user's job or of a specification: what each law says, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["conforms", "violated", "inconclusive", "not checked"]
ONE = {"histories": "history", "distinct states": "distinct state"}


@dataclass(frozen=True)
class LawCount:
    """A law, and what came of it.

    Attributes:
        law: The law's name.
        says: The law, as a sentence.
        witnesses: The witnesses whose answers it compares.
        verdict: Its verdict.
        histories: How many histories it judged.
        violations: On how many of them it is broken.
        why: Why it is inconclusive or not checked, if it is.
        met: In how many of its histories each of its coverage goals was met.
        not_met: Its coverage goals that no history met.
    """

    law: str
    says: str
    witnesses: Sequence[str]
    verdict: Verdict
    histories: int = 0
    violations: int = 0
    why: str = ""
    met: Mapping[str, int] = field(default_factory=dict)
    not_met: Sequence[str] = ()

    @property
    def reason(self) -> str:
        """Why it is inconclusive or not checked, with the coverage goals that no history met."""
        return f"{self.why}: {', '.join(self.not_met)}" if self.why and self.not_met else self.why


@dataclass(frozen=True)
class Checked:
    """What was checked, and what each law says of it.

    Attributes:
        name: What it is called, such as `session_windows, on Spark`.
        verdict: Its verdict.
        laws: The laws.
        histories: How many histories were run, or how many states were found.
        queries: In how many streaming queries.
        seconds: How long it took.
        seeds: The seeds, in words.
        covered: In how many drawn histories each coverage goal was met.
        notes: What else is to be said, a sentence each.
        unfinished: What is missing, if it wasn't finished: `not begun` or `not finished`.
        counted: What `histories` counts.
    """

    name: str
    verdict: Verdict
    laws: Sequence[LawCount]
    histories: int = 0
    queries: int = 0
    seconds: float = 0.0
    seeds: str = ""
    covered: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    unfinished: str = ""
    counted: Literal["histories", "distinct states"] = "histories"

    @property
    def counts(self) -> str:
        """How much was checked, in words."""
        queries = f" in {self.queries:,} queries" if self.queries else ""
        counted = ONE[self.counted] if self.histories == 1 else self.counted
        took = f"{self.seconds:.0f} s" if self.seconds else ""
        return f"{', '.join(filter(None, [f'{self.histories:,} {counted}{queries}', took, self.seeds]))}."

    @property
    def witnesses(self) -> list[str]:
        """The witnesses whose answers its laws compare."""
        return list(dict.fromkeys(witness for law in self.laws for witness in law.witnesses))

    @property
    def met(self) -> list[tuple[str, int]]:
        """The coverage goals that were met, with those of single laws, in how many histories."""
        met = dict(self.covered)
        for goal, count in (pair for law in self.laws for pair in law.met.items()):
            met[goal] = max(met.get(goal, 0), count)
        return sorted(met.items())

    @property
    def not_met(self) -> list[str]:
        """The coverage goals of its laws that no history met."""
        return list(dict.fromkeys(goal for law in self.laws for goal in law.not_met))
