"""Table-table joins on Spark: rows of two tables with the same key, kept up to date by changes of either.

Source: join semantics, "KTable-KTable Join".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from ..reference.joins import Join, TableTableJoin
from .columns import ColumnLike
from .keyed import Arrived, Key, Logic, Told, changed, declaration_of, joined, joined_type, keyed, two_sides

Side = tuple[Any, int] | None
"""A row of one side: its value and timestamp (ms), if there is one."""


def table_table_join(
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
    join: Join = "inner",
    report_dropped: bool = False,
    state_groups: int | None = None,
    logic: Callable[[TableTableJoin], TableTableLogic] | None = None,
) -> DataFrame:
    """Join two tables by key, and give the changelog of the joined table.

    Args:
        left: The changes of one table, streaming or batch: a row whose value is null deletes its key.
        right: The changes of the other.
        key: One or several columns. A row in which one of them is null is dropped.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. It only stamps the
            changes: of two rows of a key the one that arrives last stands.
        value: The column that holds a row's value; several can be put into a struct.
        order: The order of arrival across both inputs, such as an offset; without it a batch is taken by timestamp.
        right_key: The right input's key, where it isn't called as on the left; likewise the other `right_…`.
        right_timestamp: Its event time.
        right_value: Its value.
        right_order: Its order of arrival.
        join: `inner`, `left` or `outer`.
        report_dropped: Whether rows that were dropped are told too.
        state_groups: As in `keyed`: None keeps one state for each key. The state is as large as the tables.
        logic: Makes what decides, of a declaration; another than `TableTableLogic` for seeded bugs.

    Returns:
        As `keyed`, without windows: `value struct<left, right>` is null in a tombstone. A streaming result is in append
        mode.

    Raises:
        BadInput: A column is missing or of the wrong type, the sides' keys clash, or there is no such join.

    Source: join semantics, "KTable-KTable Join".
    """
    declared = TableTableJoin(join)
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
    kept = T.StructType().add("left", types[0]).add("left_timestamp", "long")
    return keyed(
        inputs,
        (logic or TableTableLogic)(declared),
        kept_type=kept.add("right", types[1]).add("right_timestamp", "long"),
        value_type=joined_type(*types),
        state_groups=state_groups,
        report_dropped=report_dropped,
        declaration=declaration_of("table_table_join", declared),
        timed=False,
    )


class TableTableLogic(Logic[dict[str, Side]]):
    """What happens to the two rows of a key."""

    def __init__(self, join: TableTableJoin) -> None:
        self.join = join

    def empty(self) -> dict[str, Side]:
        """No row on either side."""
        return {"left": None, "right": None}

    def pack(self, kept: dict[str, Side]) -> tuple[Any, ...] | None:
        """Both rows, if there is one."""
        if kept["left"] is None and kept["right"] is None:
            return None
        return (*(kept["left"] or (None, None)), *(kept["right"] or (None, None)))

    def unpack(self, fields: tuple[Any, ...]) -> dict[str, Side]:
        """Both rows again."""
        left, left_timestamp, right, right_timestamp = fields
        return {
            "left": None if left is None else (left, left_timestamp),
            "right": None if right is None else (right, right_timestamp),
        }

    def take(self, key: Key, kept: dict[str, Side], row: Arrived, clock: int) -> list[Told]:
        """Change a row, and tell the joined one where the other side, or what was told before, calls for it."""
        assert row.timestamp is not None
        old, other = kept[row.side], kept["right" if row.side == "left" else "left"]
        kept[row.side] = None if row.value is None else (row.value, row.timestamp)
        if not self.tells(row, old, other):
            return []
        stamp = row.timestamp if other is None else max(row.timestamp, other[1])
        return [changed(row, self.result(kept), stamp)]

    def tells(self, row: Arrived, old: Side, other: Side) -> bool:
        """Whether a change is told: one that meets no row of the other side may have nothing to say."""
        if self.join.join == "inner" or (self.join.join == "left" and row.side == "right"):
            return other is not None
        return old is not None or row.value is not None or other is not None

    def result(self, kept: dict[str, Side]) -> Any:
        """Give the joined value, or None where the join has none."""
        left, right = kept["left"], kept["right"]
        missing = {
            "inner": left is None or right is None,
            "left": left is None,
            "outer": left is None and right is None,
        }
        return None if missing[self.join.join] else joined(left and left[0], right and right[0])
