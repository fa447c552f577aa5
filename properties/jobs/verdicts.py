"""How a check of a job fails: as violated, or as inconclusive."""

from __future__ import annotations

from .counterexamples import JobCounterexample
from .rendering.notebook import Raised


class Inconclusive(Raised, AssertionError):
    """The check found no difference, but its histories leave some coverage goal unmet, so that they show nothing."""

    verdict = "inconclusive"


class Violated(Raised, AssertionError):
    """The job differs from what is expected.

    Attributes:
        counterexample: The smallest history that was found, what is expected of it, and what came.
    """

    verdict = "violated"

    def __init__(self, message: str, counterexample: JobCounterexample) -> None:
        super().__init__(message)
        self.counterexample = counterexample
