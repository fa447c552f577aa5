"""Runs a sink's query over a cohort's batches under a fault: stops and restarts the query, and reads its target."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from ....reference.core.errors import StreamproofError
from ...system.visible import first_line
from ...witnesses.job.dying.faults import AT, LateWrite, QueryUnderFault, Seen
from ...witnesses.run_options import PLAIN
from ...witnesses.spark.engine import PreparedQuery, hand_over, wait
from ...witnesses.spark.failures import MachineTooBusy, PlannedCrash, reported_failures
from ...witnesses.spark.session import why_jvm_died
from .cohorts import BATCHES, SCHEMA, SinkCohort
from .contracts import SinkContract, table_of
from .judging import FoundRows, found_in
from .places import AFTER, BEFORE, CHECKED, NOWHERE, WITHIN, DyingPlace, Places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamReader, StreamingQuery

QUERY_S = 45.0
_FULL = {"spark": 2_600, "python": 600}
"""The file size limit on the full disk (bytes): above the size of a checkpoint's files, below a sink's files."""
ROWS = "rows"


class FaultedQuery(QueryUnderFault, PreparedQuery):
    """A query with a sink, which runs under a fault.

    Args:
        spark: The session.
        folder: The folder of the query's files.
        sink: The sink.
        cohort: The histories.
        target: The target of the sink; by default a target in the folder.
        second: Whether this is a second query with different rows.

    Attributes:
        at: The point of a write at which the query stops.
        seen: The observations.
        files_per_batch: The number of files in a micro-batch.
        filling: Whether the second batch contains enough rows to fill the simulated disk.
    """

    refused = ("", {})
    seconds = QUERY_S

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        sink: SinkContract,
        cohort: SinkCohort,
        target: str = "",
        second: bool = False,
    ) -> None:
        super().__init__(spark, folder, [{ROWS: SCHEMA.empty_table()}] * BATCHES, PLAIN)
        self.sink, self.cohort, self.second, self.folder = sink, cohort, second, folder
        self.target = target or str(folder / "target" / sink.file)
        Path(self.target).parent.mkdir(exist_ok=True)
        if sink.name.startswith("iceberg"):
            Path(self.target).mkdir(exist_ok=True)
        self.at: Places = NOWHERE
        self.seen = Seen(range(BATCHES))
        self.files_per_batch, self.filling = 1, False
        self.kept: Path | None = None

    def reader(self, name: str) -> DataStreamReader:
        """Return a streaming reader of the input, with the given number of files in a micro-batch."""
        return super().reader(name).option("maxFilesPerTrigger", self.files_per_batch)

    def place(self, batch_id: int) -> tuple[int, bool]:
        """Return the number of the batch that a micro-batch contains, which is the micro-batch's own number, and True,
        because it contains the batch's rows.
        """
        return batch_id, True

    def make_available(self, count: int) -> None:
        """Write the input files of the first `count` batches, unless they exist."""
        for batch in range(self.available, count):
            table = self.cohort.table(batch, self.second, self.filling and batch == 1)
            hand_over(table, batch, self.folders[ROWS])
        self.available = max(self.available, count)

    def start(self) -> StreamingQuery:
        """Start the sink's query; Spark's tasks write its rows in two partitions."""
        from pyspark.sql import functions as F

        rows, sink, at = self.stream(ROWS), self.sink, self.at
        if sink.writer == "spark":
            rows = rows.where("id % 2 = 0").union(rows.where("id % 2 = 1"))
        if sink.result == "totals":
            rows = rows.groupBy("history", "key").agg(F.sum("amount").alias("total"))
        elif sink.own is not None:
            rows = at.frame(rows)
        for name, value in sink.settings:
            self.spark.conf.set(name, value)
        writer = rows.writeStream.outputMode("update" if sink.result == "totals" else "append")
        writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        try:
            if sink.own is not None:
                return sink.own(writer, self.target, at)
            return writer.foreachBatch(self.callbacks.noted(self.written)).start()
        finally:
            for name, _ in sink.settings:
                self.spark.conf.unset(name)

    def written(self, rows: DataFrame, batch: int) -> None:
        """Write a micro-batch with the sink's function for `foreachBatch`."""
        self.write(rows, batch, self.at)

    def write(self, rows: Any, batch: int, at: Places) -> None:
        """Write rows as a micro-batch; stop before or after the write if that is the planned point."""
        assert self.sink.write is not None
        if self.kept is not None:
            self.kept.mkdir(exist_ok=True)
            pq.write_table(table_of(rows), self.kept / f"{batch}.parquet")
        at.reach(BEFORE, batch)
        self.sink.write(rows, batch, self.target, at)
        at.reach(AFTER, batch)

    def stops(self, place: DyingPlace, batch: int, waits: bool = False) -> Places:
        """Plan one stop of the query at a point of a write, where the query then fails or waits."""
        number = len([*self.folder.glob("stopped *")])
        self.at = Places(place, batch, str(self.folder / f"stopped {number} {self.sink.name}"), waits)
        return self.at

    def run_until(self, batches: int) -> str:
        """Run the query until it has written the first batches; return the error of a failure, or an empty text."""
        self.make_available(batches)
        try:
            with self.running() as query:
                wait(query, self.seconds, self.callbacks)
        except MachineTooBusy:
            raise
        except StreamproofError as error:
            if why_jvm_died(error) is not None:
                raise
            return str(getattr(error, "cause", "") or error.message)
        return ""

    def dies(self, batches: int) -> bool:
        """Run the query until it dies at the planned point; if it doesn't die, record that the fault didn't happen."""
        why = self.run_until(batches)
        if not self.at.is_met:
            self.seen.unmet = f"the query doesn't reach the point where it should die{f': {why}' if why else ''}"
        elif why and PlannedCrash.__name__ not in why:
            self.seen.refusals.append(why)
        self.at = NOWHERE
        return not self.seen.unmet

    def observe(self) -> None:
        """Record the rows that the reader finds during the run; ignore a failure of the reader."""
        with contextlib.suppress(Exception):  # a reader may fail while the write is incomplete
            self.seen.readings.append(self.found())

    def found(self) -> FoundRows:
        """Return the rows that the reader finds, by history."""
        with reported_failures():
            return found_in(self.sink.read(self.target), self.sink.result == "totals")

    def read_end(self) -> None:
        """Record a reader's final result."""
        try:
            self.seen.end = self.found()
        except Exception as error:
            self.seen.stuck = f"its readers fail: {getattr(error, 'cause', '') or first_line(error)}"

    def errors(self) -> Iterator[int]:
        """Plan an error within a batch's write, then an error after the write; yield after each plan the number of
        batches to run.
        """
        for place in (WITHIN, AFTER):
            if place in self.sink.places and (place == WITHIN or self.sink.own is None):
                self.stops(place, AT)
                yield AT + 1

    def late_writes(self) -> Iterator[LateWrite]:
        """Let the query die before a batch's write; yield the write of the dead query, which still happens later."""
        if self.sink.write is None:
            self.seen.unmet = "a sink of Spark's own calls no function"
            return
        self.kept = self.folder / "kept"
        self.stops(BEFORE, AT)
        if not self.dies(AT + 1):
            return
        table = self.kept / f"{AT}.parquet"
        at = self.stops(zombies_place(self.sink), AT, waits=True)
        self.at, self.kept = NOWHERE, None
        columns = ["history", "key", "total"] if self.sink.result == "totals" else ["history", "key", "amount", "id"]
        rows = self.spark.read.parquet(str(table)).select(*columns)
        yield LateWrite(lambda: self.write(rows, AT, at), Path(at.marker))

    def second_query(self) -> FaultedQuery:
        """Return a second query with its own checkpoint and rows."""
        folder = self.folder / "second"
        folder.mkdir()
        return FaultedQuery(self.spark, folder, self.sink, self.cohort, self.target, second=True)

    def target_files(self) -> list[Path]:
        """Return the files of the target."""
        target = Path(self.target)
        return [target] if target.is_file() else [path for path in target.rglob("*") if path.is_file()]

    def fill_disk(self) -> Iterator[Mapping[int, int]]:
        """Fill the next batch with rows; yield the file size limit of the process that writes the sink's files, by
        process id.
        """
        self.filling = True
        self.run_until(AT)
        self.make_available(AT + 1)
        pid = os.getpid()
        if self.sink.writer == "spark":
            pid = int(self.spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
        yield {pid: _FULL[self.sink.writer]}


def zombies_place(sink: SinkContract) -> DyingPlace:
    """Return the point at which an old query waits: after it has checked whether the batch is already written, if the
    sink checks this.
    """
    if CHECKED in sink.places:
        return CHECKED
    return BEFORE if sink.own is None or WITHIN not in sink.places else WITHIN
