"""The base class of oracles; an oracle returns a job's expected output for each history."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...generators.columns.model import Expected, JobHistory, Source
from ...witnesses.job.plan.plans import Plan
from ...witnesses.job.witness import RowsWitness
from ...witnesses.run_options import Mode, RunOptions


class Oracle(ABC):
    """An oracle, which returns a job's expected output. A new oracle defines `name` and `expected`; the other
    attributes and methods have defaults.

    Attributes:
        takes_late: Whether the oracle knows which rows are late; if not, the check draws no late rows.
        distances_us: The durations on which the expected output depends (µs): gaps, sizes, delays.
        edges_us: The times at which the watermark changes the output, each series as a step and an offset (µs).
        allows_fewer_columns: Whether a correct job's result may lack some of the columns that the oracle returns.
        follows_clock: Whether the expected output depends on the clock of the inputs' event times.
        derived_clock: The watermark column that the job must derive from the event time.
        runs_job: Whether the oracle runs a job, so that its output contains values that vary between runs.
    """

    takes_late: bool = False
    distances_us: Sequence[int] = ()
    edges_us: Sequence[tuple[int, int]] = ()
    allows_fewer_columns: bool = False
    follows_clock: bool = True
    derived_clock: str = ""
    runs_job: bool = False

    if TYPE_CHECKING:  # for mypy only: a real property would hide subclasses' field `name`

        @property
        def name(self) -> str:
            """The oracle's name in reports, such as `the SQL statement`."""

    @property
    def watermark_delays_us(self) -> Mapping[str, int] | None:
        """The delays of the expected watermarks (µs), by input; None: the oracle expects no watermarks."""
        return None

    @property
    def unchecked(self) -> Sequence[str]:
        """The kinds of rows that the oracle's histories leave out, each with a way to check them."""
        return ()

    @property
    def written(self) -> Sequence[Any]:
        """The user's functions, classes and statements in the oracle; the check draws values around their constants."""
        return ()

    def required(self, sources: Sequence[Source]) -> Collection[str]:
        """Return the columns that a job's result must contain, even if it may lack other columns."""
        return ()

    def closes(self, mode: Mode) -> bool:
        """Return whether a history must end with a watermark far ahead, which closes all windows and groups."""
        return mode == "append"

    def identity(self, source: Source) -> Sequence[str]:
        """Return the columns that identify an event: only copies of an event have equal values; return none if each row
        is an event.
        """
        return ()

    def beside(self, witness: RowsWitness) -> Oracle:
        """Return the oracle for a checked job; the oracle may run the job by the given witness."""
        return self

    def refuses(self, plan: Plan, run: RunOptions) -> str | None:
        """Return the reason why the oracle can't check a job, before the check draws histories; None: the oracle can
        check the job.

        Args:
            plan: The job's analyzed plan; empty for a sink.
            run: The run options of the job.
        """
        return None

    def unmet(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[str]:
        """Return the oracle's own coverage goals that no history meets; arguments as for `expected`."""
        return []

    @abstractmethod
    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        """Return the expected outcome of each history.

        Args:
            histories: The histories.
            sources: The job's inputs.
            run: The run options of the job.

        Raises:
            BadInput: The oracle has no expected outcome for a history; the message says what to do.
        """
