"""Runs a job's query over micro-batches of its own columns, and returns the rows that it wrote in each of them.

Each batch is a parquet file an input, and a file of the clock. Under the default trigger an empty file follows each:
the batch without data that Spark runs after a watermark moved, at a moment that doesn't depend on the machine.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ....reference.core.errors import BadInput, StreamproofError
from ...generators.columns.model import Row, Source, from_microseconds, microseconds
from ...system.arguments import checked
from ...system.spark_versions import arrow_table_of, frame_of_arrow
from ...system.work import temporary_folder
from ..run_options import PLAIN, Crash, RunOptions
from ..spark.query import reported_failures
from ..spark.session import partitions_of_users_session, partitions_setting, session_for_query, work_folder
from .clock import Watermarks
from .contract import called, frame_of, location, query_of, refused
from .crashes import Crashes
from .files import InputFiles, Tables
from .grouping import Grouping, grouping_of
from .plans import Plan, plan_of
from .rows import columns_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

REPEATED = "rows in a repeated batch"
RESTORED = "state before a stop, rows after it"


@checked
@dataclass(frozen=True)
class Sink:
    """A job that writes its result itself, such as with `foreachBatch` into a database.

    Attributes:
        start: Is given the inputs, and a folder (`pathlib.Path`) of its own; starts the query, with its checkpoint in
            that folder, and returns it. It is called again where the query is restarted.
        read: Is given the folder; returns what is written there: rows (dicts), or a pandas, arrow or Spark frame.
    """

    start: Callable[..., StreamingQuery]
    read: Callable[[Path], Any]


Job: TypeAlias = Callable[..., "DataFrame"] | Sink


@dataclass(frozen=True)
class Declared:
    """What a job's declaration says of it.

    Attributes:
        names: The columns of its result.
        columns: Those that are compared: of the window its start and end.
        watermarks: The watermarks that it has declared.
        plan: Its analyzed plan.
        grouping: The grouping whose rows it updates, if it does.
    """

    names: Sequence[str] = ()
    columns: Sequence[str] = ()
    watermarks: Watermarks = field(default_factory=Watermarks)
    plan: Plan = field(default_factory=Plan)
    grouping: Grouping | None = None


@dataclass(frozen=True)
class Output:
    """What a job's query wrote, and which faults and late rows it met.

    Attributes:
        batches: The rows of each batch; of a sink one list, of the end.
        parts: The rows of each micro-batch; of a sink none.
        covered: Which of `REPEATED` and `RESTORED` were met.
        stateful: Whether the query has state.
        crashed: The places in which it died, in order, with rows in the micro-batch or without.
        dropped: How many rows Spark's operators dropped because they were behind the watermark.
        ahead: Whether the watermark went beyond the clock.
        other_times: Whether the job derives its event time, and gets other times than the input's.
        plan: The query's analyzed plan.
    """

    batches: list[list[Row]]
    parts: Sequence[Sequence[Row]] = ()
    covered: frozenset[str] = frozenset()
    stateful: bool = False
    crashed: Sequence[tuple[Crash, bool]] = ()
    dropped: int = 0
    ahead: bool = False
    other_times: bool = False
    plan: Plan = field(default_factory=Plan)


@dataclass(frozen=True)
class Runner:
    """Runs one job.

    Attributes:
        job: The job.
        sources: Its inputs.
        static: The tables that don't change: what the job's further parameters are given, by name.
    """

    job: Job
    sources: Sequence[Source]
    static: Mapping[str, pa.Table] = field(default_factory=dict)

    def run(self, batches: Sequence[Tables], clock: Sequence[int] = (), run: RunOptions = PLAIN) -> Output:
        """Run the job's query over batches.

        Args:
            batches: Of each batch the rows of each input.
            clock: The event time (microseconds since 1970) to which the watermarks move in each batch; empty: they
                follow the job's rows alone.
            run: How it is run.

        Raises:
            BadInput: The job breaks the contract, or Spark refuses its query.
            StreamproofError: The query failed, or took longer than it may.
        """
        with session_for_query(_settings(run), any_provider=True) as spark, temporary_folder(work_folder()) as folder:
            return _Query(self, spark, folder, batches, clock, run).output()

    def as_batch(self, tables: Tables, run: RunOptions = PLAIN) -> list[dict[str, Any]]:
        """Run the job over frames that don't stream; return its rows.

        Raises:
            BadInput: The job breaks the contract, or Spark refuses it.
            StreamproofError: It failed.
        """
        assert not isinstance(self.job, Sink)
        with session_for_query(_settings(run), any_provider=True) as spark, temporary_folder(work_folder()) as folder:
            frames = []
            for number, source in enumerate(self.sources):
                pq.write_table(tables[source.name], folder / f"input {number}.parquet")
                frames.append(spark.read.parquet(str(folder / f"input {number}.parquet")))
            with refused(), _limited(run.seconds):
                result = frame_of(self.job, called(self.job, frames, self._static(spark, folder)), streaming=False)
                with reported_failures():
                    return rows_of(result)

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        """Declare the job without running it; of a sink nothing is known before it runs.

        Raises:
            BadInput: The job breaks the contract.
        """
        empty = [{source.name: source.schema.empty_table() for source in self.sources}]
        with session_for_query(_settings(run), any_provider=True) as spark, temporary_folder(work_folder()) as folder:
            query = _Query(self, spark, folder, empty, (0,), run)
            if isinstance(self.job, Sink):
                return Declared()
            with refused(), _limited(run.seconds):
                result, watermarks = query.result()
                return Declared(result.columns, columns_of(result), watermarks, query.plan, grouping_of(result))

    def _static(self, spark: SparkSession, folder: Path) -> list[DataFrame]:
        tables = enumerate(self.static.values())
        return [frame_of_arrow(spark, table, folder / f"static {number}.parquet") for number, table in tables]


def _settings(run: RunOptions) -> dict[str, str]:
    partitions = partitions_of_users_session() if run.partitions is None else run.partitions
    return {**partitions_setting(partitions), **run.settings}


def name_of(job: Job) -> str:
    """Return what messages call a job: the name of its function, with file and line."""
    return location(job.start if isinstance(job, Sink) else job)


class _Query:
    """One query over batches, in a folder of its own."""

    def __init__(
        self,
        runner: Runner,
        spark: SparkSession,
        folder: Path,
        batches: Sequence[Tables],
        clock: Sequence[int],
        run: RunOptions,
    ) -> None:
        self.runner, self.spark, self.folder, self.run = runner, spark, folder, run
        self.steps = run.steps
        self.batches, self.clock = batches, clock
        self.tables: dict[int, pa.Table] = {}
        self.files = InputFiles(spark, folder, runner.sources, batches, clock, run.steps)
        self.crashes = Crashes(run)
        self.before = {query.id for query in spark.streams.active}
        self.plan = Plan()
        self.delays_us: Sequence[int] = ()
        self.progress: Any = None
        self.committed, self.state_rows, self.dropped = -1, 0, 0
        self.stateful = self.other_times = False
        self.with_rows: set[int] = set()
        self.restored_in: set[int] = set()
        self.own = folder / "job"
        self.own.mkdir()
        self.checkpoint = folder / "checkpoint"

    def result(self) -> tuple[DataFrame, Watermarks]:
        """Declare the job anew, as one that is restarted does."""
        job = self.runner.job
        assert not isinstance(job, Sink)
        with self.files.watermarks() as watermarks:
            returned = called(job, self.files.streams(), self.runner._static(self.spark, self.folder))
        frame = frame_of(job, returned, streaming=True)
        self.refuse_others(0)
        self.take_up(frame._jdf.queryExecution().analyzed(), watermarks)
        return frame, watermarks

    def take_up(self, analyzed: Any, watermarks: Watermarks) -> None:
        """Take up the job's analyzed plan.

        Raises:
            BadInput: The job goes by a clock that the check doesn't move.
        """
        if self.plan.operators:  # a restart declares the same job, and reading a plan takes up to 0.6 s
            return
        self.plan, where = plan_of(analyzed), name_of(self.runner.job)
        if self.plan.by_processing_time:
            raise BadInput(
                f"{where} has timeouts or timers of processing time, which a check can't move: such a query never "
                "comes to an end; let the job take them by event time, or check the rest of it"
            )
        for time in self.plan.event_times:
            own = {source.time for source in self.runner.sources if [*source.schema.names] == [*time.beside]}
            if own and time.given not in own:
                raise BadInput(
                    f"{where} has its watermark on {time.given!r}, and the event time of its input is "
                    f"{' or '.join(sorted(own))!r}: name the column of the watermark, Input(…, time={time.given!r})"
                )
        if watermarks.count and not watermarks.without_clock:
            self.delays_us = self.plan.delays_us

    def take_up_of(self, query: StreamingQuery, watermarks: Watermarks) -> None:
        """Take up the plan of a query that a sink has started; stop the query where that is refused."""
        try:
            self.take_up(query._jsq.streamingQuery().analyzedPlan(), watermarks)
        except BadInput:
            query.stop()
            raise

    def refuse_others(self, own: int) -> None:
        """Stop the queries that the job has started beside its own.

        Raises:
            BadInput: There are some.
        """
        active = [query for query in self.spark.streams.active if query.id not in self.before]
        if len(active) > own:
            for query in active:
                query.stop()
            job = self.runner.job
            remedy = "give each a Sink of its own" if isinstance(job, Sink) else "return its DataFrame, or give a Sink"
            started = "a query" if len(active) == 1 else f"{len(active)} queries"
            raise BadInput(f"{name_of(job)} started {started}, of which the check would see {own or 'none'}: {remedy}")

    def output(self) -> Output:
        """Run all batches, with the stops that are asked for."""
        job, last = self.runner.job, len(self.batches) - 1
        for stop in sorted({*(min(stop, last) for stop in self.run.stop_after), last}):
            self.files.make_available(stop + 1)
            while not self.drained():
                pass
        if isinstance(job, Sink):
            return self.output_of([[*rows_of(called(job.read, [], [], [self.own]), location(job.read))]], [])
        parts: list[list[Row]] = []
        batches: list[list[Row]] = [[] for _ in self.batches]
        for number in sorted(self.tables):
            parts.append([*rows_of(self.tables[number])])
            self.with_rows |= {number} if parts[-1] else set()
            batch = min(number // self.steps, last)
            batches[batch] = parts[-1] if self.run.mode == "complete" else [*batches[batch], *parts[-1]]
        return self.output_of(batches, parts)

    def output_of(self, batches: list[list[Row]], parts: Sequence[Sequence[Row]]) -> Output:
        """Return the rows that the query wrote, with the faults and late rows that it met."""
        covered = {REPEATED} if any(has_rows for _, has_rows in self.crashes.happened) else set()
        if any(
            number >= restored for restored in self.restored_in for number in self.with_rows | self.crashes.with_rows
        ):
            covered.add(RESTORED)
        return Output(
            batches,
            parts,
            frozenset(covered),
            self.stateful,
            self.crashes.happened,
            self.dropped,
            self.is_ahead_of_clock(),
            self.plan.derived_time is not None and self.other_times,
            self.plan,
        )

    def is_ahead_of_clock(self) -> bool:
        """Make sure that the watermark has followed the clock, for expectations go by it; return whether it is ahead.

        Raises:
            StreamproofError: The watermark is behind the clock.
        """
        if not (self.clock and self.delays_us):
            return False
        reached = (self.progress or {}).get("eventTime", {}).get("watermark")
        expected = from_microseconds((self.clock[-1] - self.run.delay_us(self.delays_us)) // 1000 * 1000)
        if reached is None or datetime.fromisoformat(reached) < expected:
            if self.run.trigger != "default" or isinstance(self.runner.job, Sink):
                return False  # the last batch may be run under an earlier watermark
            raise StreamproofError(
                f"the job's watermark has only reached {reached} where the check moved it to {expected.isoformat()}: "
                "its plan keeps the check's clock from it; give the job its watermark next to its input"
            )
        return datetime.fromisoformat(reached) > expected

    def drained(self) -> bool:
        """Run what is available; return whether all is done, which it isn't where a crash was planned and happened."""
        job, crashes = self.runner.job, len(self.crashes.planned)
        with reported_failures(planned=bool(crashes)), refused():
            with _limited(self.run.seconds), self.crashes.within():
                if isinstance(job, Sink):
                    with self.files.watermarks() as watermarks:
                        started = called(
                            job.start, self.files.streams(), self.runner._static(self.spark, self.folder), [self.own]
                        )
                    query = query_of(job, started, self.own)
                    self.refuse_others(1)
                    self.take_up_of(query, watermarks)
                else:
                    query = self.write(self.result()[0])
            try:
                _wait(query, self.run.seconds)
            finally:
                self.note(query.recentProgress)
        return len(self.crashes.planned) == crashes

    def note(self, progress: Sequence[Any]) -> None:
        """Note what the query said of the micro-batches that it has committed since it was started."""
        for committed in progress:
            self.progress = committed
            self.other_times |= self.has_other_times(committed)
            if operators := committed["stateOperators"]:
                self.stateful, self.committed = True, committed["batchId"]
                self.state_rows = sum(operator["numRowsTotal"] for operator in operators)
                self.dropped += sum(operator["numRowsDroppedByWatermark"] for operator in operators)
        if self.state_rows:
            self.restored_in.add(self.committed + 1)

    def has_other_times(self, committed: Any) -> bool:
        """Return whether the least event time of a micro-batch differs from the least time of its input's rows."""
        batch, rest = divmod(committed["batchId"], self.steps)
        if rest or batch >= len(self.batches):
            return False
        (source, *others), least = self.runner.sources, committed["eventTime"].get("min")
        times = [time for time in self.batches[batch][source.name][source.time].to_pylist() if time is not None]
        given_us = [*(microseconds(time.replace(tzinfo=UTC)) for time in times), *self.clock[batch : batch + 1]]
        expected = from_microseconds(min(given_us) // 1000 * 1000) if given_us else None
        return bool(others) or expected != (None if least is None else datetime.fromisoformat(least))

    def write(self, frame: DataFrame) -> StreamingQuery:
        def keep(rows: DataFrame, batch_id: int) -> None:
            self.tables[batch_id] = arrow_table_of(rows)

        writer = frame.writeStream.foreachBatch(keep).outputMode(self.run.mode)
        return writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()


def _wait(query: StreamingQuery, seconds: float) -> None:
    """Wait until a query has done all that is available, and stop it.

    Raises:
        StreamproofError: It took longer than it may.
    """
    ends_itself = "ProcessingTime" not in str(query._jsq.streamingQuery().trigger().toString())
    late = threading.Event()

    def stop() -> None:
        late.set()
        with contextlib.suppress(Exception):
            query.stop()

    watch = threading.Timer(seconds, stop)
    watch.start()
    try:
        query.awaitTermination() if ends_itself else query.processAllAvailable()
    except Exception:
        if not late.is_set():
            raise
    finally:
        watch.cancel()
        with contextlib.suppress(Exception):
            query.stop()
    if late.is_set():
        raise StreamproofError(
            f"the job's query took longer than {seconds:g} s: look what it waits for, or give it longer with seconds="
        )


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Interrupt what runs in the main thread after so many seconds.

    Raises:
        StreamproofError: It took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise StreamproofError(
            f"the job's function didn't return within {seconds:g} s: it declares a query, and waits for none; "
            "seconds= gives it longer"
        )

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
