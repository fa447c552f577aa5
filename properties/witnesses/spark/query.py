"""Runs a streaming query over given micro-batches, and hands back what it wrote in each of them.

Every batch is one parquet file, so the cuts are ours. Output goes through `foreachBatch`, keyed by the batch's id, so
that a batch replayed after a crash replaces itself.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from ....reference.core.errors import BadInput, StreamproofError
from ....spark_impl.runtime.pages import Stored, unpacked
from ...system.spark_versions import arrow_table_of
from ...system.visible import visible_path
from ...system.work import temporary_folder
from ..run_options import Crash, Moment
from .disk import no_space
from .session import query_lock, sessions, spark_log_path, why_jvm_died, work_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
    from pyspark.sql.types import StructType

Build: TypeAlias = "Callable[[DataFrame], DataFrame]"
AtEnd: TypeAlias = "Callable[[EndedQuery], None]"
Result = TypeVar("Result")

_PACKAGE = Path(__file__).resolve().parents[2]
_NOT_THE_USERS = (
    *("site-packages", "pyspark.zip", "<frozen", sysconfig.get_path("stdlib")),
    *(f"{_PACKAGE}/", f"{_PACKAGE.parent}/spark_impl/"),
)
"""What stands in the paths of a traceback where the code isn't the user's."""
_TOO_BUSY = "Python worker failed to connect back"


class QueryFailed(StreamproofError):
    """A query failed by what runs in it: neither the JVM died, nor is the disk full, nor the machine too busy."""


class MachineTooBusy(StreamproofError):
    """A Python worker didn't start within the 10 s that Spark gives it; Spark has no setting for a longer wait."""


class PlannedCrash(Exception):
    """Raised where a query is to die."""


@dataclass
class StreamOutput:
    """What a query wrote.

    Attributes:
        batches: `(data batch, table)` in the order of the query's own batches. The batch without data that follows a
            moved watermark counts as the data batch after it, or as the last one.
        replayed: For each batch that a crash made Spark run again: what it wrote at first and what it wrote again.
        leftover: The rows of the state named by `state`, at the end.
        partitions: In how many shuffle partitions the state lay; 0 where there was none.
    """

    batches: list[tuple[int, pa.Table]] = field(default_factory=list)
    replayed: list[tuple[pa.Table, pa.Table]] = field(default_factory=list)
    leftover: list[dict[str, object]] = field(default_factory=list)
    partitions: int = 0


def run_stream(
    spark: SparkSession,
    batches: Sequence[pa.Table],
    build: Build,
    *,
    stop_after: Sequence[int] = (),
    crash_in: Sequence[Crash] = (),
    stepwise: bool = False,
    state: str | None = None,
    stages: int = 1,
    at_end: AtEnd | None = None,
) -> StreamOutput:
    """Run a streaming query over the batches, in a fresh checkpoint.

    Args:
        spark: The session.
        batches: One arrow table a micro-batch, all of one schema; an empty table is an empty batch.
        build: Turns the streaming input into the streaming result.
        stop_after: Stop the query after each of these batches, and start it again from its checkpoint.
        crash_in: Let the query die in each of these places, and start it again; a crash that comes twice happens twice.
        stepwise: Hand over one batch at a time and wait for the batch without data that follows it.
        state: The state variable whose rows are read at the end with Spark's state data source.
        stages: How many stateful operators the query has, whose state is read.
        at_end: Is given the query when it has ended, while its checkpoint is still there.

    Raises:
        BadInput: Spark refuses the query as it stands, for want of a watermark for example.
        StreamproofError: The query failed; the message has its last line and the log's path.
        MachineTooBusy: A Python worker didn't start in time, and when all was run once more, again not.
    """
    return once_more_if_busy(
        partial(
            _run_once,
            spark,
            batches,
            build,
            stop_after,
            crash_in,
            stepwise=stepwise,
            state=state,
            stages=stages,
            at_end=at_end,
        )
    )


