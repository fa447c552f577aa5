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
    """Returns a job's expected output. A new oracle defines `name` and `expected`; the other members have defaults.

    Attributes:
        takes_late: Whether the oracle handles late rows; if not, histories contain none.
        distances_us: The durations that the oracle depends on (µs): gaps, sizes, delays.
        edges_us: The steps and offsets of the watermark's edges (µs).
        allows_fewer_columns: Whether a job's result may lack some of the expected columns.
        follows_clock: Whether the oracle depends on the clock of the inputs' event times.
        derived_clock: The watermark column that its jobs derive from the event time.
        runs_job: Whether the oracle runs a job, and so can't expect values that vary between runs.
    """

    takes_late: bool = False
    distances_us: Sequence[int] = ()
    edges_us: Sequence[tuple[int, int]] = ()
    allows_fewer_columns: bool = False
    follows_clock: bool = True
    derived_clock: str = ""
    runs_job: bool = False

    if TYPE_CHECKING:  # at runtime, a property would conflict with a dataclass's field of this name

        @property
        def name(self) -> str:
            """The oracle's name in reports, such as `the SQL statement`."""

    @property
    def watermark_delays_us(self) -> Mapping[str, int] | None:
        """The delays of the expected watermarks (µs), by input; None: no watermarks are expected."""
        return None

    @property
    def unchecked(self) -> Sequence[str]:
        """The parts that its histories leave out, each with the way to check it."""
        return ()

    @property
    def written(self) -> Sequence[Any]:
        """The user's functions, classes and statements in the oracle; their constants are drawn too."""
        return ()

    def required(self, sources: Sequence[Source]) -> Collection[str]:
        """Return the expected columns that a job's result must contain, though it may lack other columns."""
        return ()

    def closes(self, mode: Mode) -> bool:
        """Return whether the end of a history must close everything: then the watermark moves far beyond it."""
        return mode == "append"

    def identity(self, source: Source) -> Sequence[str]:
        """Return the columns in which two rows of an input agree only as copies of one event; none: all may differ."""
        return ()

    def beside(self, witness: RowsWitness) -> Oracle:
        """Return the oracle for the checked job, whose witness the oracle may need."""
        return self

    def refuses(self, plan: Plan, run: RunOptions) -> str | None:
        """Return the reason why the oracle can't check a job, before any history is drawn; None: it can.

        Args:
            plan: The job's analyzed plan; empty for a sink.
            run: The run options of the job.
        """
        return None

    def unmet(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[str]:
        """Return the oracle's own coverage goals that histories don't meet; as `expected`."""
        return []

    @abstractmethod
    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        """Compute the expected outcome of each history.

        Args:
            histories: The histories.
            sources: The job's inputs.
            run: The run options of the job.

        Raises:
            BadInput: The oracle can't compute an expectation for a history; the message names the remedy.
        """
