"""A job with what its queries need, and the earlier version that it goes on from."""

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
    """Return a job's name in messages: the name of its function, with file and line, and whether it sees Connect."""
    return _place_of(job) + " over Spark Connect" * connect.is_asked()


def _place_of(job: JobOrSink) -> str:
    return location(job.start if isinstance(job, Sink) else job)


@dataclass(frozen=True)
class RunnableJob:
    """A job, and what its queries need.

    Attributes:
        job: The job.
        sources: Its inputs.
        static: The tables that don't change: what the job's further parameters are given, by name.
        earlier: The earlier version of the job, from whose checkpoint it goes on after a stop; None: it has none.
        memory: What the code of sinks keeps in this process, which each start of a query finds as the first did.
        plans: The plans of its queries, by their mode and text.
        schemas: Spark's schemas of its inputs, by the settings of the session and the inputs' own.
    """

    job: JobOrSink
    sources: Sequence[Source]
    static: Mapping[str, pa.Table] = field(default_factory=dict)
    earlier: Earlier | None = None
    memory: Memory = field(default_factory=Memory, repr=False, compare=False)
    plans: dict[str, Plan] = field(default_factory=dict, repr=False, compare=False)
    schemas: dict[str, StructType] = field(default_factory=dict, repr=False, compare=False)

    def static_frames(self, spark: SparkSession, folder: Path) -> list[DataFrame]:
        """Return the tables that don't change."""
        tables = enumerate(self.static.values())
        return [frame_of_arrow(spark, table, folder / f"static {number}.parquet") for number, table in tables]

    def derived_time(self, plan: Plan) -> str | None:
        """Return the column of a watermark that the job derives though its input has the event time; None: none."""
        derived = [time.name for time in plan.event_times if time.given is None]
        to_derive = [source for source in self.sources if source.wire_time is None]
        if not derived or len(to_derive) == len(self.sources) or len(derived) <= len(to_derive):
            return None
        return derived[0]


@dataclass(frozen=True)
class Feed:
    """The batches of a query, and how it is run over them.

    Attributes:
        batches: Of each batch the rows of each input.
        clock: The event time (microseconds since 1970) to which the watermarks move in each batch; empty: they follow
            the job's rows alone.
        run: How the query is run.
        times_ms: The processing time of each batch, in milliseconds since 1970; empty: that of the machine.
    """

    batches: Sequence[Tables]
    clock: Sequence[int] = ()
    run: RunOptions = PLAIN
    times_ms: Sequence[int] = ()


@dataclass(frozen=True)
class UntilStop:
    """A run of an earlier version until its first stop.

    Attributes:
        runnable: The job that goes on from there.
        feed: The batches, and how the job's query is run over all of them.
        folder: The folder of the query.
        given: What a sink's functions are given beside the inputs.
    """

    runnable: RunnableJob
    feed: Feed
    folder: Path
    given: tuple[Any, ...] = ()


@dataclass(frozen=True)
class LeftBehind:
    """The results that an earlier version's query leaves to the next version.

    Attributes:
        available: The number of micro-batches that it has run.
        checkpoint: The folder of its checkpoint.
        tables: The rows of each micro-batch.
        committed: What its progress has said.
        deaths: Its crashes, planned and happened.
    """

    available: int
    checkpoint: Path
    tables: dict[int, pa.Table] = field(default_factory=dict)
    committed: Committed = field(default_factory=Committed)
    deaths: JobDeaths = field(default_factory=JobDeaths)


class OtherPySpark(Protocol):
    """Another PySpark than this process's, on which jobs are run."""

    version: str

    def declare(self, runner: Any, run: RunOptions) -> Any:
        """Declare the job of a `Runner`, as `Runner.declare`."""

    def run(self, runner: Any, feed: Feed) -> Any:
        """Run the job of a `Runner`, as `Runner.run`."""

    def until_stop(self, earlier: Earlier, until: UntilStop) -> LeftBehind:
        """Run the earlier version until the first stop, in the folder of the query that goes on."""


@dataclass(frozen=True)
class Earlier:
    """The earlier version of a job: it runs until the first stop, and the job goes on from its checkpoint.

    Attributes:
        job: The earlier job.
        mode: Its output mode.
        settings: The settings of the session that it runs under, in place of the job's.
        on: The PySpark that it runs on; None: this process's.
        repartition: The number of partitions that its state is brought to while no query runs; None: it isn't.
    """

    job: JobOrSink
    mode: Mode = "append"
    settings: Mapping[str, str] = field(default_factory=dict)
    on: OtherPySpark | None = None
    repartition: int | None = None

    @property
    def name(self) -> str:
        """Its name in messages: the name of its function, with file and line, and its PySpark if it isn't this one."""
        return name_of(self.job) if self.on is None else f"{_place_of(self.job)} on PySpark {self.on.version}"
