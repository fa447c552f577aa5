"""Table aggregates on Spark: a table aggregated by a column that is not its key.

The operator has two stages. The first stage stores the group and the added value of each row, the second stage the
aggregate of each group. Source: Kafka Streams Join Semantics, "KTable Aggregate".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.definitions.aggregates import AGGREGATES_OF_TABLES, Aggregate, TableAggregate, named_aggregate
from .runtime.columns import ColumnLike, bare, value_and_result
from .runtime.inputs import resolved
from .runtime.keyed import InitialState, StageOf, declaration_of, staged
from .runtime.logic import UPDATE, Arrived, Key, Logic, LogicOutput, changed
from .runtime.stages import SEEN, To, dropped_before, named_columns, numbered, parts, renamed


def table_aggregate(
    events: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    group_by: ColumnLike | Sequence[ColumnLike],
    value: ColumnLike | None = None,
    order: ColumnLike | None = None,
    aggregate: str | Aggregate = "count",
    value_type: str | T.DataType | None = None,
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[TableAggregate], TableAggregateStages] | None = None,
) -> DataFrame:
    """Aggregate a table by a column that is not its key, and return the changelog of the groups.

    When a row changes, its old value is subtracted from its old group, and its new value is added to its new group. If
    both groups are the same, the group is emitted once.

    Args:
        events: The changes of a table, streaming or batch.
        key: The table's key: one or several columns. A row with a null key is dropped.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. A key's last arrival
            counts, regardless of its timestamp.
        group_by: One or several columns. **A row with a null group has no group, so it deletes the key's row**: the
            key's old value is subtracted, and no value is added. In a changelog whose tombstones have a null `value`,
            its fields are null too (`group_by=F.col("value.country")`). If a flag marks deleted rows:
            `F.when(~F.col("deleted"), F.col("country")).alias("country")`.
        value: The column to aggregate; `count` needs no column. `sum` doesn't accept nulls.
        order: The order of arrival, such as an offset; by default a batch is in timestamp order.
        aggregate: `count`, `sum`, `list`, or an `Aggregate` with a subtractor and a `value_type`.
        value_type: The type of the aggregate, as DDL or a DataType; named aggregates don't need it.
        report_dropped: Whether the changelog also contains dropped rows.
        state_groups: The number of groups of keys in each stage; see `keyed`. The state contains the table (for each
            row its group and value) and all groups that ever had a row. A `list` stores its members once more.
        initial_state: An initial state for each stage; see `keyed`.
        logic: Makes the logic of each stage, by default `table_aggregate_stages`; mutation testing passes logic with a
            bug.

    Returns:
        The columns of `keyed`'s changelog, without windows, by the columns of `group_by`. An emptied group has the
        aggregate 0 (`count` and `sum`) or [] (`list`). The timestamp is the group's largest. A dropped row is emitted
        without a group. A streaming result is in append mode.

    Raises:
        BadInput: A column is missing or of the wrong type, or the aggregate can't subtract.

    Source: Kafka Streams Join Semantics, "KTable Aggregate".
    """
    chosen = named_aggregate(aggregate, AGGREGATES_OF_TABLES) if isinstance(aggregate, str) else aggregate
    member, result_type = value_and_result(events, chosen, value, value_type)
    member_type = events.select(member.alias("member")).schema["member"].dataType
    declared = TableAggregate(group_by="group_by", aggregate=chosen, field=None if value is None else "value")
    stages = (logic or table_aggregate_stages)(declared)
    source = resolved(events, key=key, timestamp=timestamp, value=None, order=order)
    groups = named_columns(events, "group_by", group_by)
    row_type = T.StructType(numbered("group", groups)).add("member", member_type)
    row = F.struct(*(column.alias(field.name) for column, field in renamed("group", groups)), member.alias("member"))
    rows = source._replace(keys=renamed("key", source.keys), value=row, value_type=row_type, as_tuples=1)
    sent = T.StructType([*SEEN]).add("taken", member_type).add("added", member_type)
    shown = ", ".join(field.name for _, field in groups)
    return staged(
        [
            StageOf(
                stages.rows,
                [rows],
                [field for _, field in rows.keys],
                row_type,
                *table_aggregate_hops(len(groups)),
                sent.add("takes", "boolean").add("adds", "boolean"),
            ),
            StageOf(
                stages.groups,
                [],
                [field for _, field in groups],
                T.StructType().add("aggregate", result_type).add("largest", "long"),
            ),
        ],
        value_type=result_type,
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        declaration=declaration_of("table_aggregate", declared, group_by=shown),
    )


class InGroup(NamedTuple):
    """The group of a row, and the value that the row adds to its group."""

    group: Key
    member: Any


class RowLogic(Logic[list[InGroup]]):
    """The logic of a row of the table: it stores the row's added value, if any, and sends changes to the groups."""

    def __init__(self, groups: TableAggregate) -> None:
        self.groups = groups

    def empty(self) -> list[InGroup]:
        """In no group."""
        return []

    def pack(self, state: list[InGroup]) -> tuple[Any, ...] | None:
        """Pack the group and the added value, if the row is in a group."""
        return (*state[0].group, state[0].member) if state else None

    def unpack(self, fields: tuple[Any, ...]) -> list[InGroup]:
        """Unpack the group and the value."""
        return [InGroup(tuple(fields[:-1]), fields[-1])]

    def take(self, key: Key, state: list[InGroup], row: Arrived, clock: int) -> list[LogicOutput]:
        """Change the row: send the old value to subtract, and the new value to add."""
        old, new = (state[0] if state else None), self.in_group(row)
        state[:] = [] if new is None else [new]
        return self.sends(row, old, new)

    def in_group(self, row: Arrived) -> InGroup | None:
        """Return the value that a row adds, with its group, or None without a group."""
        *group, member = row.value
        found = parts(group)
        if found is None:
            return None
        self.groups.aggregate.check(member)
        return InGroup(found, member)

    def sends(self, row: Arrived, old: InGroup | None, new: InGroup | None) -> list[LogicOutput]:
        """Return the messages to the old and new group: one message if the group is the same."""
        if old is not None and new is not None and old.group == new.group:
            return [self.message(row, old.group, old, new)]
        emitted = [] if old is None else [self.message(row, old.group, old, None)]
        return emitted if new is None else [*emitted, self.message(row, new.group, None, new)]

    def message(self, row: Arrived, group: Key, old: InGroup | None, new: InGroup | None) -> LogicOutput:
        """Return the message to a group: the value to subtract, and the value to add."""
        sent = (*group, old and old.member, new and new.member, old is not None, new is not None)
        return changed(row, sent, row.timestamp)


