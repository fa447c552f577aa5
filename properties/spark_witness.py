"""The witnesses that run on Spark: the operator of `spark_impl`, Spark's own, or a user's job."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from ..reference.errors import BadInput
from ..reference.histories import History
from ..reference.operators import operator_named
from ..reference.play import Entry
from ..reference.records import Change, Dropped, Key
from ..spark_impl.keyed import STATE
from .bindings.common import Binding, Native, of_key_column
from .bindings.foreign_key_join import BINDING as of_foreign_key_join
from .bindings.one_to_many_join import BINDING as of_one_to_many_join
from .bindings.range_aggregate import BINDING as of_range_aggregate
from .bindings.session_windows import BINDING as of_session_windows
from .bindings.stream_stream_join import BINDING as of_stream_stream_join
from .bindings.stream_table_join import BINDING as of_stream_table_join
from .bindings.table_aggregate import BINDING as of_table_aggregate
from .bindings.table_table_join import BINDING as of_table_table_join
from .bindings.window_aggregate import BINDING as of_window_aggregate
from .bindings.windowed_table import BINDING as of_windowed_table
from .cohorts import Cohort, cohorts_of, pack, unpack
from .outcomes import Grain, Outcome
from .spark_session import spark_session
from .streams import Build, StreamOutput, run_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Job: TypeAlias = Callable[[DataFrame], DataFrame]

BINDINGS: Mapping[str, Binding] = {
    "foreign_key_join": of_foreign_key_join,
    "one_to_many_join": of_one_to_many_join,
    "range_aggregate": of_range_aggregate,
    "session_windows": of_session_windows,
    "stream_stream_join": of_stream_stream_join,
    "stream_table_join": of_stream_table_join,
    "table_aggregate": of_table_aggregate,
    "table_table_join": of_table_table_join,
    "window_aggregate": of_window_aggregate,
    "windowed_table": of_windowed_table,
}
ON_SPARK = tuple(BINDINGS)
"""The operators that have a Spark implementation."""
MERGE_IN_PARTITION = "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition"
WATERMARK_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
PARTITIONS = "spark.sql.shuffle.partitions"
MANY_KEYS = 200
MANY_GROUPS = 64


@dataclass(frozen=True)
class Plan:
    """How a cohort is run; the defaults are a plain run of `spark_impl`'s operator.

    Attributes:
        native: Run Spark's own operator, one batch at a time.
        merge_in_partition: With `native`: whether sessions are merged before the shuffle too.
        job: Run a user's job instead: it takes the streaming input (key string, value, timestamp bigint ms,
            order bigint) and gives the columns of `session_windows`, of which `change`, `reason`, `cause` and `ordinal`
            may be missing.
        logic: Seeded bugs instead of the operator's own logic, or that of its stages.
        mutant: The name of the mutant that `logic` is, if it is one; a counterexample of it is asked again by it.
        stop_after: Stop after that batch and restart.
        crash_in: Die between output and commit of that batch, and restart.
        read_state: Read the state at the end.
        state_groups: As in `session_windows`; None decides by the cohort's size.
        partitions: How many shuffle partitions the query has; None for the session's number.
    """

    native: bool = False
    merge_in_partition: bool = False
    job: Job | None = None
    logic: Callable[[Any], Any] | None = None
    mutant: str | None = None
    stop_after: int | None = None
    crash_in: int | None = None
    read_state: bool = False
    state_groups: int | None = None
    partitions: int | None = None


PLAIN = Plan()


def answer(histories: Sequence[History], plan: Plan = PLAIN) -> list[Outcome]:
    """Run histories on Spark, those that may in one cohort, and give their outcomes in the same order.

    Foreign-key joins with manual delivery are played in three queries, which tell their outcomes by arrival.

    Raises:
        BadInput: A value doesn't fit its column, or a history delivers a message where none waits.
        StreamproofError: The query failed, or Spark couldn't be started.
    """
    outcomes: dict[int, Outcome] = {}
    staged = [place for place, history in enumerate(histories) if history.has_schedule]
    if staged and not plan.native:
        from .decoupled_witness import answer_decoupled  # it takes what is below, and more time to import

        outcomes |= zip(staged, answer_decoupled([histories[place] for place in staged]), strict=True)
    others = [place for place in range(len(histories)) if place not in outcomes]
    for cohort, of_others in cohorts_of([histories[place] for place in others]):
        places = [others[place] for place in of_others]
        for place, outcome in zip(places, run_cohort(cohort, plan)[0], strict=True):
            outcomes[place] = outcome
    return [outcomes[place] for place in range(len(histories))]


def run_cohort(cohort: Cohort, plan: Plan = PLAIN) -> tuple[list[Outcome], StreamOutput]:
    """Run one cohort in one query; give each history's outcome, and what the query wrote."""
    definition = operator_named(cohort.operator).declare(cohort.options)
    binding = BINDINGS[cohort.operator]
    if plan.native:
        for history in cohort.histories:
            native_of(cohort.operator).check_history(history)
    tables = pack(cohort, binding.fields(definition, [one for history in cohort.histories for one in history.records]))
    groups = plan.state_groups
    if groups is None and len(cohort.histories) > MANY_KEYS:
        groups = MANY_GROUPS
    output = _run(tables, builder(cohort.operator, cohort.options, plan, groups, tables), plan)
    decode = partial(binding.decode, definition)
    entries = _in_order_if(plan.native, entries_of(output, decode, binding.keys))
    grain, knows = Grain.BATCH, not plan.native and plan.job is None
    outcomes = [
        Outcome(history.name, grain, own, knows_dropped=knows, is_stream=definition.is_stream)
        for history, own in zip(cohort.histories, unpack(cohort, entries), strict=True)
    ]
    return outcomes, output


