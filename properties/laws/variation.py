"""Variations of a job's run on Spark, such as a restart, which mustn't change the output.

A counterexample's file contains its variation, so that a replay uses the same run options.
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
"""The output that a variation must not change: the rows of each batch, or the final table."""
CHANGED = "a history whose rows the job receives differently"
"""The coverage goal of variations of histories: if no history is changed, the variation shows nothing."""


@dataclass(frozen=True)
class Variation:
    """A variation of a job's run on Spark; by default, the run has default options.

    Attributes:
        run: The run options of the query.
        law: The name, in reports on jobs, of the law that uses the variation; empty for a run with default options.
        given: The law's argument as JSON, such as the batch in which the query dies; None: a counterexample saves no
            variation.
        when: The varied run in words, such as `with five shuffle partitions`.
        otherwise: The run with default options, in words.
        comparing: The part of the output that must stay the same: the rows of each batch, or the final table.
        vary: The function that returns the history that the job receives instead of a drawn history.
        goals: The coverage goals that a varied run must meet.
        parts: The function that returns smaller variations, given the output of a run; the variations most likely to
            differ come first. None: there are no smaller variations.
        share: The function that returns a smaller variation for the index of a history, if each history runs in its own
            query; None: each history runs with the whole variation.
        remedy: The advice to the user for the case that a correct job differs under the variation.
        is_alone: Whether a history runs alone, and its rows are compared with the rows expected of it in the shared
            query.
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
        """The variation as saved in a counterexample's file; empty for a run with default options."""
        return {} if self.given is None else {"law": self.law, "given": self.given}


class Invariant(ABC):
    """A law that applies to operators and jobs: it compares outcomes of an operator, and varies how Spark runs a job's
    query.

    Attributes:
        of_jobs: The law's name in reports and counterexamples of jobs, such as `a restart`.
        given: The default for the parameter `given` of `variation`, as JSON; None: the law's variation has no argument.
    """

    of_jobs: str
    given: ClassVar[Any] = None

    def draw(self, run: RunOptions, seed: int, batches: int) -> Any:
        """Draw the argument `given` of `variation`, as JSON.

        Args:
            run: The run options of the job's run with default options.
            seed: The seed of the draw.
            batches: The number of batches of a history.
        """
        return self.given

    @abstractmethod
    def variation(self, run: RunOptions, given: Any) -> Variation:
        """Return the variation of a job's run.

        Raises:
            TypeError, ValueError, IndexError: The argument is invalid.
        """
