"""One-to-many joins on Spark: each left row is stored at its right key; the result has both keys.

The join has two stages. The first stage stores the foreign key of each left row. The second stage stores, for each
foreign key, the right row and its left rows. Source: KIP-213, "Jan Filipiak's Original Proposal", "Algorithm" and "Step
by Step".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.core.errors import BadInput
from ..reference.definitions.joins import OneToManyJoin
from .foreign_keys.referring import (
    ReferredLogic,
    ReferredState,
    ReferringLogic,
    ReferringTables,
    ValueAt,
    referring_tables,
)
from .runtime.columns import ColumnLike
from .runtime.inputs import JoinInputLike
from .runtime.keyed import InitialState, StageOf, declaration_of, staged
from .runtime.logic import TOMBSTONE, UPDATE, Arrived, Key, LogicOutput, changed, joined, key_of
from .runtime.stages import SEEN, To, dropped_before, parts


def one_to_many_join(
    left: JoinInputLike,
    right: JoinInputLike,
    *,
    foreign_key: ColumnLike | Sequence[ColumnLike],
    join: Literal["inner", "left"] = "inner",
    null_foreign_key: Literal["ignore", "keep"] = "ignore",
    protocol: Literal["kip", "answer"] = "kip",
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[OneToManyJoin], OneToManyStages] | None = None,
) -> DataFrame:
    """Join each row of a table with the referenced row of another table; return the changelog by both keys.

    Without an order of arrival, a right row comes before a left row with the same timestamp.

    Args:
        left: The referring table; see `inputs.table`.
        right: The referenced table.
        foreign_key: The right key that a left row refers to, such as `F.col("value.artist")`: columns of the right
            key's types. If a column is null, the row has no foreign key; a tombstone's foreign key is ignored.
        join: `inner` or `left`.
        null_foreign_key: `ignore` or `keep`; see `OneToManyJoin`.
        protocol: `kip` or `answer`; see `OneToManyJoin`.
        report_dropped: Whether the changelog also contains dropped rows; a dropped right row has no keys.
        state_groups: The number of groups of keys in each stage; see `keyed`. The state is as large as both tables, and
            stores each left row's foreign key once more. The left rows of one foreign key are read and written
            together.
        initial_state: An initial state for each stage; see `keyed`.
        logic: Makes the logic of each stage, by default `one_to_many_stages`; mutation testing passes logic with a bug.

    Returns:
        The columns of `keyed`'s changelog, without windows, by both keys: the columns of `foreign_key` (null for a kept
        row without a foreign key), then the columns of `key`. `value struct<left, right>` is null in a tombstone. A
        left row that changes its foreign key emits a tombstone under the old foreign key. A streaming result is in
        append mode.

    Raises:
        BadInput: A column is missing or of the wrong type, the foreign key and the right key have different types, both
            keys have a column of the same name, or the join or an option is unknown.

    Source: KIP-213, "Jan Filipiak's Original Proposal".
    """
    declared = OneToManyJoin("foreign_key", join, null_foreign_key, protocol)
    tables = referring_tables(left, right, foreign_key)
    _require_other_names(tables)
    emitted = staged(
        _stages(tables, (logic or one_to_many_stages)(declared)),
        value_type=T.StructType([*tables.key_fields, T.StructField("joined", tables.result_type)]),
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        declaration=declaration_of("one_to_many_join", declared, foreign_key=tables.foreign_key),
    )
    return _under_both_keys(tables, emitted)


def _require_other_names(tables: ReferringTables) -> None:
    key_names = [field.name for _, field in tables.lefts.keys]
    for _, field in tables.refers:
        if field.name in key_names:
            raise BadInput(
                f"foreign_key: {field.name!r} is a column of the key too, and the result has both: give either an alias"
            )


def _stages(tables: ReferringTables, stages: OneToManyStages) -> list[StageOf]:
    left_row = T.StructType([*tables.key_fields, tables.left_field, T.StructField("timestamp", T.LongType())])
    state = T.StructType().add("right", tables.rights.value_type).add("timestamp", "long")
    return [
        StageOf(
            stages.left,
            [tables.left_rows],
            tables.key_fields,
            T.StructType(tables.to_fields),
            *one_to_many_hops(len(tables.refers)),
            T.StructType([*SEEN, tables.left_field, *tables.key_fields]),
        ),
        StageOf(
            stages.right,
            [tables.rights],
            [field for _, field in tables.refers],
            state.add("rows", T.ArrayType(left_row)),
        ),
    ]


def _under_both_keys(tables: ReferringTables, emitted: DataFrame) -> DataFrame:
    own = zip(tables.key_fields, tables.lefts.keys, strict=True)
    return emitted.select(
        *(field.name for _, field in tables.refers),
        *(F.col(f"value.{at.name}").alias(field.name) for at, (_, field) in own),
        "window",
        F.col("value.joined").alias("value"),
        *("timestamp", "change", "reason", "cause", "ordinal", "place"),
    )


class LeftLogic(ReferringLogic):
    """The logic of a left row: it stores the row's foreign key, if any, and moves the row to another foreign key."""

    def __init__(self, join: OneToManyJoin) -> None:
        self.join = join

    def take(self, key: Key, state: list[Key], row: Arrived, clock: int) -> list[LogicOutput]:
        """Change the row; return the messages to the old and the new foreign key."""
        new, *names = row.value
        before, after = (state[0] if state else None), self.foreign_key_at(new, names)
        state[:] = [] if after is None else [after]
        return [changed(row, (*to, left), row.timestamp) for to, left in self.moves(before, after, new)]

    def foreign_key_at(self, value: Any, names: Sequence[Any]) -> Key | None:
        """Return the foreign key at which a row is stored, or None."""
        if value is None:
            return None
        return parts(names) or ((None,) * len(names) if self.join.keeps_null else None)

    def moves(self, before: Key | None, after: Key | None, value: Any) -> list[tuple[Key, Any]]:
        """Return the messages to foreign keys: None to the old key, to remove the row; the value to the new key."""
        moves = [] if before is None or before == after else [(before, None)]
        return moves if after is None else [*moves, (after, value)]