def stored_in(leftover: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[Any, ...], list[Any], Stored]]:
    """List the keys of a state as Spark's state data source reads it, each with its fields, and all that is stored."""
    import msgspec

    from ....spark_impl.runtime.processor import PACKED

    decode = msgspec.msgpack.Decoder().decode
    for row in leftover:
        for of_key, stored in unpacked(row["value"][PACKED]):
            yield tuple(decode(of_key)), decode(stored.fields), stored


def stop_queries() -> None:
    """Stop the queries of this process; what waits for them fails."""
    with contextlib.suppress(Exception):  # the JVM may have died
        for session in sessions():
            for query in session.streams.active:
                query.stop()


def once_more_if_busy(run: Callable[[], Result]) -> Result:
    """Call `run`, and a second time where the machine was too busy for it; it must begin anew each time."""
    with query_lock():
        try:
            return run()
        except MachineTooBusy:
            return run()


def _run_once(
    spark: SparkSession,
    batches: Sequence[pa.Table],
    build: Build,
    stop_after: Sequence[int],
    crash_in: Sequence[Crash],
    *,
    stepwise: bool,
    state: str | None,
    stages: int,
    at_end: AtEnd | None,
) -> StreamOutput:
    with temporary_folder(work_folder()) as folder:
        run = EndedQuery(spark, folder, batches, build)
        if stepwise:
            run.step_through()
        else:
            seen = -1
            for stop in [*sorted(min(stop, len(batches) - 1) for stop in stop_after), len(batches) - 1]:
                run.make_available(stop + 1)
                crashes = sorted(crash_in, key=lambda crash: crash.sort_key)
                run.drain([crash for crash in crashes if seen < crash.batch <= stop])
                seen = stop
        if state is not None:
            for stage in range(stages):
                run.output.leftover += run.stored(state, stage)
        if at_end is not None:
            at_end(run)
        return run.finished()


def schema_of_file(spark: SparkSession, schema: pa.Schema, path: Path) -> StructType:
    """Return Spark's schema of arrow's, by way of a file, for there their types agree."""
    pq.write_table(schema.empty_table(), path)
    return spark.read.parquet(str(path)).schema


def hand_over(table: pa.Table, number: int, source: Path) -> None:
    """Put a file into the folder of a source as a whole, a second younger than that of the number before it."""
    hidden = source.parent / f"{number:06d}.writing"
    pq.write_table(table, hidden)
    os.utime(hidden, (1_000_000_000 + number, 1_000_000_000 + number))
    hidden.rename(source / f"{number:06d}.parquet")


