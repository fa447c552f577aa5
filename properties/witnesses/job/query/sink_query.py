"""The query that a sink starts itself; the check reads the rows from the sink's target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .....reference.core.errors import BadInput, StreamproofError
from ...run_options import BETWEEN, MIDDLE, Crash
from ..as_in_a_check import as_in_a_check
from ..contract import called, folder_of_checkpoint, location, query_of
from ..dying.checkpoints import last_commit, remove, undo_commit, undo_state
from ..rows import rows_of
from ..sinks.files import LOG
from ..sinks.sink import Sink
from .job_query import JobQuery, WrittenRows
from .runnable import Feed, RunnableJob, name_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

MOST_ROWS = 2
"""A `foreach` writer dies after 1 row of a partition, and again after each larger number up to this one."""


class SinkQuery(JobQuery):
    """The query of a sink over batches. The query simulates crashes by removing the commit of a micro-batch, which the
    next start repeats.

    Attributes:
        sink: The sink; its `read` returns the written rows at the end.
        own: The folder that the sink's functions receive.
    """

    def __init__(self, runnable: RunnableJob, spark: SparkSession, folder: Path, feed: Feed) -> None:
        super().__init__(runnable, spark, folder, feed)
        assert isinstance(runnable.job, Sink)
        self.sink, self.own = runnable.job, folder / "job"
        self.own.mkdir(exist_ok=True)

    def started(self) -> StreamingQuery:
        """Let the sink declare and start its query; before the first stop of an upgrade, use the earlier version's
        sink.
        """
        sink, declaration, memory = self.declaration.job, self.declaration, self.runnable.memory
        assert isinstance(sink, Sink)
        self.put_back()
        memory.learn(sink.code, sink.read)
        with as_in_a_check(self.dying, self.deaths.dying_writer, name_of(sink), self.triggers):
            returned, watermarks = declaration.call(sink.start, *self.until_stop.given)
        query: StreamingQuery = query_of(sink, returned, self.own)
        execution = query._jsq.streamingQuery()
        self.checkpoint = folder_of_checkpoint(execution)
        declaration.refuse_others(1)
        declaration.mode = str(execution.outputMode().toString()).lower()
        try:
            declaration.take_up(execution.analyzedPlan(), watermarks)
        except BadInput:
            query.stop()
            raise
        return query

    def put_back(self) -> None:
        """Restore the original values of the variables that the sink keeps in Python, because a new process would have
        these values.
        """
        self.runnable.memory.put_back()

    def emitted(self, run_all: Callable[[], None]) -> WrittenRows:
        """Run the batches, and return the rows in the sink's target at the end."""
        with self.sink.at(self.own) as given:
            self.until_stop = replace(self.until_stop, given=given)
            return super().emitted(run_all)

    def rows(self) -> WrittenRows:
        """Return the rows that the sink's `read` returns."""
        read = self.sink.read
        return [[*rows_of(called(read, [], [], self.until_stop.given[:1]), location(read))]], []

    def run_all(self) -> None:
        """Run all batches, with the planned crashes."""
        if self.deaths.planned:
            self.repeat_each()
        super().run_all()

    def repeat_each(self) -> None:
        """Run each micro-batch with a planned crash, and remove the micro-batch's commit, so that the next start
        repeats it.

        The repetition simulates a crash between a micro-batch's output and its commit, for any sink. A `foreachBatch`
        function raises its planned crashes itself, so this method returns after the function's first crash. A `foreach`
        writer dies between its rows, and Spark's file sink dies before its log names the written files.
        """
        rows = 0
        for number, crashes in self.deaths.by_micro_batch(self.steps):
            self.make_micro_batches_available(min(number + 1, len(self.batches) * self.steps))
            middle = [crash for crash in crashes if crash.moment == MIDDLE]
            self.die_in_rows(number, middle)
            self.drained()
            if self.deaths.count:
                return
            before, rows = rows, self.rows_in_sink()
            self.deaths.with_rows |= {number} if rows > before else set()
            # If the watermark has moved, the last micro-batch is Spark's additional micro-batch without data.
            last = last_commit(self.checkpoint)
            if middle and (logged := [*self.own.rglob(f"{LOG}/{last}")]):
                remove(*logged)
                self.repeat(middle[0]._replace(step=1), number)
                self.deaths.died_at = f"after the sink had written its files, and before its log in {LOG} named them"
                self.drained()
            for crash in [crash for crash in crashes if crash.moment == BETWEEN]:
                if not self.repeat(crash, number):
                    return  # don't restart: the checkpoint has no commit

    def repeat(self, crash: Crash, number: int) -> bool:
        """Remove the last commit, so that the next start repeats the micro-batch; return whether there was a commit."""
        if (undone := undo_commit(self.checkpoint)) < 0:
            return False
        if crash.moment == MIDDLE:
            undo_state(self.checkpoint, undone)
        self.deaths.happened.append((crash, number in self.deaths.with_rows))
        return True

    def die_in_rows(self, number: int, planned: Sequence[Crash]) -> None:
        """Let a `foreach` writer die in a micro-batch at each planned number of rows; do nothing for another sink."""
        deaths = self.deaths
        try:
            for crash in planned:
                for step in [crash.step] if crash.step else range(1, MOST_ROWS + 1):
                    deaths.dies_in = number, step
                    self.drained()
                    if deaths.count or not deaths.writes_rows or last_commit(self.checkpoint) >= number:
                        return
                    deaths.with_rows.add(number)
                    deaths.died_at = f"after {step} of a partition's rows, or all if it has fewer"
                    deaths.happened.append((crash._replace(step=step), True))
                    undo_state(self.checkpoint, number)
        finally:
            deaths.dies_in = None

    def rows_in_sink(self) -> int:
        """Return the number of rows in the sink's target; 0 if the target can't be read before all batches have run."""
        try:
            ((rows,), _) = self.rows()
        except StreamproofError:
            return 0
        return len(rows)
