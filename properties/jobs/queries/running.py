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
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ....reference.core.errors import BadInput, StreamproofError
from ...system.work import temporary_folder
from ...witnesses.spark.query import PlannedCrash, hand_over, reported_failures, schema_of_file
from ...witnesses.spark.session import partitions_of_users_session, partitions_setting, session_for_query, work_folder
from ...witnesses.spark.versions import arrow_table_of, frame_of_arrow
from ..model import Mode, Row, Source, Trigger, from_microseconds
from .clock import TIME, Watermarks, clock_behind_watermarks, delays_in, plan_of
from .contract import called, frame_of, location, query_of, refused
from .rows import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

Tables: TypeAlias = Mapping[str, pa.Table]
"""By the name of an input: its rows of one batch."""
_CLOCK_SCHEMA = pa.schema([(TIME, pa.timestamp("us", "UTC"))])


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


Job: TypeAlias = "Callable[..., DataFrame] | Sink"


@dataclass(frozen=True)
class RunOptions:
    """How a job's query is run.

    Attributes:
        trigger: Whether a batch without data follows each batch, or the last one alone.
        mode: The output mode; of a sink its own holds.
        stop_after: The query is stopped after each of these batches, and started again.
        crash_in: In each of these batches the query dies after `foreachBatch` has written the batch and before its
            commit, and is started again, which runs the batch again.
        partitions: The number of shuffle partitions; None: the session's.
        settings: Further settings of the session.
        seconds: How long the query may take.
    """

    trigger: Trigger = "default"
    mode: Mode = "append"
    stop_after: Sequence[int] = ()
    crash_in: Sequence[int] = ()
    partitions: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 120


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

    def run(
        self, batches: Sequence[Tables], clock: Sequence[int] = (), run: RunOptions = RunOptions()
    ) -> list[list[Row]]:
        """Run the job's query over batches.

        Args:
            batches: Of each batch the rows of each input.
            clock: The event time (microseconds since 1970) to which the watermarks move in each batch; empty: they
                follow the job's rows alone.
            run: How it is run.

        Returns:
            The rows of each batch; of a sink one list, what is written at the end.

        Raises:
            BadInput: The job breaks the contract, or Spark refuses its query.
            StreamproofError: The query failed, or took longer than it may.
        """
        with session_for_query(_settings(run), any_provider=True) as spark, temporary_folder(work_folder()) as folder:
            return _Query(self, spark, folder, batches, clock, run).output()

    def as_batch(self, tables: Tables, run: RunOptions = RunOptions()) -> list[dict[str, Any]]:
        """Run the job over frames that don't stream; return its rows.

        Raises:
            BadInput: The job breaks the contract, is a sink, or Spark refuses it.
            StreamproofError: It failed.
        """
        if isinstance(self.job, Sink):
            raise BadInput("a Sink can't be run as a batch: give the job without its sink to as_batch(job)")
        with session_for_query(_settings(run), any_provider=True) as spark, temporary_folder(work_folder()) as folder:
            frames = []
            for source in self.sources:
                pq.write_table(tables[source.name], folder / f"{source.name}.parquet")
                frames.append(spark.read.parquet(str(folder / f"{source.name}.parquet")))
            with refused(), _limited(run.seconds):
                result = frame_of(self.job, called(self.job, frames, self._static(spark, folder)), streaming=False)
                with reported_failures():
                    return rows_of(result)

    def declare(self, run: RunOptions = RunOptions()) -> tuple[DataFrame | None, Watermarks, str]:
        """Declare the job without running it; return its result, its watermarks and its plan.

        Raises:
            BadInput: The job breaks the contract.
        """
        empty = [{source.name: source.schema.empty_table() for source in self.sources}]
        with session_for_query(_settings(run), any_provider=True) as spark, temporary_folder(work_folder()) as folder:
            query = _Query(self, spark, folder, empty, (0,), run)
            if isinstance(self.job, Sink):
                return None, Watermarks(), ""
            with refused(), _limited(run.seconds):
                result, watermarks = query.result()
                return result, watermarks, query.plan

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
        self.steps = 2 if run.trigger == "default" else 1
        self.batches, self.clock = batches, clock
        self.tables: dict[int, pa.Table] = {}
        self.available = 0
        self.before = {query.id for query in spark.streams.active}
        self.plan = ""
        self.delays_us: list[int] = []
        self.progress: Any = None
        self.to_crash = {batch * self.steps for batch in run.crash_in}
        self.own = folder / "job"
        self.own.mkdir()
        self.checkpoint = folder / "checkpoint"
        self.schemas = {}
        for name, schema in self._streams():
            (folder / f"input {name}").mkdir()
            self.schemas[name] = schema_of_file(spark, schema, folder / f"schema {name}.parquet")

    def _streams(self) -> Iterator[tuple[str, pa.Schema]]:
        yield from ((source.name, source.schema) for source in self.runner.sources)
        if self.clock:
            yield TIME, _CLOCK_SCHEMA

    def stream(self, name: str) -> DataFrame:
        reader = self.spark.readStream.schema(self.schemas[name]).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder / f"input {name}"))

    def inputs(self) -> list[DataFrame]:
        return [self.stream(source.name) for source in self.runner.sources]

    def watermarks(self) -> contextlib.AbstractContextManager[Watermarks]:
        return clock_behind_watermarks((lambda: self.stream(TIME)) if self.clock else None)

    def result(self) -> tuple[DataFrame, Watermarks]:
        """Declare the job anew, as one that is restarted does."""
        job = self.runner.job
        assert not isinstance(job, Sink)
        with self.watermarks() as watermarks:
            returned = called(job, self.inputs(), self.runner._static(self.spark, self.folder))
        frame = frame_of(job, returned, streaming=True)
        self.refuse_others(0)
        self.plan = plan_of(frame)
        if watermarks.count and not watermarks.without_clock:
            self.delays_us = delays_in(self.plan)
        return frame, watermarks

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

    def make_available(self, count: int) -> None:
        """Write the files of the first `count` batches, each a second younger than the one before it."""
        for number in range(self.available * self.steps, count * self.steps):
            batch, rest = divmod(number, self.steps)
            tables = dict(self.batches[batch])
            if self.clock:
                tables[TIME] = pa.table({TIME: [from_microseconds(self.clock[batch])]}, _CLOCK_SCHEMA)
            for name, table in tables.items():
                hand_over(table.schema.empty_table() if rest else table, number, self.folder / f"input {name}")
        self.available = max(self.available, count)

    def output(self) -> list[list[Row]]:
        """Run all batches, with the stops that are asked for."""
        job, last = self.runner.job, len(self.batches) - 1
        for stop in sorted({*(min(stop, last) for stop in self.run.stop_after), last}):
            self.make_available(stop + 1)
            while not self.drained():
                pass
        if isinstance(job, Sink):
            return [[*rows_of(called(job.read, [], [], [self.own]))]]
        self.check_watermark()
        batches: list[list[Row]] = [[] for _ in self.batches]
        for number in sorted(self.tables):
            rows: list[Row] = [*rows_of(self.tables[number])]
            batch = min(number // self.steps, last)
            batches[batch] = rows if self.run.mode == "complete" else [*batches[batch], *rows]
        return batches

    def check_watermark(self) -> None:
        """Make sure that the watermark has followed the clock, for what is expected is said by the clock.

        Raises:
            StreamproofError: It has not.
        """
        if not (self.clock and self.delays_us and self.run.trigger == "default"):
            return  # the last batch may be run under an earlier watermark
        reached = (self.progress or {}).get("eventTime", {}).get("watermark")
        expected = from_microseconds((self.clock[-1] - max(self.delays_us)) // 1000 * 1000)
        if reached is None or datetime.fromisoformat(reached) < expected:
            raise StreamproofError(
                f"the job's watermark has only reached {reached} where the check moved it to {expected.isoformat()}: "
                "its plan keeps the check's clock from it; give the job its watermark next to its input"
            )

    def drained(self) -> bool:
        """Run what is available; return whether all is done, which it isn't where a crash was planned and happened."""
        job, crashes = self.runner.job, len(self.to_crash)
        with reported_failures(planned=bool(crashes)), refused():
            with _limited(self.run.seconds), self.crashing():
                if isinstance(job, Sink):
                    with self.watermarks():
                        started = called(
                            job.start, self.inputs(), self.runner._static(self.spark, self.folder), [self.own]
                        )
                    query = query_of(job, started)
                    self.refuse_others(1)
                else:
                    query = self.write(self.result()[0])
            _wait(query, self.run.seconds)
            self.progress = query.lastProgress
        return len(self.to_crash) == crashes

    def write(self, frame: DataFrame) -> StreamingQuery:
        def keep(rows: DataFrame, batch_id: int) -> None:
            self.tables[batch_id] = arrow_table_of(rows)

        writer = frame.writeStream.foreachBatch(keep).outputMode(self.run.mode)
        return writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()

    @contextlib.contextmanager
    def crashing(self) -> Iterator[None]:
        """Let functions that are given to `foreachBatch` within it raise once they have written a batch of a crash."""
        from pyspark.sql.streaming.readwriter import DataStreamWriter

        original = DataStreamWriter.foreachBatch

        def for_each_batch(writer: DataStreamWriter, function: Callable[[DataFrame, int], None]) -> DataStreamWriter:
            def and_crash(rows: DataFrame, batch_id: int) -> None:
                function(rows, batch_id)
                if batch_id in self.to_crash:
                    self.to_crash.remove(batch_id)
                    raise PlannedCrash

            return original(writer, and_crash)

        DataStreamWriter.foreachBatch = for_each_batch  # type: ignore[assignment,method-assign]
        try:
            yield
        finally:
            DataStreamWriter.foreachBatch = original  # type: ignore[method-assign]


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
