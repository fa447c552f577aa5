"""The declaration of a job: its call on the query's streams, and the plan that comes of it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .....reference.core.errors import BadInput
from ...run_options import WATERMARK_POLICY, Mode, RunOptions
from ...spark.own_settings import noting_settings
from ...spark.platform import connect
from ...spark.session import default_store, with_settings
from ..as_in_a_check import started_queries
from ..clock import IS_CLOCK, TIME, Watermarks, clock_behind_watermarks
from ..contract import called, frame_of
from ..plan.optimized import divergences_of
from ..plan.plans import Plan, plan_of
from ..plan.tables import TablesUsed, tables_used
from ..row_by_row import row_by_row
from ..sinks.sink import Sink
from .runnable import JobOrSink, RunnableJob, name_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamReader, StreamingQuery

REFUSED: tuple[str, Mapping[str, str]] = (
    "Spark refuses the job's query: ",
    {
        "watermark": (
            'declare a watermark in the job, such as .withWatermark("at", "5 minutes"), on each input, and group or '
            "join by its column or by a window of it: Spark knows no watermark of an expression such as to_date(at)"
        ),
        "(?i)output mode": "set another output mode: in the script, with --mode, or with mode=",
    },
)
"""The text before Spark's reason, and the remedies, by a pattern in the reason."""
NAMED_SOURCES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
"""The setting by which a checkpoint knows sources by name, not by position."""
_CUT = " more fields"
"""Stands in the text of a plan in place of columns beyond Spark's `maxToStringFields`."""
_IDS = re.compile(r"#\d+L?")
"""The numbers of columns in the text of a plan, which are others each time that it is made."""


