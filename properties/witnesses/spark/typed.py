"""The witness that runs an operator of `spark_impl` on columns of other types than those of every cohort."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from ....reference.core.errors import BadInput
from ....reference.core.operator import operator_named
from ....reference.core.play import Entry
from ....reference.core.records import Change
from ...generators.cohorts import Cohort, pack, unpack
from ...generators.layouts import NULL_KEY, Layout, Typed
from ...registration.registration import Options
from ...system.work import temporary_folder
from ..base import PLAIN, RunOptions
from ..outcomes import Outcome
from .decode import entries_of
from .query import Build, StreamOutput, once_more_if_busy, reported_failures, run_stream
from .session import partitions_setting, session_for_query, work_folder
from .witness import SPARK, QueryWitness, Tables, binding_of, state_groups_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME_ZONE = "spark.sql.session.timeZone"


@dataclass(frozen=True)
class TypedSparkWitness(QueryWitness):
    """An operator of `spark_impl` in a layout of columns; what it emits comes back as that of the history.

    Attributes:
        layout: The layout.
        before_1970_ms: How far before 1970 the histories begin.
        of: The witness whose logic runs.
    """

    layout: Layout
    before_1970_ms: int = 0
    of: QueryWitness = SPARK

    name: ClassVar[str] = "spark"

    def builder(self, operator: str, options: Options, state_groups: int | None = None, batches: Tables = ()) -> Build:
        """Return the query of `spark_impl` in the layout; as `QueryWitness.builder`."""
        definition, typed = operator_named(operator).declare(options), binding_of(operator).typed
        if typed is None:
            raise BadInput(f"the binding of {operator} names no columns: give it typed")
        return lambda frame: typed(definition, frame, self.of.logic, state_groups, columns=self.layout.columns)

    def run(self, cohort: Cohort, run: RunOptions = PLAIN) -> tuple[list[Outcome], StreamOutput]:
        """Run one cohort in one query, whose histories may have null keys; as `QueryWitness.run`.

        Raises:
            BadInput: A history is refused, or a value doesn't fit its column.
            StreamproofError: The query failed, or Spark couldn't be started.
        """
        definition = operator_named(cohort.operator).declare(cohort.options)
        binding = binding_of(cohort.operator)
        fields = binding.fields(definition, [record for history in cohort.histories for record in history.records])
        typed = Typed(self.layout, cohort, fields, pack(cohort, fields), self.before_1970_ms)
        build = self.builder(cohort.operator, cohort.options, state_groups_of(cohort, run))
        settings = {TIME_ZONE: self.layout.time_zone} | partitions_setting(run.partitions)
        with session_for_query(settings) as spark:
            if self.layout.is_batch:
                output = run_batch(spark, pa.concat_tables(typed.tables()), build)
            else:
                output = run_stream(spark, typed.tables(), build, stop_after=run.stop_after, crash_in=run.crash_in)
        output.batches = [(number, typed.read(table)) for number, table in output.batches]
        entries = entries_of(
            output, lambda value: binding.decode(definition, typed.read_value(value)), keys=binding.keys
        )
        by_tuple = getattr(definition, "unit", None) == "tuple"
        back = partial(_shifted_back, by_ms=self.before_1970_ms, windows_too=not by_tuple)
        return [
            Outcome(history.name, self.grain, list(map(back, own)), is_stream=definition.is_stream)
            for history, own in zip(cohort.histories, unpack(cohort, entries), strict=True)
        ], output


def run_batch(spark: SparkSession, records: pa.Table, build: Build) -> StreamOutput:
    """Run a query over a batch DataFrame: a history that has ended.

    Raises:
        StreamproofError: The query failed.
    """

    def once() -> StreamOutput:
        with temporary_folder(work_folder()) as folder, reported_failures():
            pq.write_table(records, folder / "records.parquet")
            return StreamOutput([(0, build(spark.read.parquet(str(folder))).toArrow())])

    return once_more_if_busy(once)


def _shifted_back(entry: Entry, by_ms: int, windows_too: bool) -> Entry:
    """Return what was emitted with the times of the history, and a null key for each that stands for one."""
    output: Any = entry.output
    if output.key is not None and NULL_KEY in output.key:
        output = output._replace(key=None)
    if isinstance(output, Change):
        window = output.window
        if window is not None and windows_too:
            window = (window[0] + by_ms, window[1] + by_ms)
        output = output._replace(window=window, timestamp=output.timestamp + by_ms)
    return entry._replace(output=output)
