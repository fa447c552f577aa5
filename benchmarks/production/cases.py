"""The cases of the benchmark `production`: for each operator a stream, a declaration, and a baseline.

Every run generates the streams again from the same seed. The keys of a stream are skewed: the busiest of 20,000 keys
has 1 record in 140. A record arrives every 20 ms of event time. If an operator has a clock, 1 in 10 records arrives up
to 30 s out of order. The grace is a minute, so that no record is late, because Spark's own operators treat late records
differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

START_MS = 1_767_225_600_000
STEP_MS = 20
BEHIND_MS = 30_000
KEYS = 20_000
GROUPS = 200
RIGHT_KEYS = 2_000
DAY_MS = 86_400_000
BUSY = 10_000
AS_MANY, UNIFORM, SKEWED = "as-many", "uniform", "skewed"
FILLED_MS = 240_000

EARLIER: Mapping[str, Any] = {"state_groups": 256}
"""The arguments for the earlier commit's operators: some 80 keys per group. A separate state for each key would cost
several times as much, in round trips to Spark. With few groups, the group of a busy key would keep a core busy while
others wait.
"""
TODAY: Mapping[str, Any] = {}
"""The arguments for this commit: none, because users have the defaults."""

Columns: TypeAlias = "dict[str, np.ndarray[Any, Any]]"
Frames: TypeAlias = "Mapping[str, DataFrame]"


@dataclass(frozen=True)
class Case:
    """The case of one operator: its inputs, its declaration and its baseline.

    Attributes:
        make: A function that returns each input's columns, with this many records in total. The columns include
            `order`, `time` (ms) and `key`.
        build: A function that declares the operator over the streaming inputs, with additional arguments (`TODAY`,
            `EARLIER`).
        baseline: A function that computes the same result without streamproof.
        against: The description of the baseline; a streaming baseline runs over the same micro-batches.
        result: Whether the results are a table, of which the last change of a key (and window) counts, or a stream.
        streaming: Whether the baseline is a streaming query.
        same: The columns of the changelog that are compared with the baseline's columns of the same names.
        settings: Spark settings of the baseline.
    """

    make: Callable[[int], Mapping[str, Columns]]
    build: Callable[[Frames, Mapping[str, Any]], DataFrame]
    baseline: Callable[[Frames], DataFrame]
    against: str
    result: Literal["table", "stream"] = "table"
    streaming: bool = False
    same: tuple[str, ...] = ("key", "value")
    settings: Mapping[str, str] | None = None


def skewed(numbers: np.random.Generator, rows: int, keys: int) -> np.ndarray[Any, Any]:
    """Draw a key's number for each of these rows; the number 0 is drawn most often."""
    drawn: np.ndarray[Any, Any] = (keys * numbers.random(rows) ** 2).astype(np.int64)
    return drawn


