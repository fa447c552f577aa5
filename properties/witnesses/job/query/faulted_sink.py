"""The query of a user's sink under a fault."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from .....reference.core.errors import BadInput, StreamproofError
from ....generators.columns.forms.rows import Row
from ....generators.columns.key_spaces import key_space
from ....system.installed.spark_versions import arrow_table_of, frame_of_arrow
from ...spark.engine import OfBatch, TookTooLong
from ...spark.failures import MachineTooBusy, PlannedCrash
from ...spark.session import why_jvm_died
from ..dying.checkpoints import last_commit, undo_commit
from ..dying.faults import AT, FAULTS, FaultOutcome, LateWrite, QueryUnderFault, Seen, counted, is_torn
from ..dying.steps import LineError, Pause, Steps
from .job_query import WrittenRows
from .runnable import Feed, RunnableJob
from .sink_query import SinkQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHOSEN: Sequence[tuple[tuple[int, int], ...]] = ((), ((0, 1),), ((0, 2),))
"""The places of runs that choose the lines themselves: each run has other lines, so that together they have most."""
MOST_LINES = 11
"""The number of lines that these runs choose together, besides the first."""
_LARGER = 200
"""The difference between the size limit of files on a full disk and the largest file of the checkpoint (bytes)."""
NO_FUNCTION = "the sink has no function for foreachBatch"
ONE_FOLDER = "the sink's target and its checkpoint share a folder"
NO_KEYS = "an input's key is none of its columns, so its rows can't be divided"


ReadRows: TypeAlias = Mapping[Any, Counter[str]]
"""The rows that a reader finds, by the number of their history."""


class FaultedSink(SinkQuery, QueryUnderFault):
    """A query of a user's sink, which undergoes the fault of its run options."""

    def __init__(self, runnable: RunnableJob, spark: SparkSession, folder: Path, feed: Feed) -> None:
        self.other_feed: Feed | None = None
        self.why_not_two = ""
        if feed.run.fault == "two-queries":
            self.why_not_two = _why_not_two(runnable, feed)
            if not self.why_not_two:
                feed, self.other_feed = divided(runnable.sources, feed)
        super().__init__(runnable, spark, folder, feed)
        self.folder, self.files_per_batch = folder, 1
        self.seen = Seen(range(len(self.batches)))
        self.lines: list[tuple[int, int]] = []
        self.reached, self.current = 0, AT
        self.before: ReadRows | None = None
        self.after: ReadRows | None = None
        self.removed: list[Row] = []
        self.takes = False
        self.taken: tuple[OfBatch, pa.Table] | None = None
        self.error: LineError | None = None

    def reader(self, name: str) -> Any:
        """Return the reader of an input, with the given number of files in a micro-batch."""
        return super().reader(name).option("maxFilesPerTrigger", self.files_per_batch)

    def put_back(self) -> None:
        """Restore the values that the sink keeps in Python, unless the fault leaves the process alive."""
        if self.run.fault != "lost-connection" or not self.available:
            super().put_back()

    def dying(self, function: OfBatch) -> OfBatch:
        """Wrap a function for `foreachBatch`, so that the fault happens in the planned micro-batch."""
        return self.callbacks.noted(partial(self.write, function))

    def write(self, function: OfBatch, rows: DataFrame, number: int) -> None:
        """Call the function for `foreachBatch`; the fault may withhold the call, or raise an error before a line of the
        function.

        Raises:
            PlannedCrash: The fault has withheld the call, and kept its rows for a late write.
        """
        batch, is_without_data = divmod(number, self.steps)
        if is_without_data or self.files_per_batch > 1:
            function(rows, number)
            return
        if batch == AT and self.before is None:
            self.before = self.reading()
        if batch > AT and self.after is None:
            self.after = self.reading()
        if batch == self.current and self.takes:
            self.takes, self.taken = False, (function, arrow_table_of(rows))
            raise PlannedCrash
        steps = self.error if batch == self.current else Steps() if batch == 0 else None
        if steps is None:
            function(rows, number)
            return
        steps.run(function, rows, number)
        self.reached = max(self.reached, steps.reached)

    def run_all(self) -> None:
        """Run the query with the fault; if the fault can't happen, run all batches without it."""
        FAULTS[self.run.fault].play(self)
        if self.seen.unmet:
            self.finish()

    def run_until(self, batches: int) -> str:
        """Run the query until it has written the first batches; return the reason of a failure, or an empty text."""
        self.make_available(min(batches, len(self.batches)))
        try:
            self.drained()
        except (BadInput, MachineTooBusy, TookTooLong):
            raise
        except StreamproofError as failed:
            if why_jvm_died(failed) is not None:
                raise
            return getattr(failed, "cause", "") or failed.message
        return ""

    def read_end(self) -> None:
        """Do nothing, because `rows` reads the final result."""

    def rows(self) -> WrittenRows:
        """Return the rows in the target and the rows of removed files; no rows if the target can't be read."""
        try:
            ((rows,), parts) = super().rows()
        except StreamproofError as error:
            self.seen.stuck = self.seen.stuck or f"its readers fail: {getattr(error, 'cause', '') or error.message}"
            return [[]], []
        return [[*self.removed, *rows]], parts

    def observe(self) -> None:
        """Record the rows of a reader while the first batch of the fault is written."""
        if self.current == AT:
            self.seen.readings.append(self.reading())

    def reading(self) -> ReadRows:
        """Return the rows that a reader finds, by the number of their history; no rows if the target can't be read."""
        found: dict[Any, list[Row]] = {}
        try:
            space = key_space(self.runnable.sources)
            ((rows,), _) = SinkQuery.rows(self)
        except StreamproofError:
            return {}
        for row in rows:
            numbers = [space.unpacked(row[name]) for name in space.columns.values() if name in row]
            found.setdefault(next((each[0] for each in numbers if each), None), []).append(row)
        return {number: counted(each) for number, each in found.items()}

    @property
    def outcome(self) -> FaultOutcome:
        """The outcome of the fault, besides the rows in the target."""
        nothing: Counter[str] = Counter()
        before = self.before or {}
        torn = sum(
            any(is_torn(before.get(one, nothing), after, reading.get(one, nothing)) for reading in self.seen.readings)
            for one, after in (self.after or {}).items()
        )
        return FaultOutcome(self.seen.unmet, self.seen.stuck, tuple(self.seen.refusals), torn, tuple(self.lines))

    def places(self) -> Iterator[tuple[int, int]]:
        """Run the query until each batch with the fault; yield the batch, and the line of the function at which the
        fault happens.

        By default, each batch has another one of the lines that the function has reached in the first batch, and
        finally the function's first line.
        """
        given = self.run.fault_at
        if why := self.run_until(AT):
            self.seen.unmet = why
            return
        if given in CHOSEN:
            count, part = self.reached - 1, CHOSEN.index(given)
            lines = [*range(1, count + 1, max(1, -(-count // MOST_LINES)))][part :: len(CHOSEN)]
            batches = range(AT, max(AT + 1, len(self.batches) - 1))
            given = tuple(zip(batches, lines if part else [*lines[: len(batches) - 1], 0], strict=False))
        for self.current, line in given:
            self.run_until(self.current)
            self.lines.append((self.current, line))
            yield self.current, line

    def errors(self) -> Iterator[int]:
        """Plan an error before a line of the function, once in each batch; yield the number of batches up to the
        error.
        """
        for batch, line in self.places():
            self.error = LineError(line)
            yield batch + 1
        self.error = None

    def dies(self, batches: int) -> bool:
        """Run the batch with the fault; return False if the sink has no function for `foreachBatch`."""
        why = self.run_until(batches)
        if self.before is None:
            self.seen.unmet = NO_FUNCTION
        elif why and self.taken is None and not (self.error and self.error.place):
            self.seen.refusals.append(why)
        return not self.seen.unmet

    def take(self, batch: int) -> tuple[OfBatch, pa.Table] | None:
        """Let the query die before it writes a batch; return the function and its rows, or None without a function."""
        self.takes, self.taken = True, None
        return self.taken if self.dies(batch + 1) else None

    def late_writes(self) -> Iterator[LateWrite]:
        """Let the query die before it writes a batch; yield this write, which waits before a line of the function."""
        for batch, line in self.places():
            taken = self.take(batch)
            if taken is None:
                return
            function, table = taken
            marker = self.folder / f"waits {batch}"
            rows = frame_of_arrow(self.spark, table, self.folder / "taken.parquet")
            write = partial(Pause(line, marker).run, function, rows, batch * self.steps)
            is_last = batch >= len(self.batches) - 2 or self.run.fault_at not in CHOSEN
            yield LateWrite(write, marker, batch + 1 + is_last)

    def second_query(self) -> FaultedSink | None:
        """Return a query over the rows of every other key (None: two queries can't share the rows or the target)."""
        self.seen.unmet = self.why_not_two
        if self.other_feed is None:
            return None
        folder = self.folder / "second"
        folder.mkdir()
        feed = replace(self.other_feed, run=replace(self.other_feed.run, fault=""))
        other = FaultedSink(self.runnable, self.spark, folder, feed)
        target, _ = self.until_stop.given
        other.until_stop = replace(other.until_stop, given=(target, str(other.own / "checkpoint")))
        return other

    def target_files(self) -> list[Path]:
        """Return the files of the target; no files if the target isn't a local path."""
        target = Path(str(self.until_stop.given[0]))
        found = [target] if target.is_file() else [path for path in target.rglob("*") if path.is_file()]
        return [path for path in found if self.checkpoint not in path.parents]

    def remove_files(self, files: Sequence[Path]) -> None:
        """Remove files of the target; `rows` still returns the rows of these files."""
        before = self._readable()
        super().remove_files(files)
        left = counted(self._readable())
        for row in before:
            if left[repr(row)]:
                left[repr(row)] -= 1
            else:
                self.removed.append(row)

    def _readable(self) -> list[Row]:
        try:
            return SinkQuery.rows(self)[0][0]
        except StreamproofError:
            return []

    def fill_disk(self) -> Iterator[Mapping[int, int]]:
        """Yield a size limit for this process's files, then for the JVM's; the checkpoint's files are smaller."""
        self.run_until(AT)
        self.make_available(AT + 1)
        sizes = (path.stat().st_size for path in self.checkpoint.rglob("*") if path.is_file())
        limit = max(sizes, default=0) + _LARGER
        yield {os.getpid(): limit}
        java = getattr(self.spark, "_jvm", None)
        if java is None:
            return
        if last_commit(self.checkpoint) >= AT * self.steps:
            undo_commit(self.checkpoint)
        yield {int(java.java.lang.ProcessHandle.current().pid()): limit}


def _why_not_two(runnable: RunnableJob, feed: Feed) -> str:
    """Return the reason why a second query can't have its own rows, or the same target; empty if it can."""
    if getattr(runnable.job, "_store", None) is None:
        return ONE_FOLDER
    try:
        columns = key_space(runnable.sources).columns
    except BadInput as error:
        return error.message
    tables = feed.batches[0]
    return "" if all(column in tables[name].column_names for name, column in columns.items()) else NO_KEYS


def divided(sources: Any, feed: Feed) -> tuple[Feed, Feed]:
    """Divide a query's rows between two queries: every other key belongs to the second query."""
    columns = key_space(sources).columns
    keys = {
        key for batch in feed.batches for name, column in columns.items() for key in batch[name][column].to_pylist()
    }
    second = {key for number, key in enumerate(sorted(keys, key=repr)) if number % 2}

    def part(is_second: bool) -> Feed:
        def of_table(name: str, table: pa.Table) -> pa.Table:
            if name not in columns:
                return table
            mask = [(key in second) == is_second for key in table[columns[name]].to_pylist()]
            return table.filter(pa.array(mask, pa.bool_()))

        return replace(feed, batches=[{name: of_table(name, one) for name, one in b.items()} for b in feed.batches])

    return part(False), part(True)