class EndedQuery:
    """A query over given batches, and its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, batches: Sequence[pa.Table], build: Build) -> None:
        self.spark = spark
        self.source, self.checkpoint = folder / "source", folder / "checkpoint"
        self.source.mkdir()
        self.batches = batches
        self.available = 0
        self.output = StreamOutput()
        self.tables: dict[int, pa.Table] = {}
        self.schema = schema_of_file(spark, batches[0].schema, folder / "schema.parquet")
        self.build = build
        # Built once before anything runs, so that a declaration that is refused is refused without a query.
        self.result()

    def result(self) -> DataFrame:
        """Declare the query anew, as a restarted job does."""
        source = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).parquet(str(self.source))
        return self.build(source)

    def make_available(self, count: int) -> None:
        """Put the first `count` batches into the source, each a second younger than the one before it."""
        for number in range(self.available, count):
            hand_over(self.batches[number], number, self.source)
        self.available = max(self.available, count)

    def drain(self, crash_in: Sequence[Crash] = ()) -> None:
        """Run all available batches; with planned crashes, run on after each."""
        for crash in crash_in:
            self.start_and_wait(crash)
        self.start_and_wait(None)

    def start_and_wait(self, crash: Crash | None) -> None:
        """Start the query, and wait until it ends: where it is to crash, or with all batches done."""
        pending = [crash]

        def die_if_planned(batch_id: int, moment: Moment) -> None:
            at = pending[0]
            if at is not None and at.moment == moment and self.data_batch(batch_id) == (at.batch, at.data):
                pending[0] = None
                raise PlannedCrash

        def write(frame: DataFrame, batch_id: int) -> None:
            die_if_planned(batch_id, "before its output")
            table = arrow_table_of(frame)
            before = self.tables.get(batch_id)
            if before is not None:
                self.output.replayed.append((before, table))
            self.tables[batch_id] = table
            die_if_planned(batch_id, "between its output and its commit")

        query = self.result().writeStream.foreachBatch(write).option("checkpointLocation", str(self.checkpoint))
        running = _started(query.trigger(availableNow=True))
        with reported_failures(planned=crash is not None):
            try:
                running.awaitTermination()
            finally:
                running.stop()
        if pending[0] is not None:
            raise StreamproofError(f"the query was to die in {crash}, and never came there: name a batch that it runs")

    def step_through(self) -> None:
        """Hand over one batch at a time, and wait until it is done."""

        def write(frame: DataFrame, batch_id: int) -> None:
            self.tables[batch_id] = arrow_table_of(frame)

        query = self.result().writeStream.foreachBatch(write).option("checkpointLocation", str(self.checkpoint))
        running = _started(query)
        with reported_failures():
            try:
                for number in range(len(self.batches)):
                    self.make_available(number + 1)
                    running.processAllAvailable()
            finally:
                running.stop()

    @property
    def stages(self) -> int:
        """How many stateful operators it has."""
        return sum(path.name.isdigit() for path in (self.checkpoint / "state").glob("*"))

    def stored(self, state: str, stage: int) -> list[dict[str, object]]:
        """Read a state variable of a stateful operator, which is counted from the last one."""
        reader = self.spark.read.format("statestore").option("path", str(self.checkpoint))
        rows = reader.option("stateVarName", state).option("operatorId", stage).load().collect()
        return [row.asDict(recursive=True) for row in rows]

    def refusal(self, build: Build) -> str | None:
        """Start the query once more, as another one, for a batch without rows; say why it failed, None if it went on.

        One that has written something, or committed a batch, before it failed went on.
        """
        hand_over(self.batches[0].slice(0, 0), self.available, self.source)
        self.available += 1
        own, written, committed = self.build, dict(self.tables), self.committed()
        self.build = build
        try:
            self.start_and_wait(None)
        except QueryFailed as failed:
            return str(failed) if (self.tables, self.committed()) == (written, committed) else None
        finally:
            self.build, self.tables = own, written
        return None

    def committed(self) -> set[str]:
        """List the batches that are committed."""
        return {path.name for path in (self.checkpoint / "commits").glob("[0-9]*")}

    def data_batch(self, batch_id: int) -> tuple[int, bool]:
        """Return the newest file that a batch of the query has seen, and whether that file is the batch's own."""

        def offset(number: int) -> int:
            if number < 0:
                return -1
            path = self.checkpoint / "offsets" / str(number)
            try:
                return int(json.loads(path.read_text().splitlines()[-1])["logOffset"])
            except (OSError, ValueError, IndexError, KeyError, TypeError) as error:
                why = getattr(error, "strerror", None) or "it holds no offset"
                raise StreamproofError(
                    f"the checkpoint {self.checkpoint} is damaged: offsets/{number}: {why}; run it again, on a disk "
                    "that is sound (TMPDIR or --shared names another)"
                ) from None

        return offset(batch_id), offset(batch_id) != offset(batch_id - 1)

    def finished(self) -> StreamOutput:
        """Give what it wrote."""
        last = len(self.batches) - 1
        self.output.partitions = sum(path.name.isdigit() for path in (self.checkpoint / "state" / "0").glob("*"))
        for batch_id in sorted(self.tables):
            newest, own = self.data_batch(batch_id)
            self.output.batches.append((newest if own else min(newest + 1, last), self.tables[batch_id]))
        return self.output


