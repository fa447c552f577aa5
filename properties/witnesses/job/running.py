"""Runs a job's query over micro-batches of its own columns, and returns the rows that it wrote in each of them.

Each batch has a file of the clock beside those of the inputs. Under the default trigger an empty file follows each: the
batch without data that Spark runs after a watermark moved, at a moment that doesn't depend on the machine.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ....reference.core.errors import BadInput, StreamproofError
from ...generators.columns.forms.rows import Row, from_microseconds, microseconds
from ...generators.columns.model import Source
from ...system.installed.spark_versions import arrow_table_of, frame_of_arrow
from ...system.progress import doing
from ...system.visible import first_cause, first_line
from ..run_options import (
    BETWEEN,
    MIDDLE,
    OF_SINKS,
    PLAIN,
    WATERMARK_POLICY,
    WITHIN,
    Crash,
    Mode,
    Moment,
    RunOptions,
)
from ..spark.engine import OfBatch, PreparedQuery, Tables, TookTooLong, limited
from ..spark.failures import PlannedCrash, QueryFailed, Result, in_own_folder, refused, reported_failures
from ..spark.own_settings import noting_settings, taking_back_settings
from ..spark.platform import connect
from ..spark.session import (
    default_store,
    partitions_of_users_session,
    partitions_setting,
    session_for_query,
    with_settings,
)
from .as_in_a_check import as_in_a_check, started_queries
from .clock import IS_CLOCK, TIME, Watermarks, clock_behind_watermarks, with_clock
from .committed import Committed, time_of
from .contract import called, folder_of_checkpoint, frame_of, location, query_of
from .declaring import PATCHING
from .dying import Steps, dying_writer
from .dying.checkpoints import last_commit, remove, undo_commit, undo_state
from .dying.memory import Memory
from .dying.writes import Writes
from .plan.grouping import Grouping, grouping_of
from .plan.optimized import divergences_of
from .plan.plans import Plan, plan_of
from .plan.tables import TablesUsed, tables_used
from .processing_time import SETTINGS, at_times
from .row_by_row import row_by_row
from .rows import columns_of, rows_of
from .sinks.files import LOG
from .sinks.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamReader, StreamingQuery
    from pyspark.sql.types import StructType

NAMED_SOURCES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
"""The setting by which a checkpoint knows sources by name, not by position."""
_CUT = " more fields"
"""Stands in the text of a plan in place of columns beyond Spark's `maxToStringFields`."""
_IDS = re.compile(r"#\d+L?")
"""The numbers of columns in the text of a plan, which are others each time that it is made."""
REPEATED = "rows in a repeated batch"
RESTORED = "state before a stop, rows after it"
REFUSED = (
    "Spark refuses the job's query: ",
    {
        "watermark": 'give the event time one in the job, such as .withWatermark("time", "5 minutes")',
        "(?i)output mode": 'name another with mode="append", "update" or "complete"',
    },
)
"""What the message says before Spark's reason, and what to do, by a pattern in the reason."""
DEATHS: Mapping[Moment, int] = {MIDDLE: 6}
"""How often a query dies at most while a micro-batch's output is written, each time at another of its steps."""
MOST_STEPS = 30
"""At how many steps of a function for `foreachBatch` a query dies at most."""
MOST_CUTS = 6
"""At how many places within the writes of a function for `foreachBatch` a query dies at most."""
MOST_ROWS = 2
"""After how many rows of a partition a writer dies at most, and so how often in a micro-batch."""
Job: TypeAlias = Callable[..., "DataFrame"] | Sink
CARRIED = ("available", "checkpoint", "tables", "committed", "with_rows", "happened", "asked", "planned")
"""The attributes of a query that its earlier version leaves to the version that goes on."""


class NotContinued(QueryFailed):
    """A job failed on the checkpoint of its earlier version, as Spark says it."""


