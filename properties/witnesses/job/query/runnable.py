"""A job with the data for its queries, and the earlier version whose checkpoint the job continues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

from ....generators.columns.model import Source
from ....system.installed.spark_versions import frame_of_arrow
from ...run_options import PLAIN, Mode, RunOptions
from ...spark.engine import Tables
from ...spark.platform import connect
from ..contract import location
from ..dying.memory import Memory
from ..plan.plans import Plan
from ..sinks.sink import Sink
from .deaths import JobDeaths
from .progress import Committed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

JobOrSink: TypeAlias = Callable[..., "DataFrame"] | Sink


def name_of(job: JobOrSink) -> str:
    """Return a job's name in messages: its function, file and line, and whether it runs over Spark Connect."""
    return _place_of(job) + " over Spark Connect" * connect.is_asked()


def _place_of(job: JobOrSink) -> str:
    return location(job.start if isinstance(job, Sink) else job)


@dataclass(frozen=True)
class RunnableJob:
    """A job, with its inputs, its tables and caches for its queries.

    Attributes:
        job: The job.
        sources: The job's inputs.
        static: The static tables, which the job's further parameters receive, by name.
        earlier: The earlier version of the job, whose checkpoint the job continues after a stop (None: no earlier
            version).
        memory: The values that sinks' code keeps in this process; each start of a query gets the values of the first
            start.
        plans: The plans of the job's queries, by the output mode and the plan's text.
        schemas: Spark's schemas of the inputs, by the settings of the session and of the inputs.
    """

    job: JobOrSink
    sources: Sequence[Source]
    static: Mapping[str, pa.Table] = field(default_factory=dict)
    earlier: Earlier | None = None
    memory: Memory = field(default_factory=Memory, repr=False, compare=False)
    plans: dict[str, Plan] = field(default_factory=dict, repr=False, compare=False)
    schemas: dict[str, StructType] = field(default_factory=dict, repr=False, compare=False)

    def static_frames(self, spark: SparkSession, folder: Path) -> list[DataFrame]:
        """Return the static tables as DataFrames."""
        tables = enumerate(self.static.values())
        return [frame_of_arrow(spark, table, folder / f"static {number}.parquet") for number, table in tables]

    def derived_time(self, plan: Plan) -> str | None:
        """Return the column that the job computes for its watermark although an input has the event time (None: no such
        column).
        """
        derived = [time.name for time in plan.event_times if time.given is None]
        to_derive = [source for source in self.sources if source.wire_time is None]
        if not derived or len(to_derive) == len(self.sources) or len(derived) <= len(to_derive):
            return None
        return derived[0]


@dataclass(frozen=True)
class Feed:
    """The batches of a query, and the options of its run.

    Attributes:
        batches: The rows of each input, for each batch.
        clock: The event time (microseconds since 1970) to which the watermarks move in each batch; empty: only the
            job's rows move them.
        run: The options of the run.
        times_ms: The processing time of each batch, in milliseconds since 1970; empty: the machine's time.
    """

    batches: Sequence[Tables]
    clock: Sequence[int] = ()
    run: RunOptions = PLAIN
    times_ms: Sequence[int] = ()


@dataclass(frozen=True)
class UntilStop:
    """A run of an earlier version until its first stop.

    Attributes:
        runnable: The job that continues after the stop.
        feed: The batches of the whole query, and the options of the run.
        folder: The folder of the query.
        given: The further arguments of a sink's functions.
    """

    runnable: RunnableJob
    feed: Feed
    folder: Path
    given: tuple[Any, ...] = ()


@dataclass(frozen=True)
class LeftBehind:
    """The results that an earlier version's query leaves to the next version.

    Attributes:
        available: The number of micro-batches that the query has run.
        checkpoint: The folder of the query's checkpoint.
        tables: The rows of each micro-batch.
        committed: The watermarks, late rows and durations that the query has reported.
        deaths: The query's planned crashes, and the crashes that have happened.
    """

    available: int
    checkpoint: Path
    tables: dict[int, pa.Table] = field(default_factory=dict)
    committed: Committed = field(default_factory=Committed)
    deaths: JobDeaths = field(default_factory=JobDeaths)


class OtherPySpark(Protocol):
    """Another version of PySpark, which runs jobs in another process."""

    version: str

    def declare(self, runner: Any, run: RunOptions) -> Any:
        """Declare a job, as `Runner.declare` does."""

    def run(self, runner: Any, feed: Feed) -> Any:
        """Run a job, as `Runner.run` does."""

    def until_stop(self, earlier: Earlier, until: UntilStop) -> LeftBehind:
        """Run the earlier version until its first stop, in the folder in which the later version's query continues."""


@dataclass(frozen=True)
class Earlier:
    """The earlier version of a job: it runs until the first stop, and the job continues its checkpoint.

    Attributes:
        job: The earlier job.
        mode: The output mode of the earlier job.
        settings: The session settings of the earlier job, in place of the job's settings.
        on: The PySpark that runs the earlier job (None: this process's PySpark).
        repartition: The number of partitions to which Spark changes the state between the two versions (None: no
            change).
    """

    job: JobOrSink
    mode: Mode = "append"
    settings: Mapping[str, str] = field(default_factory=dict)
    on: OtherPySpark | None = None
    repartition: int | None = None

    @property
    def name(self) -> str:
        """The name in messages: the function, its file and line, and the version of another PySpark."""
        return name_of(self.job) if self.on is None else f"{_place_of(self.job)} on PySpark {self.on.version}"
