"""Runs a job's query over micro-batches, and returns the rows of each micro-batch.

Each batch has a file for the clock and a file for each input. Under the default trigger, an empty file follows each
batch, so that Spark's micro-batch without data runs at a fixed moment.
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
from .dying.faults import NO_FAULT, FaultOutcome
from .plan.grouping import Grouping, grouping_of
from .plan.plans import Plan
from .plan.tables import TablesUsed
from .processing_time import SETTINGS
from .query.declaration import REFUSED
from .query.faulted_sink import FaultedSink
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
        names: The columns of the job's result.
        columns: The compared columns, with `start` and `end` in place of a window.
        watermarks: The watermarks that the job has declared.
        plan: The job's analyzed plan.
        grouping: The grouping whose rows the job updates, if any.
        tables: The job's use of the static tables.
        schema: The schema of the job's result (None: unknown).
        settings: The session settings that the job changes.
        divergences: The names of the known divergences of Spark's optimizer that affect the plan.
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
    """The output of a job's query, with the faults and late rows of the run.

    Attributes:
        batches: The rows of each batch; for a sink, a single list of the rows at the end.
        parts: The rows of each micro-batch; empty for a sink.
        covered: The coverage goals of restarts, `REPEATED` and `RESTORED`, that the run has covered.
        stateful: Whether the query has state.
        crashed: The crashes in order, each with whether its micro-batch had rows.
        died_at: Where the query last died within an output, in words: the line of the user's code, or the number of
            rows.
        dropped: The number of rows that Spark's operators dropped because they were behind the watermark.
        ahead: Whether the watermark was ahead of the clock.
        other_times: Whether the job computes an event time that its input already has, and the computed times differ
            from the input's.
        plan: The query's analyzed plan.
        tables: The job's use of the static tables.
        settings: The session settings that the job changes.
        triggers: The triggers that a sink sets and the check replaces.
        divergences: For a sink, the names of the known divergences that affect the sink's query, as in
            `Declared.divergences`.
        fault: The outcome of the fault that a sink has undergone.
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
    fault: FaultOutcome = NO_FAULT


@dataclass(frozen=True)
class Runner(RunnableJob):
    """Declares a job, and runs the job's queries.

    Attributes:
        on: The PySpark that runs the job (None: this process's PySpark).
        declared: The earlier results of `declare`, by the options that may affect them.
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
        """Run the job's query over batches; the arguments are the attributes of `Feed`.

        Raises:
            BadInput: The job breaks the contract, Spark refuses its query, or this Spark can't set the query's clock.
            StreamproofError: The query failed, or exceeded its time limit.
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
        """Run the job over batch DataFrames, and return its rows.

        Raises:
            BadInput: The job breaks the contract, or Spark refuses the job.
            StreamproofError: The job failed.
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
        """Declare the job without running it, or return the earlier declaration; a sink's declaration is empty before
        its run.

        Raises:
            BadInput: The job breaks the contract.
        """
        text = repr(replace(run, stop_after=(), crash_in=(), partitions=None, fault="", fault_at=()))
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
    if not isinstance(runnable.job, Sink):
        return JobQuery(runnable, spark, folder, feed)
    return (FaultedSink if feed.run.fault else SinkQuery)(runnable, spark, folder, feed)


def output_of(query: JobQuery, run_all: Callable[[], None]) -> QueryOutput:
    """Run a query's batches with `run_all`, and return its rows, with the faults and late rows of its run."""
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
        query.outcome,
    )


def _in_session(run: RunOptions, do: Callable[[SparkSession, Path], Result]) -> Result:
    with session_of(run) as spark, taking_back_settings(spark):
        return in_own_folder(partial(do, spark))


@contextlib.contextmanager
def session_of(run: RunOptions) -> Iterator[SparkSession]:
    """Yield this thread's session, with the settings of a run.

    Raises:
        BadInput: Spark refuses a setting, or can't change the setting of a running session.
    """
    partitions = partitions_of_users_session() if run.partitions is None else run.partitions
    settings = {**partitions_setting(partitions), **run.settings, **(SETTINGS if run.processing_time else {})}
    with session_for_query(settings, any_provider=True) as spark:
        yield spark