class OtherPySpark(Protocol):
    """Another PySpark than this process's, on which jobs are run."""

    version: str

    def declare(self, runner: Runner, run: RunOptions) -> Declared:
        """Declare a runner's job, as `Runner.declare`."""

    def run(
        self, runner: Runner, batches: Sequence[Tables], clock: Sequence[int], run: RunOptions, times_ms: Sequence[int]
    ) -> Output:
        """Run a runner's job, as `Runner.run`."""

    def until_stop(self, query: UpgradedQuery, earlier: Earlier) -> Mapping[str, Any]:
        """Run the earlier version until the query's first stop, in its folder.

        Returns:
            The attributes `CARRIED` of the query, as the earlier version leaves them.
        """


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

    job: Job
    mode: Mode = "append"
    settings: Mapping[str, str] = field(default_factory=dict)
    on: OtherPySpark | None = None
    repartition: int | None = None

    @property
    def name(self) -> str:
        """Its name in messages: the name of its function, with file and line, and its PySpark if it isn't this one."""
        return name_of(self.job) if self.on is None else f"{_place_of(self.job)} on PySpark {self.on.version}"


@dataclass(frozen=True)
class Declared:
    """What a job's declaration says of it.

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
class Output:
    """What a job's query wrote, and which faults and late rows it met.

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
class Runner:
    """Runs one job.

    Attributes:
        job: The job.
        sources: Its inputs.
        static: The tables that don't change: what the job's further parameters are given, by name.
        earlier: The earlier version of the job, from whose checkpoint it goes on after a stop; None: it has none.
        on: The PySpark that the job runs on; None: this process's.
        memory: What the code of sinks keeps in this process, which each start of a query finds as the first did.
        declared: What the job's declaration has said, by the options that it may depend on.
        plans: The plans of its queries, by their text.
        schemas: Spark's schemas of its inputs, by the settings of the session and the inputs' own.
    """

    job: Job
    sources: Sequence[Source]
    static: Mapping[str, pa.Table] = field(default_factory=dict)
    earlier: Earlier | None = None
    on: OtherPySpark | None = None
    memory: Memory = field(default_factory=Memory, repr=False, compare=False)
    declared: dict[str, Declared] = field(default_factory=dict, init=False, repr=False, compare=False)
    plans: dict[str, Plan] = field(default_factory=dict, repr=False, compare=False)
    schemas: dict[str, StructType] = field(default_factory=dict, repr=False, compare=False)

    def run(
        self,
        batches: Sequence[Tables],
        clock: Sequence[int] = (),
        run: RunOptions = PLAIN,
        times_ms: Sequence[int] = (),
    ) -> Output:
        """Run the job's query over batches.

        Args:
            batches: Of each batch the rows of each input.
            clock: The event time (microseconds since 1970) to which the watermarks move in each batch; empty: they
                follow the job's rows alone.
            run: How it is run.
            times_ms: The processing time of each batch, in milliseconds since 1970; empty: that of the machine.

        Raises:
            BadInput: The job breaks the contract, or Spark refuses its query, or has no other clock than the machine's.
            StreamproofError: The query failed, or took longer than it may.
        """
        if self.on is not None:
            return self.on.run(self, batches, clock, run, times_ms)

        def output(spark: SparkSession, folder: Path) -> Output:
            kind: type[JobQuery] = UpgradedQuery if self.earlier and run.stop_after else JobQuery
            query = kind(self, spark, folder, batches, clock, run, times_ms)
            query.owns_checkpoint = kind is JobQuery
            return query.output()

        return _in_session(run, output)

    def derived_time(self, plan: Plan) -> str | None:
        """Return the column of a watermark that the job derives though its input has the event time; None: none."""
        derived = [time.name for time in plan.event_times if time.given is None]
        to_derive = [source for source in self.sources if source.wire_time is None]
        if not derived or len(to_derive) == len(self.sources) or len(derived) <= len(to_derive):
            return None
        return derived[0]

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
            query = JobQuery(self, spark, folder, empty, (0,), run)
            if isinstance(self.job, Sink):
                return Declared()
            with refused(*REFUSED), limited(run.seconds):
                result, watermarks = query.result()
                columns, grouping = columns_of(result), grouping_of(result)
                divergences = query.divergences_of(result._jdf.queryExecution().analyzed())
                given = query.plan, grouping, query.used, result.schema, query.own_settings, divergences
                return Declared(result.columns, columns, watermarks, *given)

        return _in_session(run, declared)

    def static_frames(self, spark: SparkSession, folder: Path) -> list[DataFrame]:
        """Return the tables that don't change."""
        tables = enumerate(self.static.values())
        return [frame_of_arrow(spark, table, folder / f"static {number}.parquet") for number, table in tables]


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


