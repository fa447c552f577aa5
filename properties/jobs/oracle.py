"""What an oracle is: it says what a job should emit of each history, and what it has to know for that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..witnesses.run_options import Mode, RunOptions
from .model import Expected, JobHistory, Source
from .queries.plans import Plan
from .witness import RowsWitness


class Oracle(ABC):
    """Says what a job should emit. A new oracle gives its name and what it expects; all else has a default.

    Attributes:
        takes_late: Whether it knows what becomes of late rows; without, histories have none.
        distances_us: The durations that matter to it, in microseconds: gaps, sizes, delays.
        allows_fewer_columns: Whether a job may select some of the columns that it expects.
        follows_clock: Whether it goes by the clock of the inputs' event times.
    """

    takes_late: bool = False
    distances_us: Sequence[int] = ()
    allows_fewer_columns: bool = False
    follows_clock: bool = True

    if TYPE_CHECKING:  # at runtime a property would stand in the way of a dataclass's field of this name

        @property
        def name(self) -> str:
            """The oracle's name in reports, such as `the SQL statement`."""

    @property
    def watermark_delays_us(self) -> Mapping[str, int] | None:
        """The delays of the watermarks that it expects, in microseconds, by input; None: it expects no watermarks."""
        return None

    def closes(self, mode: Mode) -> bool:
        """Whether the end of a history must close everything: the watermark is then moved far beyond it."""
        return mode == "append"

    def beside(self, witness: RowsWitness) -> Oracle:
        """Return the oracle with what it needs of the job that is checked."""
        return self

    def refuses(self, plan: Plan, run: RunOptions) -> str | None:
        """Say why it can't tell what is expected of a job, before anything is drawn; None where it can.

        Args:
            plan: The job's analyzed plan; of a sink nothing is known.
            run: How the job is run.
        """
        return None

    @abstractmethod
    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        """Return what is expected of each history.

        Args:
            histories: The histories.
            sources: The job's inputs.
            run: How the job is run.

        Raises:
            BadInput: It can't say it; the message names the remedy.
        """
