"""The reports of job checks that found no difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...counterexamples.notebook import Shown
from ...generators.columns.model import Comparing
from ...laws.expected.comparison import in_words
from ...outcomes.equality import TWELVE_DIGITS, Equality
from ..checked import Checked, LawCount

Fate: TypeAlias = Literal["killed", "survived", "no difference", "doesn't run"]


@dataclass(frozen=True)
class JudgedMutant:
    """A mutant of a job, and its fate.

    Attributes:
        mutant: The mutant's line and change, as text.
        fate: `killed`; `survived`: the mutant's rows differ from the job's rows, but the check accepts them; `no
            difference`: the mutant's and the job's rows are the same on all histories; `doesn't run`: Spark or Python
            refuses to run the mutant, so any test would detect it.
        why: The reason why the check killed the mutant or Spark refused it, or advice on how to detect the mutant.
    """

    mutant: str
    fate: Fate
    why: str


@dataclass(frozen=True)
class JudgedMutants:
    """The mutants of a job, and how many of them the job's check kills.

    Attributes:
        job: The job's name.
        oracle: The oracle of the job.
        judged: The mutants that were checked.
        seconds: The duration of all checks (s).
    """

    job: str
    oracle: str
    judged: Sequence[JudgedMutant]
    seconds: float

    @property
    def survivors(self) -> list[JudgedMutant]:
        """The mutants with the fate `survived` or `no difference`."""
        return [one for one in self.judged if one.fate in ("survived", "no difference")]

    def __str__(self) -> str:
        killed, refused = (sum(one.fate == fate for one in self.judged) for fate in ("killed", "doesn't run"))
        head = (
            f"{killed} of the {len(self.judged) - refused} mutants of {self.job} that run are killed, expecting "
            f"{self.oracle}; {refused} don't run ({self.seconds:.0f} s)."
        )
        return "\n".join([head, *(f"{one.fate}: {one.mutant}; {one.why}." for one in self.survivors)])


BRIEF = 2
"""The number of suggestions that a brief report shows."""


@dataclass(frozen=True)
class JobReport(Shown):
    """The report of a job's check that found no difference: by `check`, `invariants`, `upgrade` or `replay`.

    Attributes:
        job: The job's name; for `replay`, the run's name.
        says: The verdict, as sentences.
        laws: The laws that hold, each with its number of histories: for `check` the oracle; for `invariants` the
            changes to the run; for `upgrade` an upgrade after each batch.
        comparing: The compared part of the result, such as the rows of each batch; None: each invariant compares a
            different part.
        expecting: The number of histories with expected rows.
        alone: The reason why each history ran in its own query; empty if histories shared a query.
        counted: Further counts, such as how many histories ran alone, each as a sentence.
        not_checked: The behaviours that the check didn't cover, each with a way to check the behaviour.
        equality: The rule by which two values count as equal.
        mutants: The mutants of the job, and their fates; None: the check had no mutants.
        limits: The columns that weren't compared, the sinks and triggers that weren't used, and the job's settings, one
            sentence each.
        notes: The notes on the job's plan.
        between: The witnesses whose outputs were compared.
    """

    job: str
    says: str
    laws: Mapping[str, int]
    comparing: Comparing | None = None
    expecting: int = 0
    alone: str = ""
    counted: Sequence[str] = ()
    not_checked: Sequence[str] = ()
    equality: Equality = TWELVE_DIGITS
    mutants: JudgedMutants | None = None
    limits: Sequence[str] = ()
    notes: Sequence[str] = ()
    between: Sequence[str] = ("expected", "job")

    @property
    def histories(self) -> int:
        """The number of histories that ran."""
        return max(self.laws.values(), default=0)

    @property
    def _compared(self) -> str:
        return str(self.equality) if self.comparing is None else in_words(self.comparing, self.equality)

    def __str__(self) -> str:
        if self.comparing is not None:
            return "\n".join([f"{self.says} Compared: {self._compared}.", *self._limits, *self._notes])
        laws = ", ".join(f"{law} ({count} histories)" for law, count in self.laws.items())
        head = f"{self.says} {laws}. Compared: {self._compared}."
        return "\n".join([head, *self._limits, *self._notes])

    @property
    def brief(self) -> str:
        """The report as text: the verdict, its limits, counts and the first suggestions; five lines if the verdict has
        no limits.
        """
        if self.mutants is not None:
            return str(self)
        held = f" {', '.join(self.laws)} ({self.histories} histories)." if self.comparing is None else ""
        further = [one for one in self._notes if one not in self.counted]
        left = len(further) - BRIEF
        more = [f"{left} more remarks on what the check didn't cover and on the plan: --verbose."] if left > 0 else []
        head = f"{self.says}{held} Compared: {self._compared}."
        return "\n".join([head, *self._limits, *self.counted, *further[:BRIEF], *more])

    @property
    def _limits(self) -> list[str]:
        return [f"{one}." for one in self.limits]

    @property
    def _notes(self) -> list[str]:
        alone = [f"Each history ran in its own query: {self.alone}."] if self.alone else []
        left = [f"Not checked: {one}." for one in self.not_checked]
        return [*alone, *self.counted, *left, *(str(self.mutants).splitlines() if self.mutants else []), *self.notes]

    @property
    def checked(self) -> Checked:
        """The report as plain data, with a `LawCount` for each law."""
        says = "" if self.comparing is None else self._compared
        laws = [LawCount(law, says, self.between, "conforms", count) for law, count in self.laws.items()]
        expecting = [f"{self.expecting:,} of the histories have expected rows."] if self.expecting else []
        notes = [*expecting, *self._limits, *self._notes]
        return Checked(self.job, "conforms", laws, self.histories, notes=notes, not_checked=self.not_checked)