def _spread(count: int, most: int) -> list[int]:
    """Return at most so many numbers from 1 to `count`, at equal distances."""
    return [*range(1, count + 1, count // most + 1)]


def name_of(job: Job) -> str:
    """Return a job's name in messages: the name of its function, with file and line, and whether it sees Connect."""
    return _place_of(job) + " over Spark Connect" * connect.is_asked()


def _place_of(job: Job) -> str:
    return location(job.start if isinstance(job, Sink) else job)


class JobQuery(PreparedQuery):
    """A job's query over batches.

    Attributes:
        job: The job that is declared when the query is started.
        mode: Its output mode.
        plan: The job's analyzed plan.
        used: How it uses the tables that don't change.
        happened: The crashes that have happened, in order, each with whether the micro-batch had rows.
        clocks: The number of sources of the clock since the query was last started.
        with_rows: The numbers of the micro-batches with rows: those in which the query has died, and all at the end.
        asked: The numbers of the micro-batches in which the query has died.
        steps_left: By the moment, the steps of the function for `foreachBatch` at which it hasn't died; None: they
            aren't known.
        died_at: Where it last died in the middle of an output.
        dies_in: The number of the micro-batch in which a writer of rows dies, and after how many rows; None: in none.
        writes_rows: Whether the sink writes by `foreach`.
        lost_state: The number of the micro-batch whose state is to be removed once the query has stopped; -1: of none.
        committed: What its progress has said of the micro-batches that it has committed.
        given: What a sink's functions are given beside the inputs.
        own_mode: Its output mode; of a sink the mode of the query that it has started.
        own_settings: The settings of the session that it has made.
        triggers: The triggers that it has asked for, and that the check replaces.
        divergences: The names of the known divergences that reach the plan of a sink's query.
        queries: The queries that the job has started since it was last called, those that have ended included.
        owns_checkpoint: Whether no other version of the job, nor another PySpark, uses its checkpoint.
    """

    refused = REFUSED
    owns_checkpoint = False

    def __init__(
        self,
        runner: Runner,
        spark: SparkSession,
        folder: Path,
        batches: Sequence[Tables],
        clock: Sequence[int],
        run: RunOptions,
        times_ms: Sequence[int] = (),
    ) -> None:
        # A smaller history ends before stops that it was found with: a job has nothing to do after them.
        self.first_stop = min(run.stop_after, default=0)
        stops = tuple(stop for stop in dict.fromkeys(run.stop_after) if stop < len(batches) - 1)
        self.runner, self.job, self.mode = runner, runner.job, run.mode
        self.own_mode: str = run.mode
        super().__init__(spark, folder, with_clock(batches, clock), replace(run, stop_after=stops), run.steps)
        self.folder, self.clock, self.seconds = folder, clock, run.seconds
        self.times_ms, self.committed = times_ms, Committed()
        self.tables: dict[int, pa.Table] = {}
        self.happened: list[tuple[Crash, bool]] = []
        self.given: tuple[Any, ...] = ()
        self.before = {query.id for query in spark.streams.active}
        self.queries: list[StreamingQuery] = []
        self.plan, self.used = Plan(), TablesUsed()
        self.own_settings: dict[str, str] = {}
        self.triggers: list[str] = []
        self.divergences: Sequence[str] = ()
        self.static: Sequence[DataFrame] = ()
        self.delays_us: Sequence[int] = ()
        self.with_rows: set[int] = set()
        self.asked: set[int] = set()
        self.steps_left: dict[Moment, list[int]] | None = None
        self.died_at = ""
        self.dies_in: tuple[int, int] | None = None
        self.writes_rows, self.lost_state = False, -1
        # Each death in a micro-batch is at another step, so that a few batches have them all.
        self.planned = [at for at in self.planned for _ in range(1 if at.step else DEATHS.get(at.moment, 1))]
        self.clocks = 0
        self.own = folder / "job"
        self.own.mkdir(exist_ok=True)

    def schema_of(self, schema: pa.Schema, path: Path) -> StructType:
        """Return Spark's schema for the schema of an input, which takes 0.1 s, and is the same for all queries."""
        text, known = f"{dict(self.run.settings)} {schema}", self.runner.schemas
        if text not in known:
            known[text] = super().schema_of(schema, path)
        return known[text]

    def reader(self, name: str) -> DataStreamReader:
        """Return the reader of an input's stream; if the session's checkpoints know sources by name, with a name."""
        reader = super().reader(name)
        # A PySpark before 4.2 ignores the setting: its checkpoints know sources by position.
        if self.spark.conf.get(NAMED_SOURCES, "false") != "true" or not hasattr(reader, "name"):
            return reader
        if name == TIME:
            self.clocks += 1
            name = f"{name}_{self.clocks}"
        return reader.name(re.sub(r"\W", "_", name, flags=re.ASCII))

    def result(self) -> tuple[DataFrame, Watermarks]:
        """Declare the job anew, as one that is restarted does."""
        job = self.job
        assert not isinstance(job, Sink)
        returned, watermarks = self.call(job)
        frame = frame_of(job, returned, streaming=True)
        self.refuse_others(0)
        self.take_up(frame._jdf.queryExecution().analyzed(), watermarks)
        return frame, watermarks

    def run_until_first_stop(self) -> None:
        """Run the batches before the first stop, and stop the query."""
        self.make_available(min(self.first_stop, len(self.batches) - 1) + 1)
        self.drained()

    def call(self, function: Callable[..., Any], *more: Any) -> tuple[Any, Watermarks]:
        """Call a function of the user's with the inputs; watermarks that it declares follow the clock, too."""
        self.clocks = 0
        inputs = [self.stream(source.name) for source in self.runner.sources]
        calls = row_by_row() if self.run.row_by_row else contextlib.nullcontext()
        clock = (lambda: self.stream(TIME)) if self.clock else None
        started = started_queries(self.spark, self.storing)
        with clock_behind_watermarks(clock) as watermarks, calls, started as self.queries:
            self.static = self.runner.static_frames(self.spark, self.folder)
            with noting_settings(self.spark, self.own_settings):
                return called(function, inputs, self.static, more), watermarks

    def take_up(self, analyzed: Any, watermarks: Watermarks) -> None:
        """Take up the job's analyzed plan.

        Raises:
            BadInput: The job goes by processing time or by another event time, and the check doesn't know of it.
        """
        if self.plan.operators:  # a restart declares the same job, and reading a plan takes up to 0.6 s
            return
        self.plan, where = self.plan_of(analyzed), name_of(self.job)
        if self.plan.by_processing_time and not self.run.processing_time:
            raise BadInput(
                f"{where} has timeouts or timers of processing time: say in its test how long they are, "
                'such as timeouts=["30 minutes"], and batches run just before their ends, at them and after them'
            )
        for time in self.plan.event_times:
            if time.is_of_clock and not self.run.processing_time:
                raise BadInput(
                    f"{where} has its watermark on {time.name!r}, the time at which a batch runs, which no row says: "
                    'take the event time from the rows, or say how long the job waits, such as timeouts=["30 minutes"]'
                )
            alike = [one for one in self.runner.sources if [*one.wire_schema.names] == [*time.beside]]
            if alike and time.given not in {source.wire_time for source in alike}:
                own = " or ".join(sorted({source.time for source in alike}))
                raise BadInput(
                    f"{where} has its watermark on {time.given!r}, and the event time of its input is {own!r}: "
                    f"name the column of the watermark, Input(…, time={time.given!r})"
                )
        if watermarks.count and not watermarks.without_clock:
            self.delays_us = self.plan.delays_us
        self.used = tables_used(self.plan, dict(zip(self.runner.static, self.static, strict=True)))
        if isinstance(self.job, Sink):  # of another job its declaration says it
            self.divergences = self.divergences_of(analyzed)

    def plan_of(self, analyzed: Any) -> Plan:
        """Read an analyzed plan, unless another query of the job had the same.

        A plan that names columns of tables by their numbers is read anew, for each query has other numbers; so is a
        plan whose text Spark cuts, for the rest may differ.
        """
        numbers: dict[str, str] = {}
        in_order = _IDS.sub(lambda found: numbers.setdefault(found[0], f"#{len(numbers)}"), analyzed.toString())
        text = in_order.replace(str(self.folder), "")
        if (known := self.runner.plans.get(text)) is not None:
            return known
        policy = self.spark.conf.get(WATERMARK_POLICY, "min")
        plan = plan_of(analyzed, IS_CLOCK, self.own_mode, str(policy))
        if not (plan.initial_keys or plan.looked_up or _CUT in text):
            self.runner.plans[text] = plan
        return plan

    def divergences_of(self, analyzed: Any) -> Sequence[str]:
        """Return the names of the known divergences of Spark's optimizer that reach an analyzed plan of the job's."""
        nullable = {
            column.name.lower()
            for source in self.runner.sources
            for column in source.schema
            if column.nullable and column.name != source.time and (column.name,) != source.key
        }
        return divergences_of(self.spark, analyzed, IS_CLOCK, nullable)

    def refuse_others(self, own: int) -> None:
        """Stop the queries that the job has started beside its own.

        Raises:
            BadInput: There are some.
        """
        active = [query for query in self.spark.streams.active if query.id not in self.before]
        ids = {query.id for query in [*active, *self.queries]}
        if len(ids) > own:
            for query in active:
                query.stop()
            job = self.job
            remedy = "give each a Sink of its own" if isinstance(job, Sink) else "return its DataFrame, or give a Sink"
            started = "a query" if len(ids) == 1 else f"{len(ids)} queries"
            raise BadInput(f"{name_of(job)} started {started}, of which the check would see {own or 'none'}: {remedy}")

    def run_all(self) -> None:
        """Run all batches; as `PreparedQuery.run_all`. A sink that no planned crash ends repeats micro-batches."""
        if isinstance(self.job, Sink) and self.planned:
            self.repeat_each()
        super().run_all()

    def repeat_each(self) -> None:
        """Run each micro-batch of a planned crash, and remove its commit, so that the next start repeats it.

        So it is after a crash between a micro-batch's output and its commit, whatever the sink. If the sink has a
        function for `foreachBatch`, the first crash is raised in that, as all others will be. A writer of `foreach`
        dies in the middle of its rows, and Spark's own file sink before its log has the files that it has written.
        """
        rows = 0
        for number, crashes in self.by_micro_batch():
            self.make_micro_batches_available(min(number + 1, len(self.batches) * self.steps))
            middle = [crash for crash in crashes if crash.moment == MIDDLE]
            self.die_in_rows(number, middle)
            self.drained()
            if self.deaths:
                return
            before, rows = rows, self.rows_in_sink()
            self.with_rows |= {number} if rows > before else set()
            # Where the watermark has moved, Spark has run one more micro-batch without data, and that is the last.
            last = last_commit(self.checkpoint)
            if middle and (logged := [*self.own.rglob(f"{LOG}/{last}")]):
                remove(*logged)
                self.repeat(middle[0]._replace(step=1), number)
                self.died_at = f"after it had written its files, and before its log in {LOG} named them"
                self.drained()
            for crash in [crash for crash in crashes if crash.moment == BETWEEN]:
                if not self.repeat(crash, number):
                    return  # it keeps no checkpoint that the next start would find

    def repeat(self, crash: Crash, number: int) -> bool:
        """Let the next start repeat the last micro-batch, as if the query had died; return whether there is one."""
        if (undone := undo_commit(self.checkpoint)) < 0:
            return False
        if crash.moment == MIDDLE:
            undo_state(self.checkpoint, undone)
        self.happened.append((crash, number in self.with_rows))
        return True

    def die_in_rows(self, number: int, planned: Sequence[Crash]) -> None:
        """Let a writer of `foreach` die in a micro-batch, as often as planned; do nothing for another sink."""
        try:
            for crash in planned:
                for step in [crash.step] if crash.step else range(1, MOST_ROWS + 1):
                    self.dies_in = number, step
                    self.drained()
                    if self.deaths or not self.writes_rows or last_commit(self.checkpoint) >= number:
                        return
                    self.with_rows.add(number)
                    self.died_at = f"after {step} of a partition's rows, or all if it has fewer"
                    self.happened.append((crash._replace(step=step), True))
                    undo_state(self.checkpoint, number)
        finally:
            self.dies_in = None

    def by_micro_batch(self) -> list[tuple[int, list[Crash]]]:
        """Return the planned crashes of each micro-batch, by its number."""
        numbers: dict[int, list[Crash]] = {}
        for crash in dict.fromkeys(self.planned):
            numbers.setdefault(crash.batch * self.steps + (not crash.data), []).append(crash)
        return [*numbers.items()]

    def rows_in_sink(self) -> int:
        """Return the number of rows that the sink holds; 0 if it can't be read before all batches have run."""
        assert isinstance(self.job, Sink)
        try:
            return len(rows_of(called(self.job.read, [], [], self.given[:1]), location(self.job.read)))
        except StreamproofError:
            return 0

    def output(self) -> Output:
        """Run all batches, and return what came out."""
        job = self.job
        if isinstance(job, Sink):
            with job.at(self.own) as self.given:
                self.run_all()
                self.refuse_other_times()
                if self.is_ahead_of_clock():
                    return self.output_of([[] for _ in self.batches], [])  # its rows may have times that Python hasn't
                found = called(job.read, [], [], self.given[:1])
                return self.output_of([[*rows_of(found, location(job.read))]], [])
        self.run_all()
        self.refuse_other_times()
        if self.is_ahead_of_clock():
            return self.output_of([[] for _ in self.batches], [])  # its rows may have times that Python hasn't
        parts: list[list[Row]] = []
        batches: list[list[Row]] = [[] for _ in self.batches]
        for number in sorted(self.tables):
            parts.append([*rows_of(self.tables[number])])
            self.with_rows |= {number} if parts[-1] else set()
            batch = self.place(number)[0]
            batches[batch] = parts[-1] if self.run.mode == "complete" else [*batches[batch], *parts[-1]]
        return self.output_of(batches, parts)

    def output_of(self, batches: list[list[Row]], parts: Sequence[Sequence[Row]]) -> Output:
        """Return the rows that the query wrote, with the faults and late rows that it met."""
        covered = {REPEATED} if any(has_rows for _, has_rows in self.happened) else set()
        if self.committed.has_restored(self.with_rows):
            covered.add(RESTORED)
        return Output(
            batches,
            parts,
            frozenset(covered),
            self.committed.stateful,
            self.happened,
            self.died_at,
            self.committed.dropped,
            self.is_ahead_of_clock(),
            self.committed.other_times and self.runner.derived_time(self.plan) is not None,
            self.plan,
            self.used,
            self.own_settings,
            self.triggers,
            self.divergences,
        )

    def refuse_other_times(self) -> None:
        """Make sure that the batches have run at the times that they were to run at.

        Raises:
            BadInput: They haven't.
        """
        if self.committed.at_other_times:
            raise BadInput(
                f"pyspark {self.spark.version} lets no check set the clock of a query, so timeouts= can't be had with "
                "it: check the job on another version, or let it take its timeouts by event time"
            )

    def time_ms(self, batch_id: int) -> int:
        """Return the processing time of a micro-batch, in milliseconds since 1970."""
        return self.times_ms[self.place(batch_id)[0]]

    def is_ahead_of_clock(self) -> bool:
        """Make sure that the watermark has followed the clock, for expectations go by it; return whether it is ahead.

        Raises:
            StreamproofError: The watermark is behind the clock.
        """
        if not (self.clock and self.delays_us):
            return False
        said = self.committed.watermark
        reached = None if said is None else time_of(said)
        expected = from_microseconds((self.clock[-1] - self.run.delay_us(self.delays_us)) // 1000 * 1000)
        if reached is None or reached < expected:
            if self.run.trigger != "default" or isinstance(self.job, Sink):
                return False  # the last batch may be run under an earlier watermark
            raise StreamproofError(
                f"the job's watermark has only reached {said} where the check moved it to {expected.isoformat()}: "
                "its plan keeps the check's clock from it; give the job its watermark next to its input"
            )
        return reached > expected

    def start(self) -> StreamingQuery:
        """Declare the query and start it; as `PreparedQuery.start`.

        Raises:
            BadInput: The job breaks the contract, or Spark refuses its query.
        """
        with at_times(self.spark, self.time_ms) if self.times_ms else contextlib.nullcontext():
            return self.started()

    def started(self) -> StreamingQuery:
        """Declare the query and start it, at the times of its clock."""
        job = self.job
        if not isinstance(job, Sink):
            result, _ = self.result()
            writer = result.writeStream.foreachBatch(self.dying(self.keep)).outputMode(self.mode)
            writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
            with self.storing(result):
                return writer.start()
        self.runner.memory.put_back()
        self.runner.memory.learn(job.code, job.read)
        with as_in_a_check(self.dying, self.dying_writer, name_of(job), self.triggers):
            started, watermarks = self.call(job.start, *self.given)
        query: StreamingQuery = query_of(job, started, self.own)
        self.checkpoint = folder_of_checkpoint(query._jsq.streamingQuery())
        self.refuse_others(1)
        self.own_mode = str(query._jsq.streamingQuery().outputMode().toString()).lower()
        try:
            self.take_up(query._jsq.streamingQuery().analyzedPlan(), watermarks)
        except BadInput:
            query.stop()
            raise
        return query

    def storing(self, result: DataFrame) -> AbstractContextManager[None]:
        """Let a query that is started within it keep its state where Spark does by default, if that can be.

        Only RocksDB serves `transformWithState`, and the user's own settings come first.
        """
        of_user = any(name.startswith("spark.sql.streaming.") for name in self.run.settings)
        may_choose = self.owns_checkpoint and not of_user and not connect.is_asked()
        if may_choose and "TransformWithState" not in result._jdf.queryExecution().analyzed().toString():
            return with_settings(result.sparkSession, default_store())
        return contextlib.nullcontext()

    def dying(self, function: OfBatch) -> OfBatch:
        """Wrap a function for `foreachBatch`, so that it dies in the planned micro-batches, and between its lines."""

        def in_the_middle(rows: DataFrame, batch_id: int) -> None:
            planned = [at for at in self.planned if at.moment in OF_SINKS and self.place(batch_id) == at[:2]]
            crash = self.next_in_the_middle(planned, batch_id)
            if crash is not None:
                death = Steps(crash.step) if crash.moment == MIDDLE else Writes(crash.step)
                try:
                    death.run(function, rows, batch_id)
                except PlannedCrash:
                    self.died_at, self.lost_state = death.place, batch_id
                    self.died(crash, rows, batch_id)
                    raise
            elif planned and self.steps_left is None and self.may_have_rows(batch_id):
                steps, writes = Steps(), Writes()
                with writes.counted():
                    steps.run(function, rows, batch_id)
                self.steps_left = {
                    MIDDLE: _spread(steps.reached - 1, MOST_STEPS),
                    WITHIN: _spread(writes.reached, MOST_CUTS),
                }
                planned = [at for at in planned if at.moment == WITHIN]  # all of this micro-batch is written
            else:
                function(rows, batch_id)
            for other in planned:  # the function has returned, so these deaths can't happen any more
                self.planned.remove(other)

        return super().dying(in_the_middle)

    def drained(self) -> bool:
        """Run the available batches; as `PreparedQuery.drained`.

        Raises:
            StreamproofError: The query failed, or took longer than it may.
        """
        if self.planned or self.happened:
            doing(f"{name_of(self.job)}: letting its query die and start again; it has died {len(self.happened)} times")
        try:
            return super().drained()
        except TookTooLong:  # its function has the lock for as long as it doesn't return
            PATCHING.give_up()
            raise

    def next_in_the_middle(self, planned: Sequence[Crash], batch_id: int) -> Crash | None:
        """Return the crash that is next while a micro-batch's output is written, with its step; None: there is none."""
        for moment in OF_SINKS:
            first = next((at for at in planned if at.moment == moment), None)
            if first is not None and first.step:
                return first
            left = (self.steps_left or {}).get(moment)
            if first is not None and left and self.may_have_rows(batch_id):
                return first._replace(step=left.pop(0))
        return None

    def may_have_rows(self, batch_id: int) -> bool:
        """Return whether a micro-batch may have rows: a function may return early where there are none."""
        return batch_id not in self.asked or batch_id in self.with_rows

    def dying_writer(self, writer: Any) -> Any:
        """Wrap what `foreach` is given, so that it dies in the micro-batch that is planned."""
        self.writes_rows = True
        return writer if self.dies_in is None else dying_writer(writer, *self.dies_in)

    def keep(self, rows: DataFrame, batch_id: int) -> None:
        """Keep the rows of a micro-batch."""
        self.tables[batch_id] = arrow_table_of(rows)

    def place(self, batch_id: int) -> tuple[int, bool]:
        """Return the batch of a micro-batch; under another trigger than the default the last batch alone has two."""
        batch, rest = divmod(batch_id, self.steps)
        last = len(self.batches) - 1
        return min(batch, last), not rest and batch <= last

    def died(self, crash: Crash, rows: DataFrame, batch_id: int) -> None:
        """Note that a crash happens, and whether the micro-batch has rows."""
        super().died(crash if crash in self.planned else crash._replace(step=0), rows, batch_id)
        if batch_id not in self.asked:  # the answer takes as long as the micro-batch, and is the same each time
            self.asked.add(batch_id)
            self.with_rows |= set() if rows.isEmpty() else {batch_id}
        self.happened.append((crash, batch_id in self.with_rows))

    def stop(self, query: StreamingQuery) -> None:
        """Stop the query, and note what it said of the micro-batches that it has committed since it was started."""
        super().stop(query)
        if self.lost_state >= 0:
            undo_state(self.checkpoint, self.lost_state)
            self.lost_state = -1
        # As JSON, for PySpark's own form has no room for a rate of rows in no time at all.
        progress = [json.loads(one.json()) for one in query._jsq.recentProgress()]
        self.committed.note(progress, self.has_other_times, self.time_ms if self.times_ms else None)

    def has_other_times(self, committed: Any) -> bool:
        """Return whether the least event time of a micro-batch differs from the least time of its input's rows."""
        batch, has_rows = self.place(committed["batchId"])
        if not has_rows:
            return False
        (source, *others), least = self.runner.sources, committed.get("eventTime", {}).get("min")
        if others or source.wire_time is None:
            return bool(others)
        times = [time for time in self.batches[batch][source.name][source.wire_time].to_pylist() if time is not None]
        given_us = [*(microseconds(time.replace(tzinfo=UTC)) for time in times), *self.clock[batch : batch + 1]]
        expected = from_microseconds(min(given_us) // 1000 * 1000) if given_us else None
        return expected != (None if least is None else datetime.fromisoformat(least))


class UpgradedQuery(JobQuery):
    """A query that the earlier version of a job runs until the first stop, and the job from there on.

    Attributes:
        arguments: Its batches, clock, options and processing times, as they were given.
        repartitioned: The number of the micro-batch in which Spark has repartitioned the state; -1: of none.
    """

    def __init__(self, runner: Runner, spark: SparkSession, folder: Path, *arguments: Any) -> None:
        super().__init__(runner, spark, folder, *arguments)
        self.arguments, self.repartitioned = arguments, -1

    def place(self, batch_id: int) -> tuple[int, bool]:
        """Return the batch of a micro-batch; the micro-batch of a repartition is none of the job's."""
        return super().place(batch_id - (0 <= self.repartitioned < batch_id))

    def is_ahead_of_clock(self) -> bool:
        """Return that the watermark follows the clock: by the delay of the one version, and then of the other."""
        return False

    def run_all(self) -> None:
        """Run the earlier version until the stop, and the job from its checkpoint.

        Raises:
            NotContinued: The job fails on the checkpoint.
        """
        earlier, later = self.runner.earlier, self.job
        assert earlier is not None
        try:
            self.run_earlier(earlier)
        except (QueryFailed, BadInput) as failed:
            raise type(failed)(f"{earlier.name}: {failed.message}") from None
        if self.available == len(self.batches) * self.steps:
            return
        if earlier.repartition is not None:
            self.repartition(earlier.repartition)
        self.job, self.mode, self.plan = later, self.run.mode, Plan()
        # The earlier version has stopped there: the job would start for no rows, and then for those after the stop.
        stops = tuple(stop for stop in self.run.stop_after if stop > self.first_stop)
        self.run = replace(self.run, stop_after=stops)
        try:
            super().run_all()
        except (QueryFailed, BadInput) as error:
            refusal = NotContinued(error.message)
            refusal.cause = getattr(error, "cause", "") or error.message
            raise refusal from None

    def repartition(self, partitions: int) -> None:
        """Let Spark bring the state to a number of partitions, as is done while no query runs.

        Raises:
            BadInput: Spark can't, or refuses it.
        """
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        if not hasattr(type(self.spark), "_streamingCheckpointManager"):
            raise BadInput(f"repartition={partitions}: PySpark {self.spark.version} can't: take 4.2 or newer")
        try:
            self.spark._streamingCheckpointManager.repartition(str(self.checkpoint), partitions)
        except (Py4JJavaError, PySparkException) as error:
            java = getattr(error, "java_exception", None)
            why = first_line(error if java is None else first_cause(java).getMessage()).rstrip(".")
            raise BadInput(
                f"repartition={partitions}: Spark refuses it for the checkpoint of {name_of(self.job)}: {why}: give "
                "another number than the state has, if the job has any"
            ) from None
        self.repartitioned = last_commit(self.checkpoint)

    def run_earlier(self, earlier: Earlier) -> None:
        """Run the earlier version until the stop."""
        if earlier.on is not None:
            for name, value in earlier.on.until_stop(self, earlier).items():
                setattr(self, name, value)
            return
        self.job, self.mode = earlier.job, earlier.mode
        with with_settings(self.spark, earlier.settings):
            self.run_until_first_stop()
