"""Declares a job: calls the job on the query's streams, and reads the job's plan."""

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
"""The text before Spark's reason, and a remedy for each pattern in the reason."""
NAMED_SOURCES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
"""The setting with which a checkpoint identifies sources by name instead of position."""
_CUT = " more fields"
"""The text with which Spark replaces columns beyond `maxToStringFields` in a plan."""
_IDS = re.compile(r"#\d+L?")
"""The column ids in a plan's text, which differ between two plans of the same job."""


class JobDeclaration:
    """The declaration of a query's job; each start of the query declares the job again.

    Args:
        runnable: The job, with its inputs and tables.
        spark: The session.
        folder: The folder of the query.
        run: The options of the query's run.
        stream: Returns a new stream of an input.
        has_clock: Whether the job's watermarks also follow the check's clock.

    Attributes:
        job: The job to declare when the query starts.
        mode: The job's output mode; for a sink, the mode of the query that it has started.
        clocks: The number of sources that the check has added for its clock since the last start of the query.
        before: The ids of the queries that were active before.
        queries: The queries that the last call of the job has started, including ended queries.
        plan: The job's analyzed plan.
        used: The job's use of the static tables.
        static: The static tables, as DataFrames.
        settings: The session settings that the job has changed.
        divergences: The names of the known divergences that affect the plan of a sink's query.
        delays_us: The delays of the watermarks that follow the clock.
        owns_checkpoint: Whether only this version of the job, on this PySpark, uses the query's checkpoint.
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
        """Declare another version of the job from now on, and forget the plan of the earlier version."""
        self.job, self.plan = job, Plan()
        self.mode: str = mode

    def named(self, reader: DataStreamReader, name: str) -> DataStreamReader:
        """Return the reader of an input's stream; with a name if the session's checkpoints identify sources by name."""
        # PySpark before 4.2 can't name sources, and its checkpoints identify sources by position.
        if self.spark.conf.get(NAMED_SOURCES, "false") != "true" or not hasattr(reader, "name"):
            return reader
        if name == TIME:
            self.clocks += 1
            name = f"{name}_{self.clocks}"
        return reader.name(re.sub(r"\W", "_", name, flags=re.ASCII))

    def result(self) -> tuple[DataFrame, Watermarks]:
        """Declare a job that returns its result, as each start of its query does."""
        job = self.job
        assert not isinstance(job, Sink)
        returned, watermarks = self.call(job)
        frame = frame_of(job, returned, streaming=True)
        self.refuse_others(0)
        self.take_up(frame._jdf.queryExecution().analyzed(), watermarks)
        return frame, watermarks

    def call(self, function: Callable[..., Any], *more: Any) -> tuple[Any, Watermarks]:
        """Call a user's function with the inputs; the function's watermarks also follow the clock."""
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
        """Return a block in which a query starts with Spark's default state store, if possible.

        Only RocksDB supports `transformWithState`, and the user's own settings take precedence.
        """
        of_user = any(name.startswith("spark.sql.streaming.") for name in self.run.settings)
        may_choose = self.owns_checkpoint and not of_user and not connect.is_asked()
        if may_choose and "TransformWithState" not in result._jdf.queryExecution().analyzed().toString():
            return with_settings(result.sparkSession, default_store())
        return contextlib.nullcontext()

    def take_up(self, analyzed: Any, watermarks: Watermarks) -> None:
        """Read the job's analyzed plan, and check its times.

        Raises:
            BadInput: The job uses processing time or another event time, and the check's arguments don't declare it.
        """
        if self.plan.operators:  # a restart declares the same job, so its plan isn't read again: that takes up to 0.6 s
            return
        self.plan, where = self.plan_of(analyzed), name_of(self.job)
        if self.plan.by_processing_time and not self.run.processing_time:
            raise BadInput(
                f"{where} has timeouts or timers of processing time: give their lengths in its test, "
                'such as timeouts=["30 minutes"], and batches run just before, at and after their ends'
            )
        for time in self.plan.event_times:
            if time.is_of_clock and not self.run.processing_time:
                raise BadInput(
                    f"{where} has its watermark on {time.name!r}, the time at which a batch runs, which no row has: "
                    'take the event time from the rows, or give the job timeouts, such as timeouts=["30 minutes"]'
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
        if isinstance(self.job, Sink):  # a job that isn't a sink has its divergences in its declaration
            self.divergences = self.divergences_of(analyzed)

    def plan_of(self, analyzed: Any) -> Plan:
        """Read an analyzed plan, or return the result of an earlier read of an equal plan.

        Always read a plan with table columns, because its column ids differ between queries, and a plan whose text
        Spark cuts.
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
        """Return the names of the known divergences of Spark's optimizer that affect an analyzed plan of the job."""
        nullable = {
            column.name.lower()
            for source in self.runnable.sources
            for column in source.schema
            if column.nullable and column.name != source.time and (column.name,) != source.key
        }
        return divergences_of(self.spark, analyzed, IS_CLOCK, nullable)

    def refuse_others(self, own: int) -> None:
        """Stop the job's queries if the job has started more queries than `own`, the number of queries that the check
        sees.

        Raises:
            BadInput: The job has started additional queries.
        """
        active = [query for query in self.spark.streams.active if query.id not in self.before]
        ids = {query.id for query in [*active, *self.queries]}
        if len(ids) > own:
            for query in active:
                query.stop()
            job = self.job
            remedy = "give a Sink for each query" if isinstance(job, Sink) else "return its DataFrame, or give a Sink"
            started = "a query" if len(ids) == 1 else f"{len(ids)} queries"
            raise BadInput(f"{name_of(job)} started {started}, and the check would see {own or 'none'}: {remedy}")
