"""Runs a job's query over micro-batches of its own columns, and returns the rows that it wrote in each of them.

Each batch has a file of the clock beside those of the inputs. Under the default trigger an empty file follows each: the
batch without data that Spark runs after a watermark moved, at a moment that doesn't depend on the machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from ...generators.columns.forms.rows import Row
from ..run_options import PLAIN, Crash, RunOptions
from ..spark.engine import Tables, limited
from ..spark.failures import Result, in_own_folder, refused, reported_failures
from ..spark.own_settings import taking_back_settings
from ..spark.session import partitions_of_users_session, partitions_setting, session_for_query
from .clock import Watermarks
from .contract import called, frame_of
from .plan.grouping import Grouping, grouping_of
from .plan.plans import Plan
from .plan.tables import TablesUsed
from .processing_time import SETTINGS
from .query.declaration import REFUSED
from .query.job_query import JobQuery
from .query.runnable import Feed, OtherPySpark, RunnableJob
from .query.sink_query import SinkQuery
from .query.upgrades import UpgradeRun
from .rows import columns_of, rows_of
from .sinks.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

REPEATED = "rows in a repeated batch"
RESTORED = "state before a stop, rows after it"


@dataclass(frozen=True)
class Declared:
    """A job's declaration.

    Attributes:
        names: The columns of its result.
        columns: Those that are compared: of the window its start and end.
        watermarks: The watermarks that it has declared.
        plan: Its analyzed plan.
        grouping: The grouping whose rows it updates, if it does.
        tables: How it uses the tables that don't change.
        schema: The schema of its result; None where it isn't known.
        settings: The settings of the session that it makes.
        divergences: The names of the known divergences of Spark's optimizer that reach its plan.
    """

    names: Sequence[str] = ()
    columns: Sequence[str] = ()
    watermarks: Watermarks = field(default_factory=Watermarks)
    plan: Plan = field(default_factory=Plan)
    grouping: Grouping | None = None
    tables: TablesUsed = field(default_factory=TablesUsed)
    schema: StructType | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    divergences: Sequence[str] = ()


@dataclass(frozen=True)
class QueryOutput:
    """The output of a job's query, and the faults and late rows that it met.

    Attributes:
        batches: The rows of each batch; of a sink one list, of the end.
        parts: The rows of each micro-batch; of a sink none.
        covered: Which of `REPEATED` and `RESTORED` were met.
        stateful: Whether the query has state.
        crashed: The places in which it died, in order, with rows in the micro-batch or without.
        died_at: The line of the user's code before which it last died in the middle of an output, or the number of rows
            after which it did, in words.
        dropped: How many rows Spark's operators dropped because they were behind the watermark.
        ahead: Whether the watermark went beyond the clock.
        other_times: Whether the job derives an event time that its input has as it is, and gets other times.
        plan: The query's analyzed plan.
        tables: How the job uses the tables that don't change.
        settings: The settings of the session that the job makes.
        triggers: The triggers that a sink asks for, and that the check replaces.
        divergences: As `Declared.divergences`; of a sink alone, whose plan its query shows.
    """

    batches: list[list[Row]]
    parts: Sequence[Sequence[Row]] = ()
    covered: frozenset[str] = frozenset()
    stateful: bool = False
    crashed: Sequence[tuple[Crash, bool]] = ()
    died_at: str = ""
    dropped: int = 0
    ahead: bool = False
    other_times: bool = False
    plan: Plan = field(default_factory=Plan)
    tables: TablesUsed = field(default_factory=TablesUsed)
    settings: Mapping[str, str] = field(default_factory=dict)
    triggers: Sequence[str] = ()
    divergences: Sequence[str] = ()


@dataclass(frozen=True)
class Runner(RunnableJob):
    """Runs one job.

    Attributes:
        on: The PySpark that the job runs on; None: this process's.
        declared: What the job's declaration has said, by the options that it may depend on.
    """

    on: OtherPySpark | None = None
    declared: dict[str, Declared] = field(default_factory=dict, init=False, repr=False, compare=False)

    def run(
        self,
        batches: Sequence[Tables],
        clock: Sequence[int] = (),
        run: RunOptions = PLAIN,
        times_ms: Sequence[int] = (),
    ) -> QueryOutput:
        """Run the job's query over batches; arguments as the attributes of `Feed`.

        Raises:
            BadInput: The job breaks the contract, or Spark refuses its query, or has no other clock than the machine's.
            StreamproofError: The query failed, or took longer than it may.
        """
        feed = Feed(batches, clock, run, times_ms)
        if self.on is not None:
            there: QueryOutput = self.on.run(self, feed)
            return there

        def output(spark: SparkSession, folder: Path) -> QueryOutput:
            query = query_over(self, spark, folder, feed)
            if self.earlier is not None and run.stop_after:
                return output_of(query, UpgradeRun(query, self.earlier).run_all)
            query.declaration.owns_checkpoint = True
            return output_of(query, query.run_all)

        return _in_session(run, output)

    def as_batch(self, tables: Tables, run: RunOptions = PLAIN) -> list[dict[str, Any]]:
        """Run the job over frames that don't stream; return its rows.

        Raises:
            BadInput: The job breaks the contract, or Spark refuses it.
            StreamproofError: It failed.
        """

        def rows(spark: SparkSession, folder: Path) -> list[dict[str, Any]]:
            assert not isinstance(self.job, Sink)
            frames = []
            for number, source in enumerate(self.sources):
                pq.write_table(tables[source.name], folder / f"input {number}.parquet")
                frames.append(spark.read.parquet(str(folder / f"input {number}.parquet")))
            with refused(*REFUSED), limited(run.seconds):
                returned = called(self.job, frames, self.static_frames(spark, folder))
                result = frame_of(self.job, returned, streaming=False)
                with reported_failures():
                    return rows_of(result)

        return _in_session(run, rows)

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        """Declare the job without running it, unless that was done before; of a sink nothing is known before it runs.

        Raises:
            BadInput: The job breaks the contract.
        """
        text = repr(replace(run, stop_after=(), crash_in=(), partitions=None))
        if text not in self.declared:
            self.declared[text] = self._declare(run) if self.on is None else self.on.declare(self, run)
        return self.declared[text]

    def _declare(self, run: RunOptions) -> Declared:
        empty = [{source.name: source.wire_schema.empty_table() for source in self.sources}]

        def declared(spark: SparkSession, folder: Path) -> Declared:
            declaration = query_over(self, spark, folder, Feed(empty, (0,), run)).declaration
            if isinstance(self.job, Sink):
                return Declared()
            with refused(*REFUSED), limited(run.seconds):
                result, watermarks = declaration.result()
                return Declared(
                    result.columns,
                    columns_of(result),
                    watermarks,
                    declaration.plan,
                    grouping_of(result),
                    declaration.used,
                    result.schema,
                    declaration.settings,
                    declaration.divergences_of(result._jdf.queryExecution().analyzed()),
                )

        return _in_session(run, declared)


def query_over(runnable: RunnableJob, spark: SparkSession, folder: Path, feed: Feed) -> JobQuery:
    """Return the query of a job over batches."""
    return (SinkQuery if isinstance(runnable.job, Sink) else JobQuery)(runnable, spark, folder, feed)


def output_of(query: JobQuery, run_all: Callable[[], None]) -> QueryOutput:
    """Return the rows that a query wrote, with the faults and late rows that it met; `run_all` runs its batches."""
    batches, parts = query.emitted(run_all)
    declaration, deaths, committed = query.declaration, query.deaths, query.times.committed
    covered = {REPEATED} if any(has_rows for _, has_rows in deaths.happened) else set()
    if committed.has_restored(deaths.with_rows):
        covered.add(RESTORED)
    return QueryOutput(
        batches,
        parts,
        frozenset(covered),
        committed.stateful,
        deaths.happened,
        deaths.died_at,
        committed.dropped,
        query.ahead,
        committed.other_times and query.runnable.derived_time(declaration.plan) is not None,
        declaration.plan,
        declaration.used,
        declaration.settings,
        query.triggers,
        declaration.divergences,
    )


def _in_session(run: RunOptions, do: Callable[[SparkSession, Path], Result]) -> Result:
    with session_of(run) as spark, taking_back_settings(spark):
        return in_own_folder(partial(do, spark))


@contextlib.contextmanager
def session_of(run: RunOptions) -> Iterator[SparkSession]:
    """Give this thread's session as a query needs it that is run so.

    Raises:
        BadInput: Spark refuses a setting, or it has no effect on a session that runs.
    """
    partitions = partitions_of_users_session() if run.partitions is None else run.partitions
    settings = {**partitions_setting(partitions), **run.settings, **(SETTINGS if run.processing_time else {})}
    with session_for_query(settings, any_provider=True) as spark:
        yield spark
