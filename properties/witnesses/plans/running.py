"""Runs a plan's query on Spark, batch by batch, and returns the rows and the watermarks of its micro-batches.

Inputs are `MemoryStream`s, because Spark's plan for an input without new data differs from the plan for an empty file.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ....reference.spark.aggregates import Row
from ....reference.spark.execution import Batch
from ....reference.spark.plans import Node
from ...generators.chains import Chain, StreamBatch
from ...generators.columns.forms.rows import from_microseconds, microseconds
from ...generators.plans.drawing import TABLE, Query
from ...generators.plans.texts import TABLE as TABLE_NAME
from ...generators.plans.texts import processor, statements, table_values
from ...system.installed.spark_versions import arrow_table_of, condition_of, spark_version
from ...system.visible import first_line
from ...system.work import own_folder
from ..chains.composed import ChainChanges
from ..chains.on_spark import changelog_on_spark
from ..run_options import WATERMARK_POLICY
from ..spark.session import DEFAULT_STORE, PROVIDER, ROCKSDB, spark_session, with_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = pa.schema([("h", pa.int32()), ("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int32())])
DDL = "h INT, k STRING, ts TIMESTAMP, v INT"
_IN_MEMORY, _ROOM = Path("/dev/shm"), 500_000_000
_STREAMING = "org.apache.spark.sql.execution.streaming"
ROCKSDB_STORE = {PROVIDER: ROCKSDB}
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.numRecentProgressUpdates": "200",
    # no code generation, because compiling a small query takes longer than running it
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    **DEFAULT_STORE,
}
"""The default settings of a query."""


class Refused(Exception):
    """Spark refuses a plan, or its query fails.

    Attributes:
        condition: Spark's name of the condition; empty if there is none.
        has_started: Whether Spark accepted the plan, and started its query.
        details: The complete error text, with its causes.
    """

    def __init__(self, error: Exception) -> None:
        from pyspark.errors import PySparkException, StreamingQueryException

        self.condition = (condition_of(error) if isinstance(error, PySparkException) else None) or ""
        self.has_started = isinstance(error, StreamingQueryException)
        self.details = f"{self.condition} {error} {getattr(error, '_stackTrace', '')}"
        super().__init__(first_line(error).rpartition("terminated with exception: ")[2])


@dataclass(frozen=True)
class HowRun:
    """The settings, restarts and crashes of a query's run.

    Attributes:
        settings: The settings of the session, instead of `SETTINGS`.
        restarts: The batches after which the query is stopped and restarted.
        deaths: The batches in which the query first crashes, each with the checkpoint folder that it can't write to,
            `offsets`, `state` or `commits`.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    restarts: frozenset[int] = frozenset()
    deaths: Mapping[int, str] = field(default_factory=dict)


class Ran(NamedTuple):
    """The result of a query.

    Attributes:
        batches: The rows emitted in each batch and in the following batches without data; in complete mode, the table.
        watermarks_ms: For each micro-batch: whether it contained data, and the query's watermark in it.
    """

    batches: list[list[Row]]
    watermarks_ms: list[tuple[bool, int]]


