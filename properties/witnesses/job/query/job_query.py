"""The query of a job that returns its result; the query keeps the emitted rows of each micro-batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from ....generators.columns.forms.rows import Row
from ....system.installed.spark_versions import arrow_table_of
from ....system.progress import doing
from ...spark.engine import PreparedQuery, TookTooLong
from ..clock import with_clock
from ..declaring import PATCHING
from ..dying.checkpoints import undo_state
from ..dying.faults import NO_FAULT, FaultOutcome
from ..processing_time import at_times
from ..rows import rows_of
from ..sinks.sink import Sink
from .deaths import JobDeaths
from .declaration import REFUSED, JobDeclaration
from .progress import Times
from .runnable import Feed, RunnableJob, UntilStop, name_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamReader, StreamingQuery
    from pyspark.sql.types import StructType

WrittenRows: TypeAlias = tuple[list[list[Row]], Sequence[Sequence[Row]]]
"""The rows of each batch, for a sink one list at the end; and the rows of each micro-batch, for a sink none."""


class JobQuery(PreparedQuery):
    """A job's query over batches.

    Attributes:
        runnable: The job, with its inputs and tables.
        until_stop: The data with which an earlier version of the job runs until the first stop.
        first_stop: The batch after which the query first stops.
        declaration: The declaration of the job, for each start of the query.
        deaths: The planned crashes, and the crashes that have happened.
        times: The times of the micro-batches.
        tables: The rows of each micro-batch.
        triggers: The triggers that a sink sets and the check replaces.
        ahead: Whether the watermark was ahead of the clock.
        repartitioned: The number of the micro-batch in which Spark repartitioned the state; -1: none.
        follows_clock: Whether the watermark follows the clock with a single delay.
    """

    refused = REFUSED
    deaths: JobDeaths

    def __init__(self, runnable: RunnableJob, spark: SparkSession, folder: Path, feed: Feed) -> None:
        # A shrunk history may end before some of its stops, after which a job would have nothing to do.
        self.first_stop = min(feed.run.stop_after, default=0)
        stops = tuple(stop for stop in dict.fromkeys(feed.run.stop_after) if stop < len(feed.batches) - 1)
        run = replace(feed.run, stop_after=stops)
        self.runnable, self.until_stop = runnable, UntilStop(runnable, feed, folder)
        super().__init__(spark, folder, with_clock(feed.batches, feed.clock), run, run.steps)
        self.seconds = run.seconds
        self.declaration = JobDeclaration(runnable, spark, folder, run, self.stream, bool(feed.clock))
        self.deaths = JobDeaths(run.crash_in)
        self.times = Times(runnable.sources, self.batches, feed.clock, feed.times_ms, self.place)
        self.tables: dict[int, pa.Table] = {}
        self.triggers: list[str] = []
        self.ahead, self.repartitioned, self.follows_clock = False, -1, True

    def schema_of(self, schema: pa.Schema, path: Path) -> StructType:
        """Return Spark's schema for an input's schema; all queries share it, because the conversion takes 0.1 s."""
        text, known = f"{dict(self.run.settings)} {schema}", self.runnable.schemas
        if text not in known:
            known[text] = super().schema_of(schema, path)
        return known[text]

    def reader(self, name: str) -> DataStreamReader:
        """Return the reader of an input's stream, from `JobDeclaration.named`."""
        return self.declaration.named(super().reader(name), name)

    def place(self, batch_id: int) -> tuple[int, bool]:
        """Return the batch of a micro-batch; with a trigger other than the default, only the last batch has two
        micro-batches.

        The micro-batch of a repartition runs no batch.
        """
        batch, rest = divmod(batch_id - (0 <= self.repartitioned < batch_id), self.steps)
        last = len(self.batches) - 1
        return min(batch, last), not rest and batch <= last

    def start(self) -> StreamingQuery:
        """Declare and start the query, at the processing times of its clock.

        Raises:
            BadInput: The job breaks the contract, or Spark refuses its query.
        """
        times = self.times
        with at_times(self.spark, times.time_ms) if times.times_ms else contextlib.nullcontext():
            return self.started()

    def started(self) -> StreamingQuery:
        """Declare and start the query."""
        result, _ = self.declaration.result()
        writer = result.writeStream.foreachBatch(self.dying(self.keep)).outputMode(self.declaration.mode)
        writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        with self.declaration.storing(result):
            return writer.start()

    def keep(self, rows: DataFrame, batch_id: int) -> None:
        """Store the rows of a micro-batch."""
        self.tables[batch_id] = arrow_table_of(rows)

    def drained(self) -> bool:
        """Run the available batches, as `PreparedQuery.drained` does.

        Raises:
            StreamproofError: The query failed, or exceeded its time limit.
        """
        if self.deaths.planned or self.deaths.happened:
            name, died = name_of(self.declaration.job), len(self.deaths.happened)
            doing(f"{name}: testing recovery: {died} crashes so far")
        try:
            return super().drained()
        except TookTooLong:  # a job's function that hasn't returned holds the lock
            PATCHING.give_up()
            raise

    def stop(self, query: StreamingQuery) -> None:
        """Stop the query, and record its progress."""
        super().stop(query)
        if self.deaths.lost_state >= 0:
            undo_state(self.checkpoint, self.deaths.lost_state)
            self.deaths.lost_state = -1
        self.times.note(query)

    def emitted(self, run_all: Callable[[], None]) -> WrittenRows:
        """Return the rows that the query emits.

        Args:
            run_all: Runs all batches.

        Raises:
            BadInput: The batches ran at other times than the check had set.
            StreamproofError: The watermark hasn't followed the clock.
        """
        run_all()
        self.times.refuse_others(self.spark.version)
        self.ahead = self.is_ahead()
        if self.ahead:
            return [[] for _ in self.batches], []  # don't read rows: their times may exceed Python's range
        return self.rows()

    @property
    def outcome(self) -> FaultOutcome:
        """The outcome of a fault; only a query of a sink undergoes a fault."""
        return NO_FAULT

    def is_ahead(self) -> bool:
        """Return whether the watermark was ahead of the clock, as `Times.is_ahead` does."""
        delays_us = self.declaration.delays_us
        if not (self.follows_clock and self.times.clock and delays_us):
            return False
        may_be_behind = self.run.trigger != "default" or isinstance(self.runnable.job, Sink)
        return self.times.is_ahead(self.run.delay_us(delays_us), may_be_behind)

    def rows(self) -> WrittenRows:
        """Return the rows that the query has emitted."""
        parts: list[list[Row]] = []
        batches: list[list[Row]] = [[] for _ in self.batches]
        for number in sorted(self.tables):
            parts.append([*rows_of(self.tables[number])])
            self.deaths.with_rows |= {number} if parts[-1] else set()
            batch = self.place(number)[0]
            batches[batch] = parts[-1] if self.run.mode == "complete" else [*batches[batch], *parts[-1]]
        return batches, parts
