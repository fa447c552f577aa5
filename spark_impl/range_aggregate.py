"""Range aggregates on Spark: for each row, the aggregate of its key's rows in a range of time that ends at the row.

Source: Samza's window operator, "Windowed Aggregation": `OVER (ORDER BY time RANGE … PRECEDING)`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from ..reference.core.errors import BadInput
from ..reference.definitions.aggregates import AGGREGATES_OF_SAMZA, named_aggregate
from ..reference.definitions.windows import RangeAggregate
from .runtime.columns import ColumnLike, bare, value_and_result
from .runtime.durations import Duration, milliseconds
from .runtime.inputs import resolved
from .runtime.keyed import InitialState, declaration_of, keyed
from .runtime.logic import Arrived, Key, Logic, LogicOutput, changed, dropped


def range_aggregate(
    events: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    preceding: Duration,
    value: ColumnLike | None = None,
    order: ColumnLike | None = None,
    aggregate: str = "count",
    retention: Duration | None = None,
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[RangeAggregate], RangeLogic] | None = None,
) -> DataFrame:
    """Aggregate, for each row, its key's rows in the range of `preceding` that ends at the row, both ends included.

    Args:
        events: A streaming or a batch DataFrame.
        key: One or several columns. A row with a null key is dropped, and doesn't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. A row without a
            timestamp is dropped.
        preceding: The length of the range.
        value: The column to aggregate; `count` needs no column. Values are aggregated by timestamp, then by order of
            arrival.
        order: The order of arrival within a batch, such as an offset; by default a batch is in timestamp order.
        aggregate: `count`, `sum`, `min`, `max`, `list` or `average`.
        retention: How late a row may arrive. By default no row is late, and every row stays in the state for ever. A
            row more than `retention` behind the clock is dropped as late. Other rows stay in the state until the clock
            is `preceding + retention` past them, or up to half of that time longer.
        report_dropped: Whether the changelog also contains dropped rows.
        state_groups: As in `keyed`.
        initial_state: As in `keyed`.
        logic: Makes the logic that processes a key's rows, by default `RangeLogic`; mutation testing passes logic with
            a bug.

    Returns:
        The columns of `keyed`'s changelog, without windows: each row emits one update, with the row's timestamp, from
        the rows of its range that have arrived. Later rows don't change the update. A streaming result is in append
        mode. The clock is the largest event time of earlier batches.

    Raises:
        BadInput: A column is missing or of the wrong type, a duration can't be parsed or is negative, or the aggregate
            is unknown.

    Source: Samza's window operator, "Windowed Aggregation".
    """
    declared = RangeAggregate(
        preceding_ms=milliseconds("preceding", preceding), aggregate=named_aggregate(aggregate, AGGREGATES_OF_SAMZA)
    )
    decides = (logic or RangeLogic)(declared)
    decides.retention_ms = None if retention is None else milliseconds("retention", retention)
    if decides.retention_ms is not None and decides.retention_ms < 0:
        raise BadInput(f"retention is {retention!r}: it can't be negative; leave it out to store rows for ever")
    value_column, result_type = value_and_result(events, declared.aggregate, value)
    one = resolved(events, key=key, timestamp=timestamp, value=None, order=order)._replace(value=value_column)
    held = T.StructType().add("timestamp", "long").add("value", events.select(value_column).schema[0].dataType)
    return keyed(
        [one._replace(value_type=held["value"].dataType)],
        decides,
        state_type=T.StructType().add("rows", T.ArrayType(held)),
        value_type=result_type,
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        declaration=declaration_of("range_aggregate", declared, retention_ms=decides.retention_ms),
        timed=retention is not None,
    )


class Retained(NamedTuple):
    """A stored row (times in ms)."""

    timestamp: int
    value: Any


_timestamp, _value = attrgetter("timestamp"), attrgetter("value")


class RangeLogic(Logic[list[Retained]]):
    """The logic of a key: it stores the key's rows by timestamp, then by order of arrival.

    Attributes:
        retention_ms: How late a row may arrive (ms); if None, no row is late, and all rows stay in the state.
    """

    retention_ms: int | None = None

    def __init__(self, ranges: RangeAggregate) -> None:
        self.ranges = ranges

    def empty(self) -> list[Retained]:
        """No row."""
        return []

    def pack(self, state: list[Retained]) -> tuple[Any, ...] | None:
        """Pack the rows, if any."""
        return (state,) if state else None

    def unpack(self, fields: tuple[Any, ...]) -> list[Retained]:
        """The rows again."""
        return [Retained(*row) for row in fields[0]]

    def take(self, key: Key, state: list[Retained], row: Arrived, clock: int) -> list[LogicOutput]:
        """Store a row, and return the aggregate of its range."""
        assert row.timestamp is not None
        if self.retention_ms is not None and row.timestamp < clock - self.retention_ms:
            return [dropped(row, "late")]
        self.ranges.aggregate.check(row.value)
        self.hold(state, Retained(row.timestamp, row.value))
        return [changed(row, self.answer(key, self.inside(state, row.timestamp)), row.timestamp)]

    def hold(self, state: list[Retained], row: Retained) -> None:
        """Insert a row after all rows with its timestamp."""
        insort(state, row, key=_timestamp)

    def inside(self, state: list[Retained], timestamp: int) -> list[Retained]:
        """Return the rows of the range that ends at a timestamp (ms)."""
        first = bisect_left(state, timestamp - self.ranges.preceding_ms, key=_timestamp)
        return state[first : bisect_right(state, timestamp, key=_timestamp)]

    def answer(self, key: Key, rows: list[Retained]) -> Any:
        """Aggregate the rows of a range."""
        return self.ranges.aggregate.of(bare(key), map(_value, rows))

    def keep(self, state: list[Retained], emitted: int, clock: int) -> list[Retained]:
        """Forget the rows that no range can contain any more."""
        if self.retention_ms is None:
            return state
        return state[bisect_left(state, clock - self.retention_ms - self.ranges.preceding_ms, key=_timestamp) :]

    def due(self, state: list[Retained], clock: int) -> int | None:
        """Return when (ms) the first row can be forgotten, as a multiple of half the time that rows are stored."""
        if self.retention_ms is None or not state:
            return None
        life = self.retention_ms + self.ranges.preceding_ms
        half = max(life // 2, 1)
        return max(-(-(state[0].timestamp + life + 1) // half) * half, clock + 1)
