"""The reports of checks of a job that found no difference."""

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
    """A mutant and what became of it.

    Attributes:
        mutant: Its line and its change, in words.
        fate: `killed`; `survived`: its rows differ from the job's, and the check accepts them; `no difference`: no
            history shows any; `doesn't run`: Spark or Python refuses it, so any test would notice.
        why: What killed or refused it, or what would notice it.
    """

    mutant: str
    fate: Fate
    why: str


@dataclass(frozen=True)
class MutantsReport:
    """The mutants of a job, and how many of them its check kills.

    Attributes:
        job: The job's name.
        oracle: What is expected of the job.
        judged: The mutants that were checked.
        seconds: How long their checks took.
    """

    job: str
    oracle: str
    judged: Sequence[JudgedMutant]
    seconds: float

    @property
    def survivors(self) -> list[JudgedMutant]:
        """The mutants that the check doesn't kill."""
        return [one for one in self.judged if one.fate in ("survived", "no difference")]

    def __str__(self) -> str:
        killed, refused = (sum(one.fate == fate for one in self.judged) for fate in ("killed", "doesn't run"))
        head = (
            f"{killed} of the {len(self.judged) - refused} mutants of {self.job} that run are killed, expecting "
            f"{self.oracle}; {refused} don't run ({self.seconds:.0f} s)."
        )
        return "\n".join([head, *(f"{one.fate}: {one.mutant}; {one.why}." for one in self.survivors)])


@dataclass(frozen=True)
class JobReport(Shown):
    """The report of a check of a job that found no difference.

    Attributes:
        job: The job's name.
        oracle: The oracle that the job was compared with.
        histories: The number of histories.
        expecting: The number of histories for which rows were expected.
        comparing: The part of the result that was compared.
        alone: Why each history ran in a query of its own; empty where they shared one.
        not_checked: The parts that were not checked, each with the way to check it.
        equality: When two values counted as equal.
        mutants: The mutants of the job, and which of them the check kills; None: they weren't asked for.
        limits: The columns that weren't compared, the sinks and triggers that weren't used, and the settings that the
            job makes; a sentence each.
    """

    job: str
    oracle: str
    histories: int
    expecting: int
    comparing: Comparing
    alone: str = ""
    not_checked: Sequence[str] = ()
    equality: Equality = TWELVE_DIGITS
    mutants: MutantsReport | None = None
    limits: Sequence[str] = ()

    def __str__(self) -> str:
        head = (
            f"{self.job} conforms to {self.oracle} on {self.histories} histories; rows were expected on "
            f"{self.expecting}. Compared: {in_words(self.comparing, self.equality)}."
        )
        return "\n".join([head, *self._notes])

    @property
    def _notes(self) -> list[str]:
        alone = [f"Each history ran in a query of its own: {self.alone}."] if self.alone else []
        mutants = [] if self.mutants is None else str(self.mutants).splitlines()
        return [*_sentences(self.limits), *alone, *_not_checked(self.not_checked), *mutants]

    @property
    def checked(self) -> Checked:
        """The report as plain data: the one law that the job emits what the oracle expects."""
        says, histories = in_words(self.comparing, self.equality), self.histories
        law = LawCount(self.oracle, says, ("expected", "job"), "conforms", histories)
        notes = [f"Rows were expected on {self.expecting:,} of them.", *self._notes]
        return Checked(self.job, "conforms", [law], histories, notes=notes)


@dataclass(frozen=True)
class InvariantsReport(Shown):
    """The report of a check of a job's invariants that found no difference.

    Attributes:
        job: The job's name.
        held: The ways to run the job that changed nothing, each with its number of histories.
        not_checked: The invariants that were not checked, each with the reason.
        equality: When two values counted as equal.
        limits: As `JobReport`.
    """

    job: str
    held: Mapping[str, int]
    not_checked: Sequence[str] = ()
    equality: Equality = TWELVE_DIGITS
    limits: Sequence[str] = ()

    def __str__(self) -> str:
        head = f"{self.job}: nothing changes by"
        lines = [f"{head} what is listed here.", *_sentences(self.limits)] if self.limits else [head]
        lines += [f"  {name} ({count} histories)" for name, count in self.held.items()]
        return "\n".join([*lines, f"Compared: {self.equality}.", *_not_checked(self.not_checked)])

    @property
    def checked(self) -> Checked:
        """The report as plain data: a law for each way to run the job that changed nothing."""
        laws = [LawCount(name, "", ("job",), "conforms", count) for name, count in self.held.items()]
        most = max(self.held.values(), default=0)
        return Checked(
            self.job, "conforms", laws, most, notes=[*_sentences(self.limits), *_not_checked(self.not_checked)]
        )