def named(prefix: str, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the names of keys: the prefix, and the key's number."""
    names = np.array([f"{prefix}{number:06d}" for number in range(int(numbers.max(initial=0)) + 1)], dtype=object)
    called: np.ndarray[Any, Any] = names[numbers]
    return called


def stream_of(rows: int, *, in_order: bool = False, closing: bool = False) -> Columns:
    """Return a stream; with `closing`, its last record is one day later, and closes all earlier windows."""
    numbers = np.random.default_rng(0)
    order = np.arange(rows)
    key = named("k", skewed(numbers, rows, KEYS))
    value = numbers.integers(0, 1000, rows)
    behind = np.where(numbers.random(rows) < 0.1, numbers.integers(0, BEHIND_MS, rows), 0)
    time = START_MS + BEHIND_MS + STEP_MS * order - (0 if in_order else behind)
    if closing:
        time[-1] += DAY_MS
        key[-1] = "~end"
    return {"order": order, "time": time, "key": key, "amount": value}


def events(rows: int) -> Mapping[str, Columns]:
    """Return one stream."""
    return {"events": stream_of(rows, closing=True)}


def events_in_order(rows: int) -> Mapping[str, Columns]:
    """Return one stream, in order of time."""
    return {"events": stream_of(rows, in_order=True)}


def two_streams(rows: int) -> Mapping[str, Columns]:
    """Return two streams, of half the records each; the last record of each closes all earlier windows."""
    both = stream_of(rows, closing=True)
    is_left = np.random.default_rng(1).random(rows) < 0.5
    return {"left": chosen(both, is_left), "right": chosen(both, ~is_left)}


def chosen(columns: Columns, rows: np.ndarray[Any, Any]) -> Columns:
    """Return the rows with these indexes, or for which this mask is true."""
    return {name: column[rows] for name, column in columns.items()}


def stream_and_table(rows: int) -> Mapping[str, Columns]:
    """Return a table, which has a row for 95% of the keys and arrives first, and a stream."""
    table = min(KEYS, rows // 4)
    both = stream_of(rows)
    in_table = np.random.default_rng(1).permutation(KEYS)[:table]
    in_table = in_table[in_table % 20 != 0]
    right = chosen(both, np.arange(rows) < len(in_table)) | {"key": named("k", in_table)}
    return {"left": chosen(both, np.arange(rows) >= len(in_table)), "right": right}


def two_tables(rows: int) -> Mapping[str, Columns]:
    """Return the changes of two tables, of half the records each; 1 in 20 deletes its key."""
    both = stream_of(rows) | {"deleted": np.random.default_rng(2).random(rows) < 0.05}
    is_left = np.random.default_rng(1).random(rows) < 0.5
    return {"left": chosen(both, is_left), "right": chosen(both, ~is_left)}


def grouped_table(rows: int) -> Mapping[str, Columns]:
    """Return the changes of a table whose rows are in one of 200 groups, and move to another 1 time in 10."""
    columns = stream_of(rows)
    return {"events": columns | {"group": named("g", references(columns, GROUPS))}}


def references(columns: Columns, many: int) -> np.ndarray[Any, Any]:
    """Return the row to which each record refers: usually the same row for a key, and 1 time in 10 another row."""
    numbers = np.random.default_rng(3)
    rows = len(columns["key"])
    _, of_key = np.unique(columns["key"], return_inverse=True)
    home = skewed(numbers, int(of_key.max()) + 1, many)[of_key]
    return np.where(numbers.random(rows) < 0.1, skewed(numbers, rows, many), home)


def referring_tables(rows: int) -> Mapping[str, Columns]:
    """Return the changes of 20,000 left rows that refer to 2,000 right rows; 1 record in 50 changes a right row.

    1 record in 20 deletes its key. On average 10 left rows refer to a right row, and 450 left rows to the busiest right
    row, whose change affects all of them.
    """
    return referring(stream_of(rows) | {"deleted": np.random.default_rng(2).random(rows) < 0.05}, RIGHT_KEYS)


def referring(columns: Columns, right_keys: int) -> Mapping[str, Columns]:
    """Convert records to changes of left rows that refer to this many right rows; 1 in 50 changes a right row."""
    is_right = np.random.default_rng(1).random(len(columns["order"])) < 0.02
    left, right = chosen(columns, ~is_right), chosen(columns, is_right)
    changed = np.random.default_rng(4).integers(0, right_keys, int(is_right.sum()))
    return {
        "left": left | {"refers": named("r", references(left, right_keys))},
        "right": right | {"key": named("r", changed)},
    }


def over_state(keys: int, sizes: Sequence[int], spread: str) -> Columns:
    """Return records that contain each of this many keys once, and then repeat keys.

    All records lie within four minutes, so that no session and no window of some minutes closes.

    Args:
        keys: The keys.
        sizes: The number of further records, batch by batch.
        spread: The repeated keys: all with equal probability (`UNIFORM`), some more often (`SKEWED`), or the same
            number of evenly spread keys, regardless of the total (`AS_MANY`).
    """
    numbers, further = np.random.default_rng(5), sum(sizes)
    again = {
        AS_MANY: lambda: numbers.integers(0, min(BUSY, keys), further) * max(1, keys // BUSY),
        UNIFORM: lambda: numbers.integers(0, keys, further),
        SKEWED: lambda: skewed(numbers, further, keys),
    }[spread]()
    order = np.arange(keys + len(again))
    return {
        "order": order,
        "time": START_MS + order * FILLED_MS // len(order),
        "key": named("k", np.concatenate([numbers.permutation(keys), again])),
        "amount": numbers.integers(0, 1000, len(order)),
    }


def on_two_sides(columns: Columns) -> Mapping[str, Columns]:
    """Convert records to changes of two tables, without deletes."""
    is_left = np.random.default_rng(1).random(len(columns["order"])) < 0.5
    both = _none_deleted(columns)
    return {"left": chosen(both, is_left), "right": chosen(both, ~is_left)}


def on_referring_sides(columns: Columns) -> Mapping[str, Columns]:
    """Convert records to changes of two tables, without deletes; 10 left keys refer to each right key."""
    return referring(_none_deleted(columns), max(1, len(np.unique(columns["key"])) // 10))


def _none_deleted(columns: Columns) -> Columns:
    return columns | {"deleted": np.zeros(len(columns["order"]), dtype=bool)}


def arrow(columns: Columns) -> pa.Table:
    """Return columns as an Arrow table."""
    return pa.table({name: pa.array(column) for name, column in columns.items()})


GRACE, GAP, SIZE, REACH = "1 minute", "5 minutes", "10 minutes", "1 minute"
ARRIVED: Mapping[str, Any] = {"key": "key", "timestamp": "time", "order": "order"}
WINDOWED = ("key", "window", "value")


def joined(
    operator: Callable[..., DataFrame],
    inputs: Frames,
    further: Mapping[str, Any],
    *,
    value: Any,
    right_value: Any = None,
    **options: Any,
) -> DataFrame:
    """Declare a join of `left` and `right` with the operators of this commit or of `EARLIER`.

    Args:
        operator: The operator.
        inputs: All inputs of the operator, by name.
        further: `TODAY` or `EARLIER`.
        value: The left value.
        right_value: The value column of the right input; by default the value column of the left input.
        options: Additional options of the operator.
    """
    left, right = inputs["left"], inputs["right"]
    if further is EARLIER:
        return operator(left, right, value=value, right_value=right_value, **ARRIVED, **options, **further)
    from streamproof.spark_impl.inputs import table

    other = value if right_value is None else right_value
    return operator(table(left, value=value, **ARRIVED), table(right, value=other, **ARRIVED), **options, **further)


def session_windows_case() -> Case:
    """Sum sessions, each emitted once, compared with Spark's `session_window`."""
    from streamproof.spark_impl.session_windows import native_session_windows, session_windows

    options: dict[str, Any] = {"key": "key", "timestamp": "time", "value": "amount", "gap": GAP, "grace": GRACE}
    return Case(
        events,
        lambda inputs, grouped: session_windows(
            inputs["events"],
            order="order",
            aggregate="sum",
            emit="close",
            late="own",
            **grouped,
            **options,
        ),
        lambda inputs: native_session_windows(inputs["events"], aggregate="sum", **options),
        "Spark's session_window",
        streaming=True,
        same=WINDOWED,
    )


def window_aggregate_case() -> Case:
    """Sum fixed windows, which late records update for a minute, compared with Spark's `window` with a delay of a
    minute.
    """
    from streamproof.spark_impl.window_aggregate import window_aggregate
    from streamproof.spark_impl.windowed_table import native_windowed_table

    def by_spark(inputs: Frames) -> DataFrame:
        from streamproof.spark_impl.inputs import stream  # missing in the earlier commit

        events = stream(inputs["events"], value="amount", **ARRIVED)
        return native_windowed_table(events, size=SIZE, grace=GRACE, aggregate="sum")

    return Case(
        events,
        lambda inputs, grouped: window_aggregate(
            inputs["events"],
            value="amount",
            size=SIZE,
            retention=GRACE,
            aggregate="sum",
            late="update",
            **grouped,
            **ARRIVED,
        ),
        by_spark,
        "Spark's window",
        streaming=True,
        same=WINDOWED,
    )


def range_aggregate_case() -> Case:
    """Sum the last ten minutes at each record, compared with SQL's RANGE.

    The records arrive in order of time, because otherwise SQL's range would include records that arrive later.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F
    from streamproof.spark_impl.range_aggregate import range_aggregate

    def in_sql(inputs: Frames) -> DataFrame:
        ranges = Window.partitionBy("key").orderBy("time").rangeBetween(-600_000, Window.currentRow)
        timestamp = F.timestamp_millis("time").alias("timestamp")
        return inputs["events"].select("key", F.sum("amount").over(ranges).alias("value"), timestamp)

    return Case(
        events_in_order,
        lambda inputs, grouped: range_aggregate(
            inputs["events"],
            value="amount",
            preceding=SIZE,
            retention=GRACE,
            aggregate="sum",
            **grouped,
            **ARRIVED,
        ),
        in_sql,
        "batch SQL: RANGE",
        result="stream",
        same=("key", "value", "timestamp"),
    )


def stream_stream_join_case() -> Case:
    """Left join within a minute, compared with Spark's stream-stream join."""
    from streamproof.spark_impl.stream_stream_join import native_stream_stream_join, stream_stream_join

    options: dict[str, Any] = {
        "before": REACH,
        "after": REACH,
        "grace": GRACE,
        "join": "left",
        "emit": "close",
    }
    return Case(
        two_streams,
        lambda inputs, grouped: joined(stream_stream_join, inputs, grouped, value="amount", **options),
        lambda inputs: joined(native_stream_stream_join, inputs, TODAY, value="amount", **options),
        "Spark's stream-stream join",
        result="stream",
        streaming=True,
        same=("key", "value", "timestamp"),
        # Not `min`, Spark's default, with which the slower input sets the clock, and some windows stay open at the end.
        settings={"spark.sql.streaming.multipleWatermarkPolicy": "max"},
    )


def stream_table_join_case() -> Case:
    """Look up a table that arrived before, compared with Spark's stream-static join."""
    from streamproof.spark_impl.stream_table_join import native_stream_table_join, stream_table_join

    return Case(
        stream_and_table,
        lambda inputs, grouped: joined(stream_table_join, inputs, grouped, value="amount"),
        lambda inputs: joined(
            native_stream_table_join, {**inputs, "right": inputs["still right"]}, TODAY, value="amount"
        ),
        "Spark's stream-static join",
        result="stream",
        streaming=True,
        same=("key", "value", "timestamp"),
    )


def table_table_join_case() -> Case:
    """Join two tables, all rows of both, compared with a batch join of each key's last rows."""
    from pyspark.sql import functions as F
    from streamproof.spark_impl.table_table_join import table_table_join

    def in_sql(inputs: Frames) -> DataFrame:
        left, right = (
            last_rows(inputs[side], "amount").withColumnRenamed("amount", side) for side in ("left", "right")
        )
        return left.join(right, "key", "full_outer").select("key", F.struct("left", "right").alias("value"))

    return Case(
        two_tables,
        lambda inputs, grouped: joined(table_table_join, inputs, grouped, value=unless_deleted("amount"), join="outer"),
        in_sql,
        "batch SQL: each key's last rows, joined",
    )


def table_aggregate_case() -> Case:
    """Sum a table by a group, compared with a batch sum of each key's last row."""
    from pyspark.sql import functions as F
    from streamproof.spark_impl.table_aggregate import table_aggregate

    def in_sql(inputs: Frames) -> DataFrame:
        rows = inputs["events"].groupBy("key").agg(F.max_by(F.struct("group", "amount"), "order").alias("row"))
        return rows.groupBy(F.col("row.group").alias("group")).agg(F.sum("row.amount").alias("value"))

    return Case(
        grouped_table,
        lambda inputs, grouped: table_aggregate(
            inputs["events"], value="amount", group_by="group", aggregate="sum", **grouped, **ARRIVED
        ),
        in_sql,
        "batch SQL: each key's last row, summed",
        same=("group", "value"),
    )


def windowed_table_case() -> Case:
    """Join two windowed sums, emitted at every change, compared with a batch join of two windowed sums."""
    from pyspark.sql import functions as F
    from streamproof.spark_impl.windowed_table import windowed_table

    def in_sql(inputs: Frames) -> DataFrame:
        window = F.window(F.timestamp_millis("time"), SIZE).alias("window")
        left, right = (
            inputs[side].groupBy("key", window).agg(F.sum("amount").alias(side)) for side in ("left", "right")
        )
        rows = left.join(right, ["key", "window"], "left")
        return rows.select("key", "window", F.struct("left", "right").alias("value"))

    return Case(
        two_streams,
        lambda inputs, grouped: joined(
            windowed_table,
            inputs,
            grouped,
            value="amount",
            size=SIZE,
            grace=GRACE,
            aggregate="sum",
            with_="windowed_table",
            join="left",
        ),
        in_sql,
        "batch SQL: two windowed sums, joined",
        same=WINDOWED,
    )


def foreign_key_join_case() -> Case:
    """Join rows with the rows that they refer to, compared with a batch join of each key's last rows."""
    from pyspark.sql import functions as F
    from streamproof.spark_impl.foreign_key_join import foreign_key_join

    return Case(
        referring_tables,
        lambda inputs, grouped: joined(
            foreign_key_join,
            inputs,
            grouped,
            value=unless_deleted("refers", "amount"),
            right_value=unless_deleted("amount"),
            foreign_key=F.col("refers"),
            join="left",
        ),
        lambda inputs: in_batch_by_foreign_key(inputs).select("key", "value"),
        "batch SQL: each key's last rows, joined",
    )


def one_to_many_join_case() -> Case:
    """Join the same rows by KIP-213's first design, whose result has both keys."""
    from pyspark.sql import functions as F
    from streamproof.spark_impl.one_to_many_join import one_to_many_join

    return Case(
        referring_tables,
        lambda inputs, grouped: joined(
            one_to_many_join,
            inputs,
            grouped,
            value=unless_deleted("refers", "amount"),
            right_value=unless_deleted("amount"),
            foreign_key=F.col("refers"),
            join="left",
        ),
        in_batch_by_foreign_key,
        "batch SQL: each key's last rows, joined",
        same=("refers", "key", "value"),
    )


def unless_deleted(*names: str) -> Any:
    """Return a row's value, a column or a struct of columns, with null for a deleted row."""
    from pyspark.sql import functions as F

    return F.when(~F.col("deleted"), F.struct(*names) if len(names) > 1 else F.col(names[0])).alias("value")


def last_rows(changes: DataFrame, *names: str) -> DataFrame:
    """Return each key's last row, without deleted rows."""
    from pyspark.sql import functions as F

    last = changes.groupBy("key").agg(F.max_by(F.struct("deleted", *names), "order").alias("row"))
    return last.filter("NOT row.deleted").select("key", *(F.col(f"row.{name}").alias(name) for name in names))


def in_batch_by_foreign_key(inputs: Frames) -> DataFrame:
    """Join each left key's last row with the last row that it refers to."""
    from pyspark.sql import functions as F

    left = last_rows(inputs["left"], "refers", "amount")
    right = last_rows(inputs["right"], "amount").select(F.col("key").alias("refers"), F.col("amount").alias("right"))
    value = F.struct(F.struct("refers", "amount").alias("left"), "right")
    return left.join(right, "refers", "left").select("refers", "key", value.alias("value"))


CASES: Mapping[str, Callable[[], Case]] = {
    "session_windows": session_windows_case,
    "window_aggregate": window_aggregate_case,
    "range_aggregate": range_aggregate_case,
    "stream_stream_join": stream_stream_join_case,
    "stream_table_join": stream_table_join_case,
    "table_table_join": table_table_join_case,
    "table_aggregate": table_aggregate_case,
    "windowed_table": windowed_table_case,
    "foreign_key_join": foreign_key_join_case,
    "one_to_many_join": one_to_many_join_case,
}
FILLED: Mapping[str, Callable[[Columns], Mapping[str, Columns]]] = {
    "session_windows": lambda columns: {"events": columns},
    "table_table_join": on_two_sides,
    "foreign_key_join": on_referring_sides,
}
"""The operators that are measured over a state of many keys, and the conversion of records to their inputs."""
