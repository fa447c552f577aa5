"""Stream-table joins on Spark: each record of a stream looks up the current row of its key in a table.

Source: Kafka Streams Join Semantics, "KStream-KTable Joins".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.core.errors import BadInput
from ..reference.definitions.joins import StreamTableJoin
from .runtime.inputs import JoinInputLike, OperatorInput, any_null, joined_type, require_same, two_sides
from .runtime.keyed import InitialState, declaration_of, keyed
from .runtime.logic import Arrived, Key, Logic, LogicOutput, changed, dropped, joined
from .runtime.native import changelog, key_names


def stream_table_join(
    left: JoinInputLike,
    right: JoinInputLike,
    *,
    join: Literal["left", "inner"] = "left",
    null_key: Literal["drop", "keep"] = "drop",
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[StreamTableJoin], StreamTableLogic] | None = None,
) -> DataFrame:
    """Join a stream with a table by key; only stream records emit results.

    Args:
        left: The stream; see `inputs.table`. The result has the stream's event time.
        right: The table; a stream record looks up the current row of its key.
        join: `left` emits every record, `inner` only records with a row.
        null_key: `drop` stream records without a key, or `keep` them: the left join emits them at once.
        report_dropped: Whether the changelog also contains dropped rows.
        state_groups: As in `keyed`. The state is as large as the table.
        initial_state: As in `keyed`.
        logic: Makes the logic that processes a key's rows, by default `StreamTableLogic`; mutation testing passes logic
            with a bug.

    Returns:
        The columns of `keyed`'s changelog, without windows: `value struct<left, right>`. A streaming result is in
        append mode.

    Raises:
        BadInput: A column is missing or of the wrong type, the sides' keys or orders can't be compared, or the join is
            unknown.

    Source: Kafka Streams Join Semantics, "KStream-KTable Joins".
    """
    declared = StreamTableJoin(join, null_key)
    inputs = two_sides(left, right)
    types = [one.value_type for one in inputs]
    return keyed(
        inputs,
        (logic or StreamTableLogic)(declared),
        state_type=T.StructType().add("row", types[1]),
        value_type=joined_type(*types),
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        declaration=declaration_of("stream_table_join", declared),
        timed=False,
    )


def native_stream_table_join(
    left: JoinInputLike,
    right: JoinInputLike,
    *,
    join: Literal["left", "inner"] = "left",
    null_key: Literal["drop", "keep"] = "drop",
) -> DataFrame:
    """Join a stream with a static table by Spark's own stream-static join, which has no state.

    The result satisfies the laws of `stream_table_join` if all changes of a key's row come before the records of that
    key. The result contains no dropped records, and the results of a batch are in no order; sort by `cause` to restore
    the order.

    The smallest history that violates the laws: a stream record, then the row of its key. `stream_table_join` emits the
    record with null, because the row hasn't arrived; Spark knows the whole table from the start, and emits the record
    with the row.

    Args:
        left: The stream; see `inputs.table`. The stream's order of arrival becomes the `cause`.
        right: The table, as a batch DataFrame of its changes. A key's last change counts, by order of arrival; the
            default order is event time. Spark reads the table again in every batch, so the next batch sees new files.
        join: `left` emits every record, `inner` only records with a row.
        null_key: `drop` stream records without a key, or `keep` them: the left join emits them.

    Returns:
        The columns of `stream_table_join` without `place`; `ordinal` is 0.

    Raises:
        BadInput: Any error of `stream_table_join`, or the right input is streaming.

    Source: Kafka Streams Join Semantics, "KStream-KTable Joins"; Spark's guide, "Stream-static Joins".
    """
    declared = StreamTableJoin(join, null_key)
    stream, changes = two_sides(left, right)
    if changes.frame.isStreaming:
        raise BadInput(
            "right: it is a stream, but Spark's own join with a table looks up a static one: give the table's "
            "changes as a batch DataFrame, or use stream_table_join"
        )
    require_same(stream, changes)
    names, right_names = key_names(stream.keys, "left"), key_names(changes.keys, "right")
    same = [F.col(name) == F.col(other) for name, other in zip(names, right_names, strict=True)]
    joined_rows = _records(stream, names, declared).join(_present_rows(changes, right_names), same, declared.join)
    return changelog(
        joined_rows,
        [(field.name, name) for name, (_, field) in zip(names, stream.keys, strict=True)],
        value=F.struct("left", "right"),
        timestamp=F.col("at"),
        cause=F.col("cause"),
    )


def _records(stream: OperatorInput, names: Sequence[str], join: StreamTableJoin) -> DataFrame:
    """Return the records of the stream that look up the table, with their key columns renamed."""
    without_key = any_null([column for column, _ in stream.keys])
    dropped_key = without_key if join.null_key == "drop" or join.join == "inner" else F.lit(False)
    return stream.frame.filter(~dropped_key & stream.value.isNotNull() & stream.time.isNotNull()).select(
        *(column.alias(name) for name, (column, _) in zip(names, stream.keys, strict=True)),
        F.timestamp_millis(F.unix_millis(stream.time)).alias("at"),
        stream.order.alias("cause"),
        stream.value.alias("left"),
    )


def _present_rows(changes: OperatorInput, names: Sequence[str]) -> DataFrame:
    """Return the rows of a table after all its changes, with their key columns renamed."""
    return (
        changes.frame.filter(~any_null([column for column, _ in changes.keys]) & changes.time.isNotNull())
        .select(
            *(column.alias(name) for name, (column, _) in zip(names, changes.keys, strict=True)),
            F.struct(changes.order.alias("order"), changes.time.alias("time")).alias("place"),
            F.struct(changes.value.alias("value")).alias("row"),
        )
        .groupBy(*names)
        .agg(F.max_by("row", "place").alias("row"))
        .select(*names, F.col("row.value").alias("right"))
        .filter(F.col("right").isNotNull())
    )


class StreamTableLogic(Logic[list[Any]]):
    """The logic of a key; the state is the key's row of the table, as a list of one value."""

    def __init__(self, join: StreamTableJoin) -> None:
        self.join = join
        self.keeps_null_keys = join.null_key == "keep"

    def empty(self) -> list[Any]:
        """No row."""
        return [None]

    def pack(self, state: list[Any]) -> tuple[Any, ...] | None:
        """Pack the row, if any."""
        return None if state[0] is None else (state[0],)

    def unpack(self, fields: tuple[Any, ...]) -> list[Any]:
        """The row again."""
        return list(fields)

    def take(self, key: Key, state: list[Any], row: Arrived, clock: int) -> list[LogicOutput]:
        """Change the row of the table, or look up the row for a stream record."""
        if None in key and (row.side == "right" or self.join.join == "inner"):
            return [dropped(row, "null key")]
        if row.side == "right":
            state[0] = row.value
            return []
        if row.value is None:
            return [dropped(row, "null value")]
        if state[0] is None and self.join.join == "inner":
            return []
        return [changed(row, joined(row.value, state[0]), row.timestamp)]