@dataclass(frozen=True)
class UpgradeReport(Shown):
    """The report of a check that a job goes on from its earlier version's checkpoint, and that found no difference.

    Attributes:
        job: The job's name.
        earlier: The name of its earlier version.
        oracle: The oracle that says what the job emits after the upgrade.
        histories: The number of histories.
        expecting: For each batch after which the job was upgraded, the number of histories with rows expected after it.
        comparing: The part of the result that was compared.
        moved: The number of comparisons in which rows come in another batch than in a run from the start.
        not_checked: The parts that were not checked, each with the way to check it.
        equality: When two values counted as equal.
        limits: As `JobReport`.
    """

    job: str
    earlier: str
    oracle: str
    histories: int
    expecting: Mapping[int, int]
    comparing: Comparing
    moved: int = 0
    not_checked: Sequence[str] = ()
    equality: Equality = TWELVE_DIGITS
    limits: Sequence[str] = ()

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.job} goes on from the checkpoint of {self.earlier} as {self.oracle} says, on {self.histories} "
                f"histories. Compared: {in_words(self.comparing, self.equality)}.",
                *self._notes,
            ]
        )

    @property
    def _notes(self) -> list[str]:
        notes = [
            f"Upgraded after batch {cut}: rows were expected after that on {count} histories."
            for cut, count in self.expecting.items()
        ]
        if self.moved:
            notes.append(
                f"In {self.moved} comparisons rows come in another batch than in a run from the start; the rows of "
                "both versions together are the same."
            )
        return [*_sentences(self.limits), *notes, *_not_checked(self.not_checked)]

    @property
    def checked(self) -> Checked:
        """The report as plain data: the law *an upgrade* for each batch after which the job was upgraded."""
        laws = [
            LawCount(f"an upgrade after batch {cut}", "", (self.oracle, "job"), "conforms", self.histories)
            for cut in self.expecting
        ]
        return Checked(self.job, "conforms", laws, self.histories, notes=self._notes)


@dataclass(frozen=True)
class ReplayReport(Shown):
    """The report of a run in production that found no difference.

    Attributes:
        job: The job's name.
        oracle: The oracle that says what the run should have written.
        batches: The numbers of the first and the last micro-batch that were judged.
        read: The number of rows that the run has read.
        written: The number of rows that it has written.
        by_batch: Whether the rows of each batch were compared; otherwise all rows at the end.
        not_checked: The parts that were not checked, each with the reason.
        equality: When two values counted as equal.
        limits: As `JobReport`.
    """

    job: str
    oracle: str
    batches: tuple[int, int]
    read: int
    written: int
    by_batch: bool
    not_checked: Sequence[str] = ()
    equality: Equality = TWELVE_DIGITS
    limits: Sequence[str] = ()

    @property
    def _compared(self) -> str:
        return in_words("batches" if self.by_batch else "end", self.equality)

    @property
    def _notes(self) -> list[str]:
        return [*_sentences(self.limits), *_not_checked(self.not_checked)]

    def __str__(self) -> str:
        first, last = self.batches
        head = (
            f"The run of {self.job} wrote what {self.oracle} expects, in batches {first:,} to {last:,}: "
            f"{_rows(self.read)} read, {_rows(self.written)} written. Compared: {self._compared}."
        )
        return "\n".join([head, *self._notes])

    @property
    def checked(self) -> Checked:
        """The report as plain data: the one law that the run wrote what the oracle expects."""
        law = LawCount(self.oracle, self._compared, ("expected", "the run"), "conforms", 1)
        notes = [f"{_rows(self.read)} read, {_rows(self.written)} written.", *self._notes]
        return Checked(f"the run of {self.job}", "conforms", [law], 1, notes=notes)


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"


def _sentences(limits: Sequence[str]) -> list[str]:
    return [f"{one}." for one in limits]


def _not_checked(reasons: Sequence[str]) -> list[str]:
    return [f"Not checked: {one}." for one in reasons]
