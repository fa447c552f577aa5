"""The failures of a job's check, which has found a violation, is inconclusive, or ended without a verdict."""

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
    """Raised by a job's check whose verdict isn't *conforms*.

    Attributes:
        notes: The invariants that held before the failure, and the notes on the job's plan, if known.
    """

    notes: Sequence[str] = ()

    @property
    def message(self) -> str:
        """The message of the failure without the notes."""
        return super().__str__()

    def __str__(self) -> str:
        return "\n".join([self.message, *self.notes])


class Inconclusive(CheckFailed):
    """Raised if the check found no difference, but its histories leave a coverage goal unmet.

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
        """The result of the check as plain data."""
        said = self.message
        name = self.job or (said.splitlines() or ["a job"])[0][:100]
        return Checked(name, "inconclusive", [LawCount("coverage", "", (), "inconclusive", why=said)], notes=self.notes)


class Violated(CheckFailed):
    """Raised if the job's output differs from the expected output.

    Attributes:
        counterexample: The smallest history found, the expected rows and the emitted rows.
        path: The path of the saved counterexample; None: the counterexample isn't saved.
        as_found: The counterexample before shrinking, if the job differs there in other rows than on the smallest
            history; otherwise None.
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
        """The name of the checked job."""
        return self.counterexample.actual[0]

    @property
    def checked(self) -> Checked:
        """The result of the check as plain data: one history broke the law."""
        one = self.counterexample
        count = LawCount(one.law, one.compared, ("expected", "job"), "violated", 1, 1)
        return Checked(self.name, "violated", [count], 1, seeds=f"seed {one.seed}", notes=self.notes)


class UpgradeRefused(CheckFailed):
    """Raised if a job can't continue from its earlier version's checkpoint: Spark refuses to start the job, or the job
    fails on the state.

    Attributes:
        job: The job's name.
        cause: The cause, from Spark's or the code's error message.
    """

    __module__ = PUBLIC
    verdict = "violated"

    def __init__(self, message: str, *, job: str, cause: str) -> None:
        super().__init__(message)
        self.job, self.cause = job, cause

    @property
    def checked(self) -> Checked:
        """The result of the check as plain data: the upgrade broke the law *an upgrade*."""
        law = LawCount(Upgrade.of_jobs, "", ("job",), "violated", 1, 1, why=self.cause)
        return Checked(self.job, "violated", [law], 1, notes=self.notes)


@dataclass(frozen=True)
class NotFinished:
    """The result of a check that ended without a verdict.

    Attributes:
        check: The check's name, such as the name of its test.
        why: Why the check ended or failed, such as `could not run: the columns can't be read`.
    """

    check: str
    why: str

    @property
    def checked(self) -> Checked:
        """The result of the check as plain data, without laws."""
        return Checked(self.check, "not checked", [], unfinished=self.why)
