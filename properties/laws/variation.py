"""How a job's query is run otherwise than plainly, where that may change nothing of what the job emits.

A variation is small enough to be saved with its counterexample, so that this is replayed as it was found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..generators.columns.model import Comparing, JobHistory
from ..witnesses.job.running import Output
from ..witnesses.run_options import RunOptions

BATCHES = 5
"""The batches of a history that may have rows."""


@dataclass(frozen=True)
class Variation:
    """One way to run a job's query; by default the plain one.

    Attributes:
        run: How the query is run.
        law: What jobs call the law that asks for it; empty for the plain one.
        given: What the law was given, such as where the query dies, as JSON has it; None: nothing that is saved.
        when: The run in words, such as `with five shuffle partitions`.
        otherwise: The plain run in words.
        comparing: What must be the same: the rows of each batch, or the table at the end.
        vary: Returns the history that the job is given in place of one that is drawn.
        goals: The coverage goals of the run.
        parts: Takes the output of a run and returns smaller variations, the likeliest first; None: there are none.
        share: Returns the share of a history, by its number, where each runs in a query of its own; None for the whole.
        remedy: What to do where a right job differs.
        is_alone: Whether a history runs alone, and must emit what is expected of it beside others.
    """

    run: RunOptions
    law: str = ""
    given: Any = None
    when: str = ""
    otherwise: str = ""
    comparing: Comparing = "batches"
    vary: Callable[[JobHistory], JobHistory] = field(default=lambda history: history, compare=False)
    goals: Sequence[str] = ()
    parts: Callable[[Output], Sequence[Variation]] | None = field(default=None, compare=False)
    share: Callable[[int], Variation] | None = field(default=None, compare=False)
    remedy: str = ""
    is_alone: bool = False

    @property
    def saved(self) -> Mapping[str, Any]:
        """The variation as a counterexample's file has it; empty for the plain run."""
        return {} if self.given is None else {"law": self.law, "given": self.given}


class Invariant(ABC):
    """A law over any witness: of an operator it judges outcomes, as each law; of any job it says how its query varies.

    Attributes:
        of_jobs: What reports and counterexamples of jobs call it, such as `a restart`.
        given: The argument `given` of `variation` where none is drawn, as JSON has it; None where it needs nothing.
    """

    of_jobs: ClassVar[str]
    given: ClassVar[Any] = None

    def draw(self, run: RunOptions, seed: int, batches: int) -> Any:
        """Draw the argument `given` of `variation`, as JSON has it.

        Args:
            run: The plain run.
            seed: The seed of what is drawn.
            batches: How many batches a history has.
        """
        return self.given

    @abstractmethod
    def variation(self, run: RunOptions, given: Any) -> Variation:
        """Return the variation of a plain run.

        Raises:
            TypeError, ValueError, IndexError: It can't be made of what is given.
        """
