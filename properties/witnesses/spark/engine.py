"""Runs a streaming query over prepared micro-batches, in a separate folder; all queries of checks use this module.

Each micro-batch has one parquet file per input, so that the check decides which rows are in which micro-batch.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ....reference.core.errors import StreamproofError
from ...system.ipynb import line_in
from ...system.visible import visible_path
from ..run_options import BEFORE, BETWEEN, Crash, Moment, RunOptions
from .failures import PlannedCrash, is_users, refused, reported_failures
from .platform.callbacks import Callbacks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamReader, StreamingQuery
    from pyspark.sql.types import StructType

Tables: TypeAlias = Mapping[str, pa.Table]
"""The rows of one batch, by the input's name."""
OfBatch: TypeAlias = "Callable[[DataFrame, int], None]"
"""The function of `foreachBatch`."""
PlaceOf: TypeAlias = Callable[[int], tuple[int, bool]]
"""A function from a micro-batch of the query to its batch, and to whether the micro-batch contains the batch's rows."""


NO_LIMIT = threading.TIMEOUT_MAX
_OWN = f"{__name__.partition('.')[0]}."


def schema_of_file(spark: SparkSession, schema: pa.Schema, path: Path) -> StructType:
    """Return Spark's schema for an Arrow schema, read from a parquet file, so that both types agree."""
    pq.write_table(schema.empty_table(), path)
    return spark.read.parquet(str(path)).schema


def hand_over(table: pa.Table, number: int, source: Path) -> None:
    """Move a complete file to the folder of a source; each file is one second newer than the previous file."""
    hidden = source.parent / f"{number:06d}.writing"
    pq.write_table(table, hidden)
    os.utime(hidden, (1_000_000_000 + number, 1_000_000_000 + number))
    hidden.rename(source / f"{number:06d}.parquet")


class Deaths:
    """The planned crashes of a query, and the number of crashes so far.

    Args:
        planned: The crashes.

    Attributes:
        planned: The crashes that haven't happened yet.
        count: The number of crashes that have happened.
    """

    def __init__(self, planned: Sequence[Crash]) -> None:
        self.planned, self.count = [*planned], 0

    def died(self, crash: Crash, rows: DataFrame, batch_id: int) -> None:
        """Record a crash, in a micro-batch with the given rows."""
        self.planned.remove(crash)
        self.count += 1

    def dying(self, function: OfBatch, place: PlaceOf) -> OfBatch:
        """Wrap a function for `foreachBatch`, so that it crashes in the planned micro-batches."""

        def die_if_planned(rows: DataFrame, batch_id: int, moment: Moment) -> None:
            for crash in self.planned:
                if crash.moment == moment and place(batch_id) == (crash.batch, crash.data):
                    self.died(crash, rows, batch_id)
                    raise PlannedCrash

        def and_die(rows: DataFrame, batch_id: int) -> None:
            die_if_planned(rows, batch_id, BEFORE)
            function(rows, batch_id)
            die_if_planned(rows, batch_id, BETWEEN)

        return and_die