class Aggregated(NamedTuple):
    """A group's aggregate and its largest timestamp (ms)."""

    value: Any
    largest: int


class GroupLogic(Logic[list[Aggregated]]):
    """The logic of a group; the state is the group's aggregate, or empty before the first row."""

    keeps_null_keys = True

    def __init__(self, groups: TableAggregate) -> None:
        self.groups = groups

    def empty(self) -> list[Aggregated]:
        """Nothing yet."""
        return []

    def pack(self, state: list[Aggregated]) -> tuple[Any, ...] | None:
        """Pack the aggregate, if any."""
        return tuple(state[0]) if state else None

    def unpack(self, fields: tuple[Any, ...]) -> list[Aggregated]:
        """The aggregate again."""
        return [Aggregated(*fields)]

    def take(self, key: Key, state: list[Aggregated], row: Arrived, clock: int) -> list[LogicOutput]:
        """Subtract the old member of a message, add the new member, and emit the group."""
        timestamp, reason, taken, added, takes, adds = row.value
        if reason is not None:
            return [dropped_before(row, reason, timestamp)]
        value, largest = state[0] if state else (self.groups.aggregate.initializer(), timestamp)
        if takes:
            value = self.subtracted(key, value, taken)
        if adds:
            value = self.added(key, value, added)
        state[:] = [Aggregated(value, self.stamp(largest, timestamp))]
        return [LogicOutput(None, None, self.groups.aggregate.finish(value), state[0].largest, UPDATE, None, row.order)]

    def subtracted(self, key: Key, value: Any, member: Any) -> Any:
        """Return the aggregate without a member."""
        assert self.groups.aggregate.subtractor is not None
        return self.groups.aggregate.subtractor(bare(key), member, value)

    def added(self, key: Key, value: Any, member: Any) -> Any:
        """Return the aggregate with one more member."""
        return self.groups.aggregate.aggregator(bare(key), member, value)

    def stamp(self, largest: int, timestamp: int) -> int:
        """Return the group's timestamp (ms): the largest of its rows."""
        return max(largest, timestamp)


class TableAggregateStages(NamedTuple):
    """The logic of each stage."""

    rows: RowLogic
    groups: GroupLogic


def table_aggregate_stages(groups: TableAggregate) -> TableAggregateStages:
    """Return the logic of each stage of a table aggregate."""
    return TableAggregateStages(RowLogic(groups), GroupLogic(groups))


def table_aggregate_hops(width: int) -> tuple[To]:
    """Return how the first stage sends messages to the groups, whose keys have `width` columns."""
    return (To(width, rest=4),)
