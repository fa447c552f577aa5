"""Variations of a job's query that mustn't change its output.

A variation is small enough to be saved with its counterexample, which is replayed as it was found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..generators.columns.model import Comparing, JobHistory
from ..witnesses.job.running import QueryOutput
from ..witnesses.run_options import RunOptions

BATCHES = 5
"""The batches of a history that may have rows."""
CHANGED = "a history that it gives the job otherwise"
"""The coverage goal of a variation of histories: one that changes none shows nothing."""


@dataclass(frozen=True)
class Variation:
    """A way to run a job's query; by default the plain way.

    Attributes:
        run: How the query is run.
        law: The name, for jobs, of the law that asks for it; empty for the plain way.
        given: The law's argument, such as the batch in which the query dies, as JSON has it; None: nothing is saved.
        when: The run in words, such as `with five shuffle partitions`.
        otherwise: The plain run in words.
        comparing: What must be the same: the rows of each batch, or the table at the end.
        vary: Returns the history that the job is given in place of a drawn history.
        goals: The coverage goals of the run.
        parts: Takes the output of a run and returns smaller variations, the likeliest first; None: there are none.
        share: Returns a history's share of it, by the history's number, if each runs in its own query; None for all.
        remedy: The advice if a right job differs.
        is_alone: Whether a history runs alone, and must emit the rows that are expected of it beside others.
    """

    run: RunOptions
    law: str = ""
    given: Any = None
    when: str = ""
    otherwise: str = ""
    comparing: Comparing = "batches"
    vary: Callable[[JobHistory], JobHistory] = field(default=lambda history: history, compare=False)
    goals: Sequence[str] = ()
    parts: Callable[[QueryOutput], Sequence[Variation]] | None = field(default=None, compare=False)
    share: Callable[[int], Variation] | None = field(default=None, compare=False)
    remedy: str = ""
    is_alone: bool = False

    @property
    def saved(self) -> Mapping[str, Any]:
        """The variation as a counterexample's file has it; empty for the plain run."""
        return {} if self.given is None else {"law": self.law, "given": self.given}


class Invariant(ABC):
    """A law over any witness: for an operator it judges outcomes, as each law does; for a job it varies its query.

    Attributes:
        of_jobs: Its name in reports and counterexamples of jobs, such as `a restart`.
        given: The argument `given` of `variation` if none is drawn, as JSON has it; None if it needs no argument.
    """

    of_jobs: ClassVar[str]
    given: ClassVar[Any] = None

    def draw(self, run: RunOptions, seed: int, batches: int) -> Any:
        """Draw the argument `given` of `variation`, as JSON has it.

        Args:
            run: The plain run.
            seed: The seed of the draws.
            batches: The number of batches of a history.
        """
        return self.given

    @abstractmethod
    def variation(self, run: RunOptions, given: Any) -> Variation:
        """Return the variation of a plain run.

        Raises:
            TypeError, ValueError, IndexError: The argument is invalid.
        """
