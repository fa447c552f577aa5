"""Stream-table joins on Spark: each record of a stream looks up the table's row of its key, as it is at that moment.

Source: join semantics, "KStream-KTable Joins".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from ..reference.joins import StreamTableJoin
from .columns import ColumnLike
from .keyed import Arrived, Key, Logic, Told, changed, dropped, joined, joined_type, keyed, two_sides


def stream_table_join(
    left: DataFrame,
    right: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike,
    order: ColumnLike | None = None,
    right_key: ColumnLike | Sequence[ColumnLike] | None = None,
    right_timestamp: ColumnLike | None = None,
    right_value: ColumnLike | None = None,
    right_order: ColumnLike | None = None,
    join: Literal["left", "inner"] = "left",
    null_key: Literal["drop", "keep"] = "drop",
    report_dropped: bool = False,
    state_groups: int | None = None,
    logic: Callable[[StreamTableJoin], StreamTableLogic] | None = None,
) -> DataFrame:
    """Join a stream with a table by key: the stream alone drives.

    Args:
        left: The stream, streaming or batch. A record whose value is null is dropped.
        right: The changes of the table: a row whose value is null deletes its key, and the last to arrive stands.
        key: One or several columns.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. The stream's stamps
            the result.
        value: The column that holds a row's value; several can be put into a struct.
        order: The order of arrival across both inputs, such as an offset; without it a batch is taken by timestamp.
        right_key: The right input's key, where it isn't called as on the left; likewise the other `right_…`.
        right_timestamp: Its event time.
        right_value: Its value.
        right_order: Its order of arrival.
        join: `left` tells every record, `inner` those that find a row.
        null_key: `drop` records of the stream without a key, or `keep` them: the left join tells them at once.
        report_dropped: Whether rows that were dropped are told too.
        state_groups: As in `keyed`: None keeps one state for each key. The state is as large as the table.
        logic: Makes what decides, of a declaration; another than `StreamTableLogic` for seeded bugs.

    Returns:
        As `keyed`, without windows: `value struct<left, right>`. A streaming result is in append mode.

    Raises:
        BadInput: A column is missing or of the wrong type, the sides' keys clash, or there is no such join.

    Source: join semantics, "KStream-KTable Joins".
    """
    declared = StreamTableJoin(join, null_key)
    inputs = two_sides(
        left,
        right,
        key=key,
        timestamp=timestamp,
        value=value,
        order=order,
        right_key=right_key,
        right_timestamp=right_timestamp,
        right_value=right_value,
        right_order=right_order,
    )
    types = [one.value_type for one in inputs]
    return keyed(
        inputs,
        (logic or StreamTableLogic)(declared),
        kept_type=T.StructType().add("row", types[1]),
        value_type=joined_type(*types),
        state_groups=state_groups,
        report_dropped=report_dropped,
        timed=False,
    )


class StreamTableLogic(Logic[list[Any]]):
    """What happens to a key: its row of the table is kept, as a list of one value."""

    def __init__(self, join: StreamTableJoin) -> None:
        self.join = join
        self.keeps_null_keys = join.null_key == "keep"

    def empty(self) -> list[Any]:
        """No row."""
        return [None]

    def pack(self, kept: list[Any]) -> tuple[Any, ...] | None:
        """The row, if there is one."""
        return None if kept[0] is None else (kept[0],)

    def unpack(self, fields: tuple[Any, ...]) -> list[Any]:
        """The row again."""
        return list(fields)

    def take(self, key: Key, kept: list[Any], row: Arrived, clock: int) -> list[Told]:
        """Take a row of the table, or look one up for a record of the stream."""
        without_key = any(part is None for part in key)
        if without_key and (row.side == "right" or self.join.join == "inner"):
            return [dropped(row, "null key")]
        if row.side == "right":
            kept[0] = row.value
            return []
        if row.value is None:
            return [dropped(row, "null value")]
        if kept[0] is None and self.join.join == "inner":
            return []
        return [changed(row, joined(row.value, kept[0]), row.timestamp)]
