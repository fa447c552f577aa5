"""The witnesses that run on Spark: the operator of `spark_impl`, Spark's own, or a user's job."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

from ..reference.errors import BadInput
from ..reference.histories import History
from ..reference.operators import operator_named
from ..reference.play import Entry
from ..reference.records import Change, Dropped
from ..reference.windows import SessionWindows
from ..spark_impl.session_windows import SessionLogic, native_session_windows, session_windows
from .cohorts import Cohort, cohorts_of, pack, unpack
from .outcomes import Grain, Outcome
from .spark_session import spark_session
from .streams import Build, StreamOutput, run_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Job: TypeAlias = Callable[[DataFrame], DataFrame]

ON_SPARK = ("session_windows",)
"""The operators that have a Spark implementation."""
MERGE_IN_PARTITION = "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition"
STATE = "sessions"
MANY_KEYS = 200
MANY_GROUPS = 64


class Encoding(NamedTuple):
    """How the values of histories travel: the arrow type of the column, and the ways there and back."""

    type: pa.DataType
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


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
    logic: Callable[[SessionWindows], SessionLogic] | None = None
    stop_after: int | None = None
    crash_in: int | None = None
    read_state: bool = False
    state_groups: int | None = None


PLAIN = Plan()


def answer(histories: Sequence[History], plan: Plan = PLAIN) -> list[Outcome]:
    """Run histories on Spark, those that may in one cohort, and give their outcomes in the same order.

    Raises:
        BadInput: An operator isn't on Spark, or a value doesn't fit its column.
        StreamproofError: The query failed, or Spark couldn't be started.
    """
    require_on_spark(histories)
    outcomes: dict[int, Outcome] = {}
    for cohort, places in cohorts_of(histories):
        for place, outcome in zip(places, run_cohort(cohort, plan)[0], strict=True):
            outcomes[place] = outcome
    return [outcomes[place] for place in range(len(histories))]


def require_on_spark(histories: Sequence[History]) -> None:
    """Refuse histories of operators that have no Spark implementation.

    Raises:
        BadInput: The message names the history and the operator.
    """
    for history in histories:
        if history.operator not in ON_SPARK:
            raise BadInput(f"{history.name}: {history.operator} isn't on Spark yet: use another witness")


def run_cohort(cohort: Cohort, plan: Plan = PLAIN) -> tuple[list[Outcome], StreamOutput]:
    """Run one cohort in one query; give each history's outcome, and what the query wrote."""
    values = [record.value for history in cohort.histories for record in history.records if record.key is not None]
    encoding = encoding_for(cohort.options, values)
    tables = pack(cohort, encoding.type, encoding.encode)
    groups = plan.state_groups
    if groups is None and len(cohort.histories) > MANY_KEYS:
        groups = MANY_GROUPS
    output = _run(tables, builder(cohort.options, plan, groups), plan)
    entries = _by_end_if(plan.native, entries_of(output, encoding.decode))
    grain, knows = Grain.BATCH, not plan.native and plan.job is None
    outcomes = [
        Outcome(history.name, grain, own, knows_dropped=knows)
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
    return _by_end_if(native, entries_of(_run(batches, builder(options, plan, groups), plan), lambda value: value))


def builder(options: Mapping[str, Any], plan: Plan, state_groups: int | None) -> Build:
    """Give what turns the streaming input of a cohort into the streaming result."""
    windows: SessionWindows = operator_named("session_windows").declare(options)
    name = windows.aggregate.name
    common: dict[str, Any] = {
        "key": "key",
        "timestamp": "timestamp",
        "gap": f"{windows.gap_ms} ms",
        "grace": f"{windows.grace_ms} ms",
        "value": None if name == "count" else "value",
        "aggregate": name,
    }
    if plan.job is not None:
        return plan.job
    if plan.native:
        if (windows.emit, windows.late) != ("close", "own"):
            raise BadInput(
                f"spark-native can't serve emit={windows.emit!r}, late={windows.late!r}: Spark's session_window tells "
                'a session once, when it closes, and tests a record alone; use "emit": "close", "late": "own"'
            )
        return lambda frame: native_session_windows(frame, **common)
    return lambda frame: session_windows(
        frame,
        **common,
        order="order",
        retention=f"{windows.retention_ms} ms",
        emit=windows.emit,
        late=windows.late,
        report_dropped=True,
        state_groups=state_groups,
        logic=plan.logic,
    )


def encoding_for(options: Mapping[str, Any], values: Sequence[Any]) -> Encoding:
    """Choose the column that carries these values under these options.

    Raises:
        BadInput: `min` or `max` is to compare strings with numbers.
    """

    def same(value: Any) -> Any:
        return value

    match options.get("aggregate", "count"):
        case "count":
            return Encoding(pa.int32(), lambda value: None, same)
        case "list":
            # The same few texts come again and again.
            loads = lru_cache(maxsize=100_000)(json.loads)
            return Encoding(pa.string(), json.dumps, lambda members: [loads(member) for member in members])
    kinds = {type(value) for value in values}
    if kinds <= {int}:
        return Encoding(pa.int64(), same, same)
    if kinds <= {int, float}:
        return Encoding(pa.float64(), same, same)
    if kinds == {str}:
        return Encoding(pa.string(), same, same)
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise BadInput(f"values of several types ({names}) can't share a column on Spark: use one type of value")


def entries_of(output: StreamOutput, decode: Callable[[Any], Any]) -> list[Entry]:
    """Turn what a query wrote into entries at batch grain, each key's in order."""
    return [entry for batch, table in output.batches for entry in _entries(batch, table, decode)]


def _by_end_if(native: bool, entries: list[Entry]) -> list[Entry]:
    # Spark's own operator promises no order, so its sessions of a batch are told by end.
    return (
        sorted(entries, key=lambda entry: (entry.batch, getattr(entry.output, "timestamp", 0))) if native else entries
    )


def _entries(batch: int, table: pa.Table, decode: Callable[[Any], Any]) -> Iterator[Entry]:
    if "ordinal" in table.column_names:
        # A key's changes lie in one group of rows, which a sort by their number keeps together in order.
        order = sorted(range(table.num_rows), key=table.column("ordinal").to_pylist().__getitem__)
    else:
        order = list(range(table.num_rows))
    keys, values = table.column("key").to_pylist(), table.column("value").to_pylist()
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
