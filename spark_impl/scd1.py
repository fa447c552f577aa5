"""Slowly changing dimensions of type 1 on Spark: the newest version of each row, from change events.

Source: Kimball, "The Data Warehouse Toolkit", type 1; order and deletes as in AUTO CDC of Spark's Declarative
Pipelines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from ..reference.definitions.changes import Scd1
from .dimensions.events import STORED, ChangesLogic, PlacedEvent, change_events
from .runtime.columns import ColumnLike
from .runtime.durations import Duration
from .runtime.keyed import InitialState, declaration_of, keyed
from .runtime.logic import Arrived, Key, LogicOutput, changed


def scd1(
    events: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike,
    sequence_by: ColumnLike | None = None,
    deletes: ColumnLike | None = None,
    ties: ColumnLike | None = None,
    tombstones: Duration | None = None,
    order: ColumnLike | None = None,
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[Scd1], Scd1Logic] | None = None,
) -> DataFrame:
    """Keep the newest version of each row from its change events, and return the changelog of the rows.

    The table is a function of the set of events: arrival order, repeated events and batches have no effect.

    Args:
        events: The change events, streaming or batch.
        key: The row's key: one or several columns. An event with a null key is dropped.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970.
        value: The row after the change, such as `F.struct("name", "tier")`; null deletes the row.
        sequence_by: The column that orders the events of a key, a whole number or a timestamp (cut to ms); by default
            `timestamp`. An event with a null sequence is dropped.
        deletes: The condition on which an event deletes its row, such as `F.col("op") == "D"`.
        ties: The column, a whole number or a timestamp, that breaks ties between events of equal sequence: the largest
            wins. Without `ties`, two different events of equal sequence end the query.
        tombstones: How long a deleted key is remembered, by `timestamp`; older events are dropped as late. By default a
            deleted key is never forgotten, and no event is late. `tombstones` can't be combined with `sequence_by`.
        order: The order of arrival within a batch, such as an offset; by default a batch is in timestamp order.
        report_dropped: Whether the changelog also contains dropped rows.
        state_groups: As in `keyed`. The state contains the table and its deleted keys.
        initial_state: As in `keyed`.
        logic: Makes the logic that processes a key's rows, by default `Scd1Logic`; mutation testing passes logic with a
            bug.

    Returns:
        The columns of `keyed`'s changelog, without windows. The timestamp is the sequence of the row's newest event: a
        whole number is ms since 1970. A streaming result is in append mode.

    Raises:
        BadInput: A column is missing or of the wrong type, or `tombstones` is negative or combined with `sequence_by`;
            when the query runs: two events of equal sequence differ.

    Source: Kimball, "The Data Warehouse Toolkit"; AUTO CDC of Spark's Declarative Pipelines.
    """
    given = change_events(
        events,
        key=key,
        timestamp=timestamp,
        value=value,
        sequence_by=sequence_by,
        deletes=deletes,
        ties=ties,
        tombstones=tombstones,
        order=order,
    )
    declared = Scd1(**given.options)
    return keyed(
        [given.rows],
        (logic or Scd1Logic)(declared),
        state_type=T.StructType([*STORED, T.StructField("row", given.row)]),
        value_type=given.row,
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        timed=declared.tombstone_ms is not None,
        declaration=declaration_of("scd1", declared, deletes=given.deletes),
    )


class Scd1Logic(ChangesLogic):
    """The logic of a row; the state is the row's newest event."""

    def pack(self, state: list[PlacedEvent]) -> tuple[Any, ...] | None:
        """Pack the newest event, if any."""
        return state[0][:3] if state else None

    def unpack(self, fields: tuple[Any, ...]) -> list[PlacedEvent]:
        """Unpack the newest event."""
        return [PlacedEvent(*fields)]

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        """Store an event if it is the newest so far; emit its row, or a tombstone if it deletes an existing row."""
        old = state[0] if state else None
        if old is not None and not self.is_newer(key, event, old):
            return []
        state[:] = [event]
        if event.row is None and (old is None or old.row is None):
            return []
        return [changed(row, event.row, event.sequence)]
