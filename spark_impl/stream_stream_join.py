"""Stream-stream joins on Spark: records of two streams with the same key, within time bounds, make one output a pair.

Source: join semantics, "KStream-KStream Join" and "Output of Join"; Samza's window operator, "Stream-Stream Join".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from ..reference.declarations import UNSAID
from ..reference.joins import Join, StreamStreamJoin
from .columns import ColumnLike
from .durations import Duration, milliseconds
from .keyed import Arrived, Key, Logic, Told, changed, dropped, joined, joined_type, keyed, two_sides

OTHER = {"left": "right", "right": "left"}


def stream_stream_join(
    left: DataFrame,
    right: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike,
    before: Duration | None = None,
    after: Duration | None = None,
    order: ColumnLike | None = None,
    right_key: ColumnLike | Sequence[ColumnLike] | None = None,
    right_timestamp: ColumnLike | None = None,
    right_value: ColumnLike | None = None,
    right_order: ColumnLike | None = None,
    join: Join = "inner",
    grace: Duration = "0 ms",
    emit: Literal["arrival", "eager", "close"] | None = None,
    null_key: Literal["drop", "keep"] = "drop",
    report_dropped: bool = False,
    state_groups: int | None = None,
    logic: Callable[[StreamStreamJoin], StreamStreamLogic] | None = None,
) -> DataFrame:
    """Join two streams by key within time bounds: right time in [left time - before, left time + after].

    Args:
        left: One stream, streaming or batch. A record whose value is null is dropped. A batch DataFrame is a history
            that has ended: it is one batch, and all its rows close.
        right: The other.
        key: One or several columns.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970.
        value: The column that holds a record's value; several can be put into a struct.
        before: How far before a left record its partners may lie, inclusive.
        after: How far after it, inclusive.
        order: The order of arrival across both inputs, such as an offset; without it a batch is taken by timestamp.
        right_key: The right input's key, where it isn't called as on the left; likewise the other `right_…`.
        right_timestamp: Its event time.
        right_value: Its value.
        right_order: Its order of arrival.
        join: `inner`, `left` or `outer`.
        grace: How much longer than its reach a record can find partners.
        emit: When a row without partner is told: `arrival`, `eager` or `close`; see `StreamStreamJoin`.
        null_key: `drop` records without a key, or `keep` them: left and outer tell such a row at once.
        report_dropped: Whether rows that were dropped are told too.
        state_groups: As in `keyed`: None keeps one state for each key. A record stays in the state as long as it can
            find a partner: until the clock has passed its time + reach + grace.
        logic: Makes what decides, of a declaration; another than `StreamStreamLogic` for seeded bugs.

    Returns:
        As `keyed`, without windows: `value struct<left, right>`, null where a row has no partner. A streaming result is
        in append mode. The clock is the largest event time of earlier batches.

    Raises:
        BadInput: A bound is missing, for an unbounded join is refused; a column is missing or of the wrong type, the
            sides' keys clash, a duration can't be parsed, or there is no such join or option.

    Source: join semantics, "KStream-KStream Join"; Samza's window operator, "Stream-Stream Join".
    """
    declared = StreamStreamJoin(
        before_ms=UNSAID if before is None else milliseconds("before", before),
        after_ms=UNSAID if after is None else milliseconds("after", after),
        join=join,
        grace_ms=milliseconds("grace", grace),
        emit=UNSAID if emit is None else emit,
        null_key=null_key,
    )
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
    kept_type = T.StructType()
    for one in inputs:
        row = T.StructType().add("timestamp", "long").add("value", one.value_type).add("matched", "boolean")
        kept_type = kept_type.add(one.side, T.ArrayType(row))
    return keyed(
        inputs,
        (logic or StreamStreamLogic)(declared),
        kept_type=kept_type,
        value_type=joined_type(*types),
        state_groups=state_groups,
        report_dropped=report_dropped,
    )


class Row(NamedTuple):
    """A buffered record (ms), and whether it has found a partner."""

    timestamp: int
    value: Any
    matched: bool


Buffers = dict[str, list[Row]]


class StreamStreamLogic(Logic[Buffers]):
    """What happens to a key: both sides' records are buffered, in order of arrival."""

    def __init__(self, join: StreamStreamJoin) -> None:
        self.join = join
        self.keeps_null_keys = join.null_key == "keep"

    def empty(self) -> Buffers:
        """No record on either side."""
        return {"left": [], "right": []}

    def pack(self, kept: Buffers) -> tuple[Any, ...] | None:
        """Both buffers, if there is a record."""
        return (kept["left"], kept["right"]) if kept["left"] or kept["right"] else None

    def unpack(self, fields: tuple[Any, ...]) -> Buffers:
        """Both buffers again."""
        return {side: [Row(*row) for row in rows] for side, rows in zip(OTHER, fields, strict=True)}

    def take(self, key: Key, kept: Buffers, row: Arrived, clock: int) -> list[Told]:
        """Take a record: tell its pairs, or that it has none, and buffer it."""
        join, side, at = self.join, row.side, row.timestamp
        assert at is not None
        without_key = any(part is None for part in key)
        if without_key and not join.tells_unmatched(side):
            return [dropped(row, "null key")]
        if row.value is None:
            return [dropped(row, "null value")]
        if self.is_late(side, at, clock):
            return [dropped(row, "late")]
        if without_key:
            return [changed(row, self.alone(side, row.value), at)]
        partners = self.partners(kept, side, at, clock)
        kept[side].append(Row(at, row.value, bool(partners)))
        if side == "right" and not join.right_drives:
            return []
        others = kept[OTHER[side]]
        for place in partners:
            others[place] = others[place]._replace(matched=True)
        told = [self.pair(row, others[place]) for place in sorted(partners, key=lambda place: others[place].timestamp)]
        if not partners and join.emit != "close" and join.tells_unmatched(side):
            told.append(changed(row, self.alone(side, row.value), at))
        return told

    def is_late(self, side: str, timestamp: int, clock: int) -> bool:
        """Whether a record can find no partner any more."""
        return not self.join.is_open(side, timestamp, clock)

    def partners(self, kept: Buffers, side: str, timestamp: int, clock: int) -> list[int]:
        """Give the places of a record's partners in the other side's buffer."""
        other = OTHER[side]
        edge = self.join.close_edge(other, clock)
        return [
            place
            for place, row in enumerate(kept[other])
            if row.timestamp >= edge
            and self.join.within(*((timestamp, row.timestamp) if side == "left" else (row.timestamp, timestamp)))
        ]

    def pair(self, row: Arrived, partner: Row) -> Told:
        """Tell a pair."""
        left, right = (row.value, partner.value) if row.side == "left" else (partner.value, row.value)
        assert row.timestamp is not None
        return changed(row, joined(left, right), max(row.timestamp, partner.timestamp))

    def alone(self, side: str, value: Any) -> dict[str, Any]:
        """Give the value of a row without partner."""
        return joined(value, None) if side == "left" else joined(None, value)

    def close(self, kept: Buffers, told: int, clock: int) -> list[Told]:
        """Tell the unmatched records that can find no partner any more, by timestamp, right before left."""
        if self.join.emit != "close":
            return []
        closed = [
            Arrived(row.timestamp, None, row.value, side)
            for side in ("right", "left")
            if self.join.tells_unmatched(side)
            for row in kept[side]
            if not row.matched and row.timestamp < self.join.close_edge(side, clock)
        ]
        self.forget(kept, clock)
        in_order = sorted(closed, key=lambda row: row.timestamp or 0)
        return [changed(row, self.alone(row.side, row.value), row.timestamp) for row in in_order]

    def forget(self, kept: Buffers, clock: int) -> None:
        """Take the records out of the state that can find no partner any more."""
        for side in kept:
            edge = self.join.close_edge(side, clock)
            kept[side] = [row for row in kept[side] if row.timestamp >= edge]

    def keep(self, kept: Buffers, told: int, clock: int) -> Buffers:
        """Forget what can find no partner any more; what is to be told at its close is told before."""
        self.forget(kept, told if self.join.emit == "close" else clock)
        return kept

    def due(self, kept: Buffers, clock: int) -> int | None:
        """The next time at which a record can find no partner any more."""
        patience = {"left": self.join.after_ms, "right": self.join.before_ms}
        times = [row.timestamp + patience[side] + self.join.grace_ms + 1 for side, rows in kept.items() for row in rows]
        return min((time for time in times if time > clock), default=None)