def _started(query: DataStreamWriter) -> StreamingQuery:
    """Start a query.

    Raises:
        BadInput: Spark refuses it as it stands; the message has Spark's reason and, for a watermark, the remedy.
    """
    from pyspark.errors import AnalysisException

    try:
        return query.start()
    except AnalysisException as error:
        reason = str(error).splitlines()[0].rstrip(";. ")
        remedy = ': give the event time one, such as .withWatermark("time", "5 milliseconds"), before the operator'
        raise BadInput(f"Spark refuses the query: {reason}{remedy if 'watermark' in reason else ''}") from None


@contextlib.contextmanager
def reported_failures(planned: bool = False) -> Iterator[None]:
    """Turn a query's failure into a `StreamproofError` that says what went wrong; a planned crash is none."""
    from py4j.protocol import Py4JError
    from pyspark.errors import StreamingQueryException
    from pyspark.errors.exceptions.captured import CapturedException

    # Its client logs the traceback of each function that fails in a batch, which is said here in a line.
    log = logging.getLogger("py4j.clientserver")
    log.addFilter(_never)
    try:
        yield
    except (Py4JError, ConnectionError, EOFError) as error:
        dead = why_jvm_died(error)
        if dead is None:
            raise
        raise StreamproofError(dead) from None
    except (CapturedException, StreamingQueryException) as error:
        if planned and PlannedCrash.__name__ in str(error):
            return
        if _TOO_BUSY in str(error):
            raise MachineTooBusy(
                "this machine is too busy: Spark gives a Python worker 10 s to start, and it took longer, twice; "
                f"run again when less runs beside it (the log is {spark_log_path()})"
            ) from None
        full = no_space(str(error), work_folder())
        kind, cause = (StreamproofError, full) if full else (QueryFailed, _cause(str(error)))
        raise kind(f"the Spark query failed: {cause}{_user_line(str(error))} (the log is {spark_log_path()})") from None
    finally:
        log.removeFilter(_never)


def _never(record: logging.LogRecord) -> bool:
    return False


def _user_line(text: str) -> str:
    """Return the innermost line of the user's own code in the traceback of a worker, or nothing."""
    frames = re.findall(r'^ *File "(.+?)", line (\d+), in (\S+)\n(?: +(.+))?', text, re.MULTILINE)
    own = [frame for frame in frames if not any(part in frame[0] for part in _NOT_THE_USERS)]
    if not own:
        return ""
    path, line, function, code = own[-1]
    return f", in {function} ({visible_path(path)}:{line})" + (f": `{code.strip()}`" if code else "")


def _cause(text: str) -> str:
    """The line of a query's failure that says what went wrong: a worker's exception, if there is one."""
    raised = re.findall(r"^(?:\w+\.)*(\w*(?:Error|Exception|Exit|BadInput)): (.+)$", text, re.MULTILINE)
    reasons = [
        (kind, said) for kind, said in raised if kind not in ("PythonException", "SparkException", "Py4JJavaError")
    ]
    if not reasons:  # then it is one of the JVM's own, and the innermost says what went wrong
        reasons = re.findall(r"^Caused by: (?:[\w$]+\.)*(\w+): (.+)$", text, re.MULTILINE)
    if reasons:
        kind, said = reasons[-1]
        return said if kind == "BadInput" else f"{kind}: {said}"
    clash = re.search(r"_SCHEMA_NOT_COMPATIBLE\] .+\n.+\n(Existing .+)", text)
    if clash:
        return (
            "the checkpoint was written under another declaration, with another key, value, aggregate or state_groups: "
            f"{clash[1].rstrip('.')}: declare the operator as before, or give the query a new checkpointLocation"
        )
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")[:500]