class Rows:
    """The rows of a query, sent to Spark once for all its runs."""

    def __init__(self, spark: SparkSession, batches: Sequence[Batch]) -> None:
        flat = [row for batch in batches for rows in batch.values() for row in rows]
        path = own_folder() / f"rows {uuid.uuid4()}.parquet"
        pq.write_table(table_of(flat), path)
        try:
            self.all = spark.read.parquet(str(path))._jdf.collectAsList()
        finally:
            path.unlink()
        self.places: list[dict[str, tuple[int, int]]] = []
        at = 0
        for batch in batches:
            self.places.append({})
            for name, rows in batch.items():
                self.places[-1][name] = (at, at + len(rows))
                at += len(rows)


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Return rows as an Arrow table, with their times as timestamps."""
    timed = [{**row, "ts": None if row["ts"] is None else from_microseconds(row["ts"])} for row in rows]
    return pa.Table.from_pylist(timed, SCHEMA)


def settings_of(query: Query) -> dict[str, str]:
    """Return the settings that a query sets or needs."""
    return {
        **(ROCKSDB_STORE if processor(query.plan) else {}),
        "spark.sql.streaming.noDataMicroBatches.enabled": str(query.without_data).lower(),
        WATERMARK_POLICY: query.policy,
    }


class PlanRunner:
    """Runs plans in this process's session."""

    def __init__(self) -> None:
        self.spark = spark_session(cores=1, partitions=1, any_provider=True)
        jvm: Any = self.spark._jvm
        package = f"{_STREAMING}.runtime" if spark_version() >= (4, 1) else _STREAMING
        self.memory_stream = getattr(jvm, f"{package}.MemoryStream")
        encoders = jvm.org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
        self.encoder = encoders.apply(jvm.org.apache.spark.sql.types.DataType.fromDDL(DDL))
        self.is_scala_213 = spark_version() >= (4,)
        # Spark searches all jars for a class at each dot of a name, so each name is resolved once.
        self.sink = jvm.org.apache.spark.sql.execution.streaming.sources.MemorySink
        self.modes = jvm.org.apache.spark.sql.streaming.OutputMode
        self.options = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        self.option = jvm.scala.Option
        self.manager = self.spark._jsparkSession.streams()
        # Later versions have one more parameter, in the second position.
        methods = [each for each in self.manager.getClass().getMethods() if each.getName() == "startQuery"]
        self.more_options = max(each.getParameterCount() for each in methods) - 11
        if self.is_scala_213:
            self.converters = jvm.scala.jdk.javaapi.CollectionConverters
        else:
            self.converters = jvm.scala.collection.JavaConverters
        self.count = 0
        # Checkpoints are on a file system in memory if possible; this process removes them at its end.
        has_room = os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _ROOM
        self.folder = own_folder(_IN_MEMORY if has_room else None)

    def rows(self, batches: Sequence[Batch]) -> Rows:
        """Send rows to Spark."""
        return Rows(self.spark, batches)

    def run(self, query: Query, rows: Rows, how: HowRun = HowRun()) -> Ran:
        """Run a query over rows.

        Raises:
            Refused: Spark refuses the query, or the query fails.
        """
        with self.session(query, how):
            streams = {name: self.stream() for name in query.inputs}
            checkpoint = self.folder / f"{self.count}"
            try:
                frame = self.frame(query.plan, {name: self.frame_of(one) for name, one in streams.items()})
                return self.fed(query, frame, streams, rows, how, checkpoint)
            except Exception as error:
                if isinstance(error, (AttributeError, NameError, TypeError, KeyError)):
                    raise
                raise Refused(error) from error
            finally:
                shutil.rmtree(checkpoint, ignore_errors=True)

    def as_batch(self, query: Query, batches: Sequence[Batch], how: HowRun = HowRun()) -> list[Row]:
        """Run a query's plan as a batch query over all rows of its inputs.

        Raises:
            Refused: Spark refuses the query, or the query fails.
        """
        with self.session(query, how):
            frames: dict[str, DataFrame] = {}
            for name in query.inputs:
                own = [row for batch in batches for row in batch.get(name, ())]
                frames[name] = self.spark.createDataFrame(table_of(own).to_pylist(), DDL)
            try:
                return self.read(self.frame(query.plan, frames))
            except Exception as error:
                raise Refused(error) from error

    def chain(self, chain: Chain, histories: Sequence[Sequence[StreamBatch]]) -> ChainChanges:
        """Run a chain of our operators.

        Raises:
            StreamproofError: Its query failed.
        """
        with with_settings(self.spark, {**SETTINGS, **ROCKSDB_STORE}):
            return changelog_on_spark(self.spark, chain, histories)

    @contextlib.contextmanager
    def session(self, query: Query, how: HowRun) -> Iterator[None]:
        """Configure the session for a query."""
        with with_settings(self.spark, {**SETTINGS, **settings_of(query), **how.settings}):
            yield

    def stream(self) -> Any:
        """Return a new in-memory stream."""
        self.count += 1
        if spark_version() < (4, 1):
            context = self.spark._jsparkSession.sqlContext()
            return self.memory_stream(self.count, context, self.option.apply(1), self.encoder)
        return self.memory_stream(self.count, self.spark._jsparkSession, self.option.apply(1), self.encoder)

    def frame_of(self, stream: Any) -> DataFrame:
        """Return a stream's frame."""
        from pyspark.sql import DataFrame

        return DataFrame(stream.toDF(), self.spark)

    def frame(self, plan: Node, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Return a plan's frame from the frames of its inputs."""
        from pyspark.sql import Row as OutputRow
        from pyspark.sql import functions, streaming

        table = self.spark.sql(f"select * from values {table_values(TABLE)} as t(tk, x)")
        names: dict[str, Any] = {"F": functions, "Row": OutputRow, "streaming": streaming, TABLE_NAME: table, **frames}
        exec(processor(plan), names)
        for statement in statements(plan):
            exec(statement, names)
        found: DataFrame = names["result"]
        return found

    def fed(
        self, query: Query, frame: DataFrame, streams: Mapping[str, Any], rows: Rows, how: HowRun, checkpoint: Path
    ) -> Ran:
        """Start the query, add rows batch by batch, and return its output."""
        ran, progress, done = Ran([], []), -1, 0
        started = self.start(query, frame, checkpoint)
        try:
            for number, places in enumerate(rows.places):
                dies = checkpoint / how.deaths[number] if places and number in how.deaths else None
                if dies is not None:
                    progress = self.leave(started, ran, progress, frame)
                    dies.rename(checkpoint / "hidden")
                    dies.touch()
                with _held(started.streamingQuery()):  # keep Spark from reading until all inputs have the batch's rows
                    for of_input, (first, last) in places.items():
                        if of_input in streams:
                            streams[of_input].addData(self.as_scala(rows.all.subList(first, last)))
                if dies is not None:
                    _died(started)
                    dies.unlink()
                    (checkpoint / "hidden").rename(dies)
                    started, done = self.start(query, frame, checkpoint), 0
                started.processAllAvailable()
                sink = started.streamingQuery().sink().allData()
                if query.mode == "complete":
                    ran.batches.append(self.read_rows(sink, frame))
                else:
                    ran.batches.append([{}] * (sink.size() - done))
                    done = sink.size()
                if number in how.restarts and number < len(rows.places) - 1:
                    progress = self.leave(started, ran, progress, frame)
                    started.stop()
                    started, done = self.start(query, frame, checkpoint), 0
            self.leave(started, ran, progress, frame)
            return ran
        finally:
            started.stop()

    def start(self, query: Query, frame: DataFrame, checkpoint: Path) -> Any:
        """Start a query, or resume the query from its checkpoint, which the writer of the format `memory` can't do."""
        given = [self.option.empty()] * self.more_options
        mode = getattr(self.modes, query.mode.title())()
        given += [self.option.apply(str(checkpoint)), frame._jdf, self.options, self.sink(), mode]
        left = range(len(given) + 1, len(given) + 7)  # the other parameters, which have default values
        manager = self.manager
        return manager.startQuery(*given, *(getattr(manager, f"startQuery$default${place}")() for place in left))

    def leave(self, started: Any, ran: Ran, last: int, frame: DataFrame) -> int:
        """Record the progress of a query that is about to end, and return the query's last micro-batch."""
        last = self.note(started, ran, last)
        if any(batch and not batch[0] for batch in ran.batches):
            self.fill(ran, self.read_rows(started.streamingQuery().sink().allData(), frame))
        return last

    def note(self, started: Any, ran: Ran, last: int) -> int:
        """Record the watermarks of the micro-batches after the last known one; return the new last micro-batch."""
        for one in map(json.loads, (each.json() for each in started.recentProgress())):
            if one["batchId"] > last and "triggerExecution" in one["durationMs"] and "addBatch" in one["durationMs"]:
                last = one["batchId"]
                said = one.get("eventTime", {}).get("watermark", "1970-01-01T00:00:00.000Z")
                watermark_ms = microseconds(datetime.fromisoformat(said)) // 1_000
                # An empty batch of a history also counts as data, because it moves the offsets of its inputs.
                has_data = any(each["startOffset"] != each["endOffset"] for each in one["sources"])
                ran.watermarks_ms.append((has_data, watermark_ms))
        return last

    def fill(self, ran: Ran, rows: list[Row]) -> None:
        """Replace the placeholders of rows by the rows."""
        left = iter(rows)
        for number, batch in enumerate(ran.batches):
            if batch and not batch[0]:
                ran.batches[number] = [next(left) for _ in batch]

    def read_rows(self, found: Any, frame: DataFrame) -> list[Row]:
        """Return rows of the JVM as Python rows."""
        from pyspark.sql import DataFrame

        made = self.spark._jsparkSession.createDataFrame(self.as_java(found), frame._jdf.schema())
        return self.read(DataFrame(made, self.spark))

    def as_scala(self, rows: Any) -> Any:
        """Return a Java list as a Scala sequence."""
        if self.is_scala_213:
            return self.converters.asScala(rows).toSeq()
        return self.converters.asScalaBufferConverter(rows).asScala().toSeq()

    def as_java(self, rows: Any) -> Any:
        """Return a Scala sequence as a Java list."""
        if self.is_scala_213:
            return self.converters.asJava(rows)
        return self.converters.seqAsJavaListConverter(rows).asJava()

    def read(self, frame: DataFrame) -> list[Row]:
        """Return the rows of a frame, with times in microseconds since 1970."""
        return [
            {name: microseconds(value) if isinstance(value, datetime) else value for name, value in row.items()}
            for row in arrow_table_of(frame).to_pylist()
        ]


def _died(query: Any) -> None:
    """Wait until a query has crashed."""
    from pyspark.errors import StreamingQueryException

    with contextlib.suppress(StreamingQueryException):
        query.processAllAvailable()
        raise RuntimeError("a query continues although it can't write its checkpoint")


@contextlib.contextmanager
def _held(query: Any) -> Iterator[None]:
    """Hold the lock that a query needs to search for new data."""
    of_class = query.getClass()
    while of_class is not None:
        for one in of_class.getDeclaredFields():
            if one.getName().endswith("awaitProgressLock"):
                one.setAccessible(True)
                lock = one.get(query)
                lock.lock()
                try:
                    yield
                finally:
                    lock.unlock()
                return
        of_class = of_class.getSuperclass()
    raise RuntimeError("a query of this PySpark has no lock of its progress")