def answer_table(batches: Sequence[pa.Table], options: Mapping[str, Any], native: bool = False) -> list[Entry]:
    """Run one big history, given as tables, and give its entries at batch grain.

    Args:
        batches: One table a micro-batch with the columns key (string), value (any that the aggregate takes), timestamp
            (bigint, ms) and order (bigint).
        options: The options of `session_windows`, as in a history file.
        native: Whether to run Spark's own operator.
    """
    plan = Plan(native=native)
    keys = {key for table in batches for key in table.column("key").unique().to_pylist()}
    groups = MANY_GROUPS if len(keys) > MANY_KEYS else None
    build = builder("session_windows", options, plan, groups)
    return _in_order_if(native, entries_of(_run(batches, build, plan), lambda value: value))


def builder(
    operator: str,
    options: Mapping[str, Any],
    plan: Plan,
    state_groups: int | None,
    batches: Sequence[pa.Table] = (),
) -> Build:
    """Give what turns the streaming input of a cohort into the streaming result.

    `batches` is all that will come, for an operator of Spark's own that looks up a table which stands still.

    Raises:
        BadInput: Spark has no operator of its own that means these options.
    """
    definition = operator_named(operator).declare(options)
    if plan.job is not None:
        return plan.job
    if not plan.native:
        return lambda frame: BINDINGS[operator].build(definition, frame, plan.logic, state_groups)
    native = native_of(operator)
    native.check(definition)
    return lambda frame: native.build(definition, frame, batches)


def native_of(operator: str) -> Native:
    """Give how Spark's own operator is asked.

    Raises:
        BadInput: Spark has none.
    """
    native = BINDINGS[operator].native
    if native is None:
        raise BadInput(f"spark-native has no {operator}: Spark has no operator of its own that can mean it; use spark")
    return native


def native_refusal(history: History) -> str | None:
    """Say why Spark's own operator can't be asked about a history, or None if it can."""
    try:
        native = native_of(history.operator)
        native.check(operator_named(history.operator).declare(history.options))
        native.check_history(history)
    except BadInput as error:
        return str(error)
    return None


def entries_of(
    output: StreamOutput, decode: Callable[[Any], Any], keys: Callable[[pa.Table], list[Key | None]] = of_key_column
) -> list[Entry]:
    """Turn what a query wrote into entries at batch grain, each key's in order."""
    return [entry for batch, table in output.batches for entry in _entries(batch, table, decode, keys(table))]


def _in_order_if(native: bool, entries: list[Entry]) -> list[Entry]:
    # Spark's own operator promises no order, so its windows of a batch are told by end, its joined rows by timestamp.
    return sorted(entries, key=_place) if native else entries


def _place(entry: Entry) -> tuple[Any, ...]:
    _, batch, output = entry
    if not isinstance(output, Change):
        return batch, 0
    if output.window is not None:
        return batch, output.window[1]
    return batch, output.timestamp, json.dumps(output.value, sort_keys=True)


def _entries(batch: int, table: pa.Table, decode: Callable[[Any], Any], keys: Sequence[Key | None]) -> Iterator[Entry]:
    if "ordinal" in table.column_names:
        # A key's changes lie in one group of rows, which a sort by their number keeps together in order.
        order = sorted(range(table.num_rows), key=table.column("ordinal").to_pylist().__getitem__)
    else:
        order = list(range(table.num_rows))
    values = table.column("value").to_pylist()
    timestamps = _milliseconds(table.column("timestamp"))
    nothing: list[Any] = [None] * table.num_rows
    starts = ends = nothing
    if "window" in table.column_names:
        window = table.column("window").combine_chunks()
        starts, ends = (_milliseconds(window.field(name)) for name in ("start", "end"))
    reasons = table.column("reason").to_pylist() if "reason" in table.column_names else nothing
    for row in order:
        if reasons[row] is not None:
            yield Entry(-1, batch, Dropped(keys[row], reasons[row]))
            continue
        span = None if starts[row] is None else (starts[row], ends[row])
        value = None if values[row] is None else decode(values[row])
        yield Entry(-1, batch, Change(keys[row], span, value, timestamps[row]))


def _milliseconds(column: Any) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64())
    return list(column.to_pylist())


def _run(tables: Sequence[pa.Table], build: Build, plan: Plan) -> StreamOutput:
    spark = spark_session()
    settings = {MERGE_IN_PARTITION: str(plan.merge_in_partition).lower(), WATERMARK_POLICY: "max"}
    settings = settings if plan.native else {}
    if plan.partitions is not None:
        settings[PARTITIONS] = str(plan.partitions)
    with _settings(spark, settings):
        return run_stream(
            spark,
            tables,
            build,
            stop_after=plan.stop_after,
            crash_in=plan.crash_in,
            stepwise=plan.native,
            state=STATE if plan.read_state else None,
        )


@contextlib.contextmanager
def _settings(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)
