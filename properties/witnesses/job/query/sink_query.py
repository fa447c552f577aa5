"""The query that a sink starts itself, whose rows are read where it has written them."""

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
"""After how many rows of a partition a writer dies at most, and so how often in a micro-batch."""


class SinkQuery(JobQuery):
    """The query of a sink over batches. A sink that no planned crash ends repeats micro-batches.

    Attributes:
        sink: The sink, which at the end reads what was written.
        own: The folder that the sink is given.
    """

    def __init__(self, runnable: RunnableJob, spark: SparkSession, folder: Path, feed: Feed) -> None:
        super().__init__(runnable, spark, folder, feed)
        assert isinstance(runnable.job, Sink)
        self.sink, self.own = runnable.job, folder / "job"
        self.own.mkdir(exist_ok=True)

    def started(self) -> StreamingQuery:
        """Let the sink declare its query and start it; before the first stop of an upgrade, that of its version."""
        sink, declaration, memory = self.declaration.job, self.declaration, self.runnable.memory
        assert isinstance(sink, Sink)
        memory.put_back()
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

    def emitted(self, run_all: Callable[[], None]) -> WrittenRows:
        """Return the rows that the sink has written at the end; as `JobQuery.emitted`."""
        with self.sink.at(self.own) as given:
            self.until_stop = replace(self.until_stop, given=given)
            return super().emitted(run_all)

    def rows(self) -> WrittenRows:
        """Return the rows that the sink has written, as it reads them."""
        read = self.sink.read
        return [[*rows_of(called(read, [], [], self.until_stop.given[:1]), location(read))]], []

    def run_all(self) -> None:
        """Run all batches; as `PreparedQuery.run_all`."""
        if self.deaths.planned:
            self.repeat_each()
        super().run_all()

    def repeat_each(self) -> None:
        """Run each micro-batch of a planned crash, and remove its commit, so that the next start repeats it.

        So it is after a crash between a micro-batch's output and its commit, whatever the sink. If the sink has a
        function for `foreachBatch`, the first crash is raised in that, as all others will be. A writer of `foreach`
        dies in the middle of its rows, and Spark's own file sink before its log has the files that it has written.
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
            # Where the watermark has moved, Spark has run one more micro-batch without data, and that is the last.
            last = last_commit(self.checkpoint)
            if middle and (logged := [*self.own.rglob(f"{LOG}/{last}")]):
                remove(*logged)
                self.repeat(middle[0]._replace(step=1), number)
                self.deaths.died_at = f"after it had written its files, and before its log in {LOG} named them"
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
        self.deaths.happened.append((crash, number in self.deaths.with_rows))
        return True

    def die_in_rows(self, number: int, planned: Sequence[Crash]) -> None:
        """Let a writer of `foreach` die in a micro-batch, as often as planned; do nothing for another sink."""
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
        """Return the number of rows that the sink holds; 0 if it can't be read before all batches have run."""
        try:
            ((rows,), _) = self.rows()
        except StreamproofError:
            return 0
        return len(rows)
