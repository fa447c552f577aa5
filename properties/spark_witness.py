"""The witnesses that run on Spark: the operator of `spark_impl`, Spark's own, or a user's job."""

from __future__ import annotations

import contextlib
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
from ..spark_impl.keyed import STATE, Logic
from .bindings.common import Binding, of_key_column
from .bindings.foreign_key_join import BINDING as of_foreign_key_join
from .bindings.one_to_many_join import BINDING as of_one_to_many_join
from .bindings.range_aggregate import BINDING as of_range_aggregate
from .bindings.session_windows import BINDING as of_session_windows
from .bindings.session_windows import native
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
        logic: Seeded bugs instead of the operator's own logic.
        stop_after: Stop after that batch and restart.
        crash_in: Die between output and commit of that batch, and restart.
        read_state: Read the state at the end.
        state_groups: As in `session_windows`; None decides by the cohort's size.
    """

    native: bool = False
    merge_in_partition: bool = False
    job: Job | None = None
    logic: Callable[[Any], Logic[Any]] | None = None
    stop_after: int | None = None
    crash_in: int | None = None
    read_state: bool = False
    state_groups: int | None = None


PLAIN = Plan()


def answer(histories: Sequence[History], plan: Plan = PLAIN) -> list[Outcome]:
    """Run histories on Spark, those that may in one cohort, and give their outcomes in the same order.

    Raises:
        BadInput: A value doesn't fit its column, or a history has manual delivery.
        StreamproofError: The query failed, or Spark couldn't be started.
    """
    outcomes: dict[int, Outcome] = {}
    for cohort, places in cohorts_of(histories):
        for place, outcome in zip(places, run_cohort(cohort, plan)[0], strict=True):
            outcomes[place] = outcome
    return [outcomes[place] for place in range(len(histories))]


def run_cohort(cohort: Cohort, plan: Plan = PLAIN) -> tuple[list[Outcome], StreamOutput]:
    """Run one cohort in one query; give each history's outcome, and what the query wrote."""
    definition = operator_named(cohort.operator).declare(cohort.options)
    binding = BINDINGS[cohort.operator]
    tables = pack(cohort, binding.fields(definition, [one for history in cohort.histories for one in history.records]))
    groups = plan.state_groups
    if groups is None and len(cohort.histories) > MANY_KEYS:
        groups = MANY_GROUPS
    output = _run(tables, builder(cohort.operator, cohort.options, plan, groups), plan)
    decode = partial(binding.decode, definition)
    entries = _by_end_if(plan.native, entries_of(output, decode, binding.keys))
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
    return _by_end_if(native, entries_of(_run(batches, build, plan), lambda value: value))


def builder(operator: str, options: Mapping[str, Any], plan: Plan, state_groups: int | None) -> Build:
    """Give what turns the streaming input of a cohort into the streaming result.

    Raises:
        BadInput: Spark has no operator of its own that means these options.
    """
    definition = operator_named(operator).declare(options)
    if plan.job is not None:
        return plan.job
    if not plan.native:
        return lambda frame: BINDINGS[operator].build(definition, frame, plan.logic, state_groups)
    if operator != "session_windows":
        raise BadInput(f"spark-native has no {operator} yet: use another witness")
    if (definition.emit, definition.late) != ("close", "own"):
        raise BadInput(
            f"spark-native can't serve emit={definition.emit!r}, late={definition.late!r}: Spark's session_window "
            'tells a session once, when it closes, and tests a record alone; use "emit": "close", "late": "own"'
        )
    return lambda frame: native(definition, frame)


def entries_of(
    output: StreamOutput, decode: Callable[[Any], Any], keys: Callable[[pa.Table], list[Key | None]] = of_key_column
) -> list[Entry]:
    """Turn what a query wrote into entries at batch grain, each key's in order."""
    return [entry for batch, table in output.batches for entry in _entries(batch, table, decode, keys(table))]


def _by_end_if(native: bool, entries: list[Entry]) -> list[Entry]:
    # Spark's own operator promises no order, so its sessions of a batch are told by end.
    return (
        sorted(entries, key=lambda entry: (entry.batch, getattr(entry.output, "timestamp", 0))) if native else entries
    )


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
    settings = {MERGE_IN_PARTITION: str(plan.merge_in_partition).lower()} if plan.native else {}
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