class PreparedQuery(ABC):
    """A query over prepared micro-batches; its options determine its input, stops, crashes and restarts.

    A subclass starts the query, and stores its output.

    Args:
        spark: The session.
        folder: The query's folder.
        batches: The rows of each batch.
        run: The options of the run.
        steps: The number of micro-batches per batch; the first of these micro-batches contains the batch's rows.

    Attributes:
        checkpoint: The folder of the query's checkpoint.
        deaths: The planned crashes, and the number of crashes so far.
        available: The number of micro-batches whose files the query can read so far.
        refused: For Spark's refusal of the query: the beginning of the message, and the remedy for each pattern in
            Spark's reason.
        seconds: The timeout of the query's declaration, and of each run.
    """

    refused: ClassVar[tuple[str, Mapping[str, str]]]
    seconds: float = NO_LIMIT

    def __init__(
        self, spark: SparkSession, folder: Path, batches: Sequence[Tables], run: RunOptions, steps: int = 1
    ) -> None:
        self.spark, self.batches, self.run, self.steps = spark, [*batches], run, steps
        self.checkpoint = folder / "checkpoint"
        self.deaths = Deaths(run.crash_in)
        self.available = 0
        self.callbacks = Callbacks()
        self.folders: dict[str, Path] = {}
        self.schemas: dict[str, StructType] = {}
        for number, (name, table) in enumerate(batches[0].items()):
            # not the input's name, because Spark skips or splits some names
            self.folders[name] = folder / f"input {number}"
            self.folders[name].mkdir(exist_ok=True)
            self.schemas[name] = self.schema_of(table.schema, folder / f"schema {number}.parquet")

    @abstractmethod
    def start(self) -> StreamingQuery:
        """Declare the query and start it, as a restarted job does."""

    @abstractmethod
    def place(self, batch_id: int) -> tuple[int, bool]:
        """Return the batch of a micro-batch of the query, and whether it contains the batch's rows."""

    def stop(self, query: StreamingQuery) -> None:
        """Stop the query."""
        with contextlib.suppress(Exception):  # the JVM may have died
            query.stop()
        self.callbacks.close()

    def schema_of(self, schema: pa.Schema, path: Path) -> StructType:
        """Return Spark's schema for the schema of an input, as `schema_of_file` does."""
        return schema_of_file(self.spark, schema, path)

    def stream(self, name: str) -> DataFrame:
        """Return an input as a stream."""
        return self.reader(name).parquet(str(self.folders[name]))

    def reader(self, name: str) -> DataStreamReader:
        """Return the reader of an input's stream."""
        return self.spark.readStream.schema(self.schemas[name]).option("maxFilesPerTrigger", 1)

    def make_available(self, count: int) -> None:
        """Write the files of the first `count` batches."""
        self.make_micro_batches_available(count * self.steps)

    def make_micro_batches_available(self, count: int) -> None:
        """Write the files of the first `count` micro-batches, each one second newer than the previous file."""
        for number in range(self.available, count):
            batch, rest = divmod(number, self.steps)
            for name, table in self.batches[batch].items():
                hand_over(table.schema.empty_table() if rest else table, number, self.folders[name])
        self.available = max(self.available, count)

    def run_all(self) -> None:
        """Run all batches, with the planned stops and crashes."""
        last = len(self.batches) - 1
        for stop in [*sorted(min(stop, last) for stop in self.run.stop_after), last]:
            self.make_available(stop + 1)
            while not self.drained():
                pass

    def drained(self) -> bool:
        """Run the available batches; return whether all batches are done, or False if a planned crash happened."""
        deaths = self.deaths.count
        with self.running() as query:
            wait(query, self.seconds, self.callbacks)
        return self.deaths.count == deaths

    @contextlib.contextmanager
    def running(self) -> Iterator[StreamingQuery]:
        """Start the query, stop it at the end, and explain its failure.

        Raises:
            BadInput: Spark refuses the query; the message contains Spark's reason and the remedy.
            StreamproofError: The query failed.
        """
        with reported_failures(planned=bool(self.deaths.planned)), refused(*self.refused):
            with limited(self.seconds):
                query = self.start()
            try:
                yield query
            finally:
                self.stop(query)

    def dying(self, function: OfBatch) -> OfBatch:
        """Wrap a function for `foreachBatch`, so that it crashes in the planned micro-batches."""
        return self.callbacks.noted(self.deaths.dying(function, self.place))


class TookTooLong(StreamproofError):
    """A query exceeded its timeout, and was stopped; one of its functions may still be running."""


def wait(query: StreamingQuery, seconds: float, callbacks: Callbacks) -> None:
    """Wait until a query has processed all batches whose files exist.

    Args:
        query: The query.
        seconds: The timeout.
        callbacks: The connections through which the query calls Python functions.

    Raises:
        TookTooLong: The query exceeded the timeout, and was stopped.
    """
    ends_itself = "ProcessingTime" not in str(query._jsq.streamingQuery().trigger().toString())
    late = threading.Event()
    where = ""

    def stop() -> None:
        nonlocal where
        where = "".join(map(line_of_user, callbacks.frames))
        late.set()
        callbacks.close()  # first, because a running function would block the stop
        with contextlib.suppress(Exception):
            query.stop()

    watch = threading.Timer(seconds, stop)
    watch.daemon = True  # the thread must not delay the end of an interrupted process
    watch.start()
    try:
        query.awaitTermination() if ends_itself else query.processAllAvailable()
    except Exception:
        if not late.is_set():
            raise
    finally:
        watch.cancel()
    if late.is_set():
        raise TookTooLong(
            f"the job's query took longer than {seconds:g} s{where}: find out why it waits, or allow more time with "
            "seconds="
        )


class Overdue(BaseException):
    """The user's code exceeded its timeout; not an Exception, because such code may catch exceptions.

    Its text contains the running line of the user's code, for a message.
    """


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Interrupt a job's function in the main thread after `seconds`, as `within` does.

    Raises:
        StreamproofError: The function took longer.
    """
    try:
        with within(seconds):
            yield
    except Overdue as overdue:
        raise StreamproofError(
            f"the job's function didn't return within {seconds:g} s{overdue}: it must declare a query without waiting "
            "for it, or needs more time with seconds="
        ) from None


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Interrupt the main thread after `seconds`, and again each second while it continues.

    Raises:
        Overdue: The block took longer.
    """
    if seconds == NO_LIMIT or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Overdue(line_of_user(frame))

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def line_of_user(frame: FrameType | None) -> str:
    """Return the running line of the user's code, for a message."""
    while frame is not None:
        module, file = str(frame.f_globals.get("__name__")), frame.f_code.co_filename
        if is_users(file) and not (module.startswith(_OWN) or file.startswith("<")):
            return f" (it was in line {line_in(file, frame.f_lineno)} of {visible_path(file)})"
        frame = frame.f_back
    return ""
