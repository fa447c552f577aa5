"""The contract of an oracle, which returns a job's expected output for each history."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...generators.columns.model import Expected, JobHistory, Source
from ...witnesses.job.plan.plans import Plan
from ...witnesses.job.witness import RowsWitness
from ...witnesses.run_options import Mode, RunOptions


class Oracle(ABC):
    """Returns a job's expected output. A new oracle defines `name` and `expected`; the rest has defaults.

    Attributes:
        takes_late: Whether it handles late rows; if not, histories have none.
        distances_us: The durations that it depends on, in microseconds: gaps, sizes, delays.
        edges_us: The steps and offsets of the times at which the watermark sets something off, in microseconds.
        allows_fewer_columns: Whether a job's result may lack some of the columns that it expects.
        follows_clock: Whether it goes by the clock of the inputs' event times.
        derived_clock: The column that its jobs derive of the event time, to have their watermark on it.
        runs_job: Whether it runs a job, and so can't expect values that are others in each run.
    """

    takes_late: bool = False
    distances_us: Sequence[int] = ()
    edges_us: Sequence[tuple[int, int]] = ()
    allows_fewer_columns: bool = False
    follows_clock: bool = True
    derived_clock: str = ""
    runs_job: bool = False

    if TYPE_CHECKING:  # at runtime a property would stand in the way of a dataclass's field of this name

        @property
        def name(self) -> str:
            """The oracle's name in reports, such as `the SQL statement`."""

    @property
    def watermark_delays_us(self) -> Mapping[str, int] | None:
        """The delays of the watermarks that it expects, in microseconds, by input; None: it expects no watermarks."""
        return None

    @property
    def unchecked(self) -> Sequence[str]:
        """The parts that its histories leave out, each with the way to check it."""
        return ()

    @property
    def written(self) -> Sequence[Any]:
        """The user's functions, classes and statements by which it expects rows; their constants are drawn, too."""
        return ()

    def required(self, sources: Sequence[Source]) -> Collection[str]:
        """Return the expected columns that a job's result must have, though it may lack others."""
        return ()

    def closes(self, mode: Mode) -> bool:
        """Whether the end of a history must close everything: then the watermark moves far beyond it."""
        return mode == "append"

    def identity(self, source: Source) -> Sequence[str]:
        """Return the columns in which two rows of an input agree only as copies of one event; none: any may differ."""
        return ()

    def beside(self, witness: RowsWitness) -> Oracle:
        """Return the oracle for the checked job, whose witness it may need."""
        return self

    def refuses(self, plan: Plan, run: RunOptions) -> str | None:
        """Return the reason why it has no expectation for a job, before any history is drawn; None: it has one.

        Args:
            plan: The job's analyzed plan; empty for a sink.
            run: How the job is run.
        """
        return None

    def unmet(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[str]:
        """Return the oracle's own coverage goals that histories leave unmet; as `expected`."""
        return []

    @abstractmethod
    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        """Compute the expected outcome of each history.

        Args:
            histories: The histories.
            sources: The job's inputs.
            run: How the job is run.

        Raises:
            BadInput: The oracle has no expectation for a history; the message names the remedy.
        """
