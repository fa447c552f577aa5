"""How a check of a job ends: as conforming to an operator, as violated, as inconclusive, or without a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...counterexamples.counterexample import Counterexample
from ...counterexamples.notebook import Raised, Shown
from ...counterexamples.of_jobs import JobCounterexample
from ...outcomes.equality import EXACT
from ...witnesses.job.contract import location


@dataclass(frozen=True)
class ConformanceReport(Shown):
    """What a check against an operator's reference that found no difference has shown.

    Attributes:
        job: The job's name.
        operator: The operator's name.
        options: The options that the job implements.
        histories: On how many histories they were compared.
        seed: What these were drawn from.
        covered: In how many of them each coverage goal was met.
    """

    job: str
    operator: str
    options: Mapping[str, Any]
    histories: int
    seed: int
    covered: Mapping[str, int]

    @property
    def oracle(self) -> str:
        """The oracle that the job was compared with."""
        return f"the reference of {self.operator}"

    def __str__(self) -> str:
        return (
            f"{self.job} conforms to {self.oracle} on {self.histories} histories, which met every coverage goal. "
            "Compared: the changes of each key in each batch, in order; "
            f"{EXACT}."
        )


class Inconclusive(Raised, AssertionError):
    """The check found no difference, but its histories leave some coverage goal unmet, so that they show nothing.

    Attributes:
        job: The job's name; empty where it isn't known.
    """

    verdict = "inconclusive"

    def __init__(self, message: str, *, job: str = "") -> None:
        super().__init__(message)
        self.job = job


class Violated(Raised, AssertionError):
    """The job differs from what is expected.

    Attributes:
        counterexample: The smallest history that was found, what is expected of it, and what came: that of a check of
            columns of the job's own, or that of an operator's reference.
        job: The job that was compared with an operator's reference, where it is one.
        path: Where that counterexample is saved; None where it isn't.
    """

    verdict = "violated"

    def __init__(
        self,
        message: str,
        counterexample: JobCounterexample | Counterexample,
        *,
        job: object = None,
        path: Path | None = None,
    ) -> None:
        super().__init__(message)
        self.counterexample, self.job, self.path = counterexample, job, path

    @property
    def name(self) -> str:
        """The name of what was checked."""
        if isinstance(self.counterexample, JobCounterexample):
            return self.counterexample.job
        return self.counterexample.right[0] if self.job is None else location(self.job)


@dataclass(frozen=True)
class CouldNotRun:
    """A check without a verdict.

    Attributes:
        check: The check's name, such as the test that asked for it.
        why: What kept it from running.
    """

    check: str
    why: str