class JobDeclaration:
    """The job of a query, which is declared anew each time that the query is started.

    Args:
        runnable: The job, and what its queries need.
        spark: The session.
        folder: The folder of the query.
        run: How the query is run.
        stream: Reads an input anew, as a stream.
        has_clock: Whether watermarks follow the clock, too.

    Attributes:
        job: The job that is declared when the query is started.
        mode: Its output mode; of a sink the mode of the query that it has started.
        clocks: The number of sources of the clock since the query was last started.
        before: The ids of the queries that were there before.
        queries: The queries that the job has started since it was last called, those that have ended included.
        plan: The job's analyzed plan.
        used: How it uses the tables that don't change.
        static: The tables that don't change.
        settings: The settings of the session that it has made.
        divergences: The names of the known divergences that reach the plan of a sink's query.
        delays_us: The delays of the watermarks that follow the clock.
        owns_checkpoint: Whether no other version of the job, nor another PySpark, uses the query's checkpoint.
    """

    def __init__(
        self,
        runnable: RunnableJob,
        spark: SparkSession,
        folder: Path,
        run: RunOptions,
        stream: Callable[[str], DataFrame],
        has_clock: bool,
    ) -> None:
        self.runnable, self.spark, self.folder, self.run = runnable, spark, folder, run
        self.stream, self.has_clock = stream, has_clock
        self.before = {query.id for query in spark.streams.active}
        self.queries: list[StreamingQuery] = []
        self.used, self.static, self.delays_us = TablesUsed(), list["DataFrame"](), list[int]()
        self.settings: dict[str, str] = {}
        self.divergences: Sequence[str] = ()
        self.owns_checkpoint, self.clocks = False, 0
        self.take_over(runnable.job, run.mode)

    def take_over(self, job: JobOrSink, mode: Mode) -> None:
        """Let a version of the job be declared from now on, whose plan isn't known."""
        self.job, self.plan = job, Plan()
        self.mode: str = mode

    def named(self, reader: DataStreamReader, name: str) -> DataStreamReader:
        """Return the reader of an input's stream; if the session's checkpoints know sources by name, with a name."""
        # A PySpark before 4.2 ignores the setting: its checkpoints know sources by position.
        if self.spark.conf.get(NAMED_SOURCES, "false") != "true" or not hasattr(reader, "name"):
            return reader
        if name == TIME:
            self.clocks += 1
            name = f"{name}_{self.clocks}"
        return reader.name(re.sub(r"\W", "_", name, flags=re.ASCII))

    def result(self) -> tuple[DataFrame, Watermarks]:
        """Declare a job that returns its result anew, as one that is restarted does."""
        job = self.job
        assert not isinstance(job, Sink)
        returned, watermarks = self.call(job)
        frame = frame_of(job, returned, streaming=True)
        self.refuse_others(0)
        self.take_up(frame._jdf.queryExecution().analyzed(), watermarks)
        return frame, watermarks

    def call(self, function: Callable[..., Any], *more: Any) -> tuple[Any, Watermarks]:
        """Call a function of the user's with the inputs; watermarks that it declares follow the clock, too."""
        self.clocks = 0
        inputs = [self.stream(source.name) for source in self.runnable.sources]
        calls = row_by_row() if self.run.row_by_row else contextlib.nullcontext()
        clock = (lambda: self.stream(TIME)) if self.has_clock else None
        started = started_queries(self.spark, self.storing)
        with clock_behind_watermarks(clock) as watermarks, calls, started as self.queries:
            self.static = self.runnable.static_frames(self.spark, self.folder)
            with noting_settings(self.spark, self.settings):
                return called(function, inputs, self.static, more), watermarks

    def storing(self, result: DataFrame) -> AbstractContextManager[None]:
        """Let a query that is started within it keep its state where Spark does by default, if that can be.

        Only RocksDB serves `transformWithState`, and the user's own settings come first.
        """
        of_user = any(name.startswith("spark.sql.streaming.") for name in self.run.settings)
        may_choose = self.owns_checkpoint and not of_user and not connect.is_asked()
        if may_choose and "TransformWithState" not in result._jdf.queryExecution().analyzed().toString():
            return with_settings(result.sparkSession, default_store())
        return contextlib.nullcontext()

    def take_up(self, analyzed: Any, watermarks: Watermarks) -> None:
        """Take up the job's analyzed plan.

        Raises:
            BadInput: The job goes by processing time or by another event time, and the check doesn't know of it.
        """
        if self.plan.operators:  # a restart declares the same job, and reading a plan takes up to 0.6 s
            return
        self.plan, where = self.plan_of(analyzed), name_of(self.job)
        if self.plan.by_processing_time and not self.run.processing_time:
            raise BadInput(
                f"{where} has timeouts or timers of processing time: say in its test how long they are, "
                'such as timeouts=["30 minutes"], and batches run just before their ends, at them and after them'
            )
        for time in self.plan.event_times:
            if time.is_of_clock and not self.run.processing_time:
                raise BadInput(
                    f"{where} has its watermark on {time.name!r}, the time at which a batch runs, which no row says: "
                    'take the event time from the rows, or say how long the job waits, such as timeouts=["30 minutes"]'
                )
            alike = [one for one in self.runnable.sources if [*one.wire_schema.names] == [*time.beside]]
            if alike and time.given not in {source.wire_time for source in alike}:
                own = " or ".join(sorted({source.time for source in alike}))
                raise BadInput(
                    f"{where} has its watermark on {time.given!r}, and the event time of its input is {own!r}: "
                    f"name the column of the watermark, Input(…, time={time.given!r})"
                )
        if watermarks.count and not watermarks.without_clock:
            self.delays_us = [*self.plan.delays_us]
        self.used = tables_used(self.plan, dict(zip(self.runnable.static, self.static, strict=True)))
        if isinstance(self.job, Sink):  # of another job its declaration says it
            self.divergences = self.divergences_of(analyzed)

    def plan_of(self, analyzed: Any) -> Plan:
        """Read an analyzed plan, unless another query of the job had the same.

        A plan that names columns of tables by their numbers is read anew, for each query has other numbers; so is a
        plan whose text Spark cuts, for the rest may differ.
        """
        numbers: dict[str, str] = {}
        in_order = _IDS.sub(lambda found: numbers.setdefault(found[0], f"#{len(numbers)}"), analyzed.toString())
        text = f"{self.mode} {in_order.replace(str(self.folder), '')}"
        if (known := self.runnable.plans.get(text)) is not None:
            return known
        policy = self.spark.conf.get(WATERMARK_POLICY, "min")
        plan = plan_of(analyzed, IS_CLOCK, self.mode, str(policy))
        if not (plan.initial_keys or plan.looked_up or _CUT in text):
            self.runnable.plans[text] = plan
        return plan

    def divergences_of(self, analyzed: Any) -> Sequence[str]:
        """Return the names of the known divergences of Spark's optimizer that reach an analyzed plan of the job's."""
        nullable = {
            column.name.lower()
            for source in self.runnable.sources
            for column in source.schema
            if column.nullable and column.name != source.time and (column.name,) != source.key
        }
        return divergences_of(self.spark, analyzed, IS_CLOCK, nullable)

    def refuse_others(self, own: int) -> None:
        """Stop the queries that the job has started beside its own.

        Raises:
            BadInput: There are some.
        """
        active = [query for query in self.spark.streams.active if query.id not in self.before]
        ids = {query.id for query in [*active, *self.queries]}
        if len(ids) > own:
            for query in active:
                query.stop()
            job = self.job
            remedy = "give each a Sink of its own" if isinstance(job, Sink) else "return its DataFrame, or give a Sink"
            started = "a query" if len(ids) == 1 else f"{len(ids)} queries"
            raise BadInput(f"{name_of(job)} started {started}, of which the check would see {own or 'none'}: {remedy}")
