"""Table-table joins on Spark: rows of two tables with the same key; changes of either table update the result.

Source: Kafka Streams Join Semantics, "KTable-KTable Join".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from ..reference.definitions.joins import JoinKind, TableTableJoin
from .runtime.inputs import JoinInputLike, joined_type, two_sides
from .runtime.keyed import InitialState, declaration_of, keyed
from .runtime.logic import Arrived, Key, Logic, LogicOutput, changed, joined

StoredSide = tuple[Any, int] | None
"""A row of one side: its value and timestamp (ms), if any."""


def table_table_join(
    left: JoinInputLike,
    right: JoinInputLike,
    *,
    join: JoinKind = "inner",
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[TableTableJoin], TableTableLogic] | None = None,
) -> DataFrame:
    """Join two tables by key, and return the changelog of the joined table.

    Args:
        left: A table; see `inputs.table`.
        right: The other table.
        join: `inner`, `left` or `outer`.
        report_dropped: Whether the changelog also contains dropped rows.
        state_groups: As in `keyed`. The state is as large as the tables.
        initial_state: As in `keyed`.
        logic: Makes the logic that processes a key's rows, by default `TableTableLogic`; mutation testing passes logic
            with a bug.

    Returns:
        The columns of `keyed`'s changelog, without windows: `value struct<left, right>` is null in a tombstone. A
        streaming result is in append mode.

    Raises:
        BadInput: A column is missing or of the wrong type, the sides' keys or orders can't be compared, or the join is
            unknown.

    Source: Kafka Streams Join Semantics, "KTable-KTable Join".
    """
    declared = TableTableJoin(join)
    inputs = two_sides(left, right)
    types = [one.value_type for one in inputs]
    state = T.StructType().add("left", types[0]).add("left_timestamp", "long")
    return keyed(
        inputs,
        (logic or TableTableLogic)(declared),
        state_type=state.add("right", types[1]).add("right_timestamp", "long"),
        value_type=joined_type(*types),
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        declaration=declaration_of("table_table_join", declared),
        timed=False,
    )


class TableTableLogic(Logic[dict[str, StoredSide]]):
    """The logic of a key; the state is the key's row of each table."""

    def __init__(self, join: TableTableJoin) -> None:
        self.join = join

    def empty(self) -> dict[str, StoredSide]:
        """Return a state without rows."""
        return {"left": None, "right": None}

    def pack(self, state: dict[str, StoredSide]) -> tuple[Any, ...] | None:
        """Pack both rows, if any."""
        if state["left"] is None and state["right"] is None:
            return None
        return (*(state["left"] or (None, None)), *(state["right"] or (None, None)))

    def unpack(self, fields: tuple[Any, ...]) -> dict[str, StoredSide]:
        """Both rows again."""
        left, left_timestamp, right, right_timestamp = fields
        return {
            "left": None if left is None else (left, left_timestamp),
            "right": None if right is None else (right, right_timestamp),
        }

    def take(self, key: Key, state: dict[str, StoredSide], row: Arrived, clock: int) -> list[LogicOutput]:
        """Change a row, and emit the joined row, or a tombstone."""
        assert row.timestamp is not None
        old, other = state[row.side], state["right" if row.side == "left" else "left"]
        state[row.side] = None if row.value is None else (row.value, row.timestamp)
        if not self.emits(row, old, other):
            return []
        stamp = row.timestamp if other is None else max(row.timestamp, other[1])
        return [changed(row, self.result(state), stamp)]

    def emits(self, row: Arrived, old: StoredSide, other: StoredSide) -> bool:
        """Return whether a change emits a result; without a row on the other side, it may emit nothing."""
        if self.join.join == "inner" or (self.join.join == "left" and row.side == "right"):
            return other is not None
        return old is not None or row.value is not None or other is not None

    def result(self, state: dict[str, StoredSide]) -> Any:
        """Return the joined value, or None for a tombstone."""
        left, right, join = state["left"], state["right"], self.join.join
        if (left is None and (right is None or join != "outer")) or (right is None and join == "inner"):
            return None
        return joined(left and left[0], right and right[0])
