"""Variations of a job's query that mustn't change its output.

A variation is small enough to be saved with its counterexample, which is replayed with the same options.
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
"""The batches of a history that may contain rows."""
CHANGED = "a history that it gives the job otherwise"
"""The coverage goal of a variation of histories: a variation without a changed history shows nothing."""


@dataclass(frozen=True)
class Variation:
    """A way to run a job's query; by default the plain way.

    Attributes:
        run: The run options of the query.
        law: The name, for jobs, of the law behind the variation; empty for the plain way.
        given: The law's argument as JSON, such as the batch in which the query dies; None: nothing is saved.
        when: The run in words, such as `with five shuffle partitions`.
        otherwise: The plain run in words.
        comparing: The part that must stay the same: the rows of each batch, or the final table.
        vary: Returns the job's actual history for a drawn history.
        goals: The coverage goals of the run.
        parts: Gets the output of a run and returns smaller variations, the likeliest first; None: no smaller
            variations.
        share: Returns the part of the variation for a history's number, if each history runs in its own query; None:
            all of it.
        remedy: The advice if a correct job differs.
        is_alone: Whether a history runs alone, but must emit the expected rows of its shared query.
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
        """The variation in the form of a counterexample's file; empty for the plain run."""
        return {} if self.given is None else {"law": self.law, "given": self.given}


class Invariant(ABC):
    """A law over any witness: for an operator, it judges outcomes, as other laws do; for a job, it varies its query.

    Attributes:
        of_jobs: Its name in reports and counterexamples of jobs, such as `a restart`.
        given: The default of `variation`'s argument `given`, as JSON; None: no argument is needed.
    """

    of_jobs: str
    given: ClassVar[Any] = None

    def draw(self, run: RunOptions, seed: int, batches: int) -> Any:
        """Draw the argument `given` of `variation`, as JSON.

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
