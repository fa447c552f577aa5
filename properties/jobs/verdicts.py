"""How a check of a job fails: as violated, or as inconclusive."""

from __future__ import annotations

from .counterexamples import JobCounterexample


class Inconclusive(AssertionError):
    """The check found no difference, but its histories leave some coverage goal unmet, so that they show nothing."""


class Violated(AssertionError):
    """The job differs from what is expected.

    Attributes:
        counterexample: The smallest history that was found, what is expected of it, and what came.
    """

    def __init__(self, message: str, counterexample: JobCounterexample) -> None:
        super().__init__(message)
        self.counterexample = counterexample