class RightLogic(ReferredLogic):
    """The logic of a foreign key: it joins the key's right row with the left rows that refer to the key."""

    stored = ValueAt

    def __init__(self, join: OneToManyJoin) -> None:
        self.join = join

    def take_left(self, key: Key, state: ReferredState, row: Arrived) -> list[LogicOutput]:
        """Process a left row that arrives, changes or leaves."""
        timestamp, reason, left, *left_key = row.value
        if reason is not None:
            return [dropped_before(row, reason, timestamp, (*left_key, None))]
        sender = key_of(left_key)
        if parts(key) is not None:  # store no left row of a null key: no right row looks it up
            self.put(state, sender, None if left is None else ValueAt(left, timestamp))
        if state.right is None and not self.join.answers_all:
            return []
        return [self.result(state, row, sender, left, timestamp)]

    def put(self, state: ReferredState, key: Key, left: ValueAt | None) -> None:
        """Store a left row, or forget it."""
        if left is None:
            state.lefts.pop(key, None)
        else:
            state.lefts[key] = left

    def left_change(self, state: ReferredState, row: Arrived, key: Key, left: ValueAt) -> LogicOutput:
        """Return a stored left row joined with the changed right row, or a tombstone."""
        assert row.timestamp is not None
        return self.result(state, row, key, left.value, max(row.timestamp, left.timestamp))

    def result(self, state: ReferredState, row: Arrived, key: Key, left: Any, timestamp: int) -> LogicOutput:
        """Return a left row joined with the right row, or a tombstone."""
        right, stamp = state.right or (None, timestamp)
        joins = left is not None and (right is not None or self.join.join == "left")
        value = (*key, joined(left, right) if joins else None)
        return LogicOutput(None, None, value, max(timestamp, stamp), UPDATE if joins else TOMBSTONE, None, row.order)


class OneToManyStages(NamedTuple):
    """The logic of each stage."""

    left: LeftLogic
    right: RightLogic


def one_to_many_stages(join: OneToManyJoin) -> OneToManyStages:
    """Return the logic of each stage of a one-to-many join."""
    return OneToManyStages(LeftLogic(join), RightLogic(join))


def one_to_many_hops(width: int) -> tuple[To]:
    """Return how the first stage sends left rows to foreign keys of `width` columns."""
    return (To(width, rest=1, with_sender=True),)
