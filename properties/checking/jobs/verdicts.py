"""The ends of a job's check: violated, inconclusive, or without a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ....reference.core.errors import PUBLIC
from ...counterexamples.counterexample import Counterexample
from ...counterexamples.notebook import Raised
from ...generators.columns.model import JobHistory
from ...laws.metamorphic.upgrade import Upgrade
from ..checked import Checked, LawCount


class CheckFailed(Raised, AssertionError):
    """A check of a job that didn't end with *conforms*.

    Attributes:
        notes: The invariants that held before the failure, and the notes on the job's plan, if known.
    """

    notes: Sequence[str] = ()

    @property
    def message(self) -> str:
        """The message without the notes."""
        return super().__str__()

    def __str__(self) -> str:
        return "\n".join([self.message, *self.notes])


class Inconclusive(CheckFailed):
    """The check found no difference, but its histories leave a coverage goal unmet.

    Attributes:
        job: The job's name; empty if unknown.
    """

    __module__ = PUBLIC
    verdict = "inconclusive"

    def __init__(self, message: str, *, job: str = "") -> None:
        super().__init__(message)
        self.job = job

    @property
    def checked(self) -> Checked:
        """The outcome as plain data."""
        said = self.message
        name = self.job or (said.splitlines() or ["a job"])[0][:100]
        return Checked(name, "inconclusive", [LawCount("coverage", "", (), "inconclusive", why=said)], notes=self.notes)


class Violated(CheckFailed):
    """The job differs from its expected output.

    Attributes:
        counterexample: The smallest history found, the expected rows and the emitted rows.
        path: The path of the saved counterexample; None: not saved.
        as_found: The counterexample before shrinking, if it differs in another way; else None.
    """

    __module__ = PUBLIC
    verdict = "violated"

    def __init__(
        self,
        message: str,
        counterexample: Counterexample[JobHistory],
        *,
        path: Path | None = None,
        as_found: Counterexample[JobHistory] | None = None,
    ) -> None:
        super().__init__(message)
        self.counterexample, self.path, self.as_found = counterexample, path, as_found

    @property
    def name(self) -> str:
        """The name of the check's subject."""
        return self.counterexample.actual[0]

    @property
    def checked(self) -> Checked:
        """The outcome as plain data: the broken law, on one history."""
        one = self.counterexample
        count = LawCount(one.law, one.compared, ("expected", "job"), "violated", 1, 1)
        return Checked(self.name, "violated", [count], 1, seeds=f"seed {one.seed}", notes=self.notes)


class UpgradeRefused(CheckFailed):
    """A job can't continue from its earlier version's checkpoint: Spark refuses it, or the job fails on the state.

    Attributes:
        job: The job's name.
        cause: The cause, in Spark's or the code's words.
    """

    __module__ = PUBLIC
    verdict = "violated"

    def __init__(self, message: str, *, job: str, cause: str) -> None:
        super().__init__(message)
        self.job, self.cause = job, cause

    @property
    def checked(self) -> Checked:
        """The outcome as plain data: the law *an upgrade*, broken."""
        law = LawCount(Upgrade.of_jobs, "", ("job",), "violated", 1, 1, why=self.cause)
        return Checked(self.job, "violated", [law], 1, notes=self.notes)


@dataclass(frozen=True)
class NotFinished:
    """A check without a verdict.

    Attributes:
        check: The check's name, such as the name of its test.
        why: The reason of the end or failure, such as `could not run: the columns can't be read`.
    """

    check: str
    why: str

    @property
    def checked(self) -> Checked:
        """The outcome as plain data."""
        return Checked(self.check, "not checked", [], unfinished=self.why)
