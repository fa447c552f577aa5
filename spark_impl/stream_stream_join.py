"""Stream-stream joins on Spark: records of two streams with the same key, within time bounds, are joined in pairs.

Source: Kafka Streams Join Semantics, "KStream-KStream Join", "Output of Join"; Samza's window operator.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.core.errors import BadInput
from ..reference.definitions.declarations import UNSET
from ..reference.definitions.joins import JoinKind, StreamStreamJoin
from .runtime.durations import Duration, milliseconds
from .runtime.inputs import JoinInputLike, OperatorInput, any_null, joined_type, require_same, two_sides
from .runtime.keyed import InitialState, declaration_of, keyed
from .runtime.logic import BEFORE_ALL_TIMES, Arrived, Key, Logic, LogicOutput, changed, dropped, joined
from .runtime.native import changelog, key_names

OTHER = {"left": "right", "right": "left"}


def stream_stream_join(
    left: JoinInputLike,
    right: JoinInputLike,
    *,
    before: Duration | None = None,
    after: Duration | None = None,
    join: JoinKind = "inner",
    grace: Duration = "0 ms",
    emit: Literal["arrival", "eager", "close"] | None = None,
    null_key: Literal["drop", "keep"] = "drop",
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[StreamStreamJoin], StreamStreamLogic] | None = None,
) -> DataFrame:
    """Join two streams by key within time bounds: right time in [left time - before, left time + after].

    Args:
        left: A stream; see `inputs.table`. A batch DataFrame is a complete history: it is one batch, and all its rows
            close.
        right: The other stream.
        before: The longest time before a left record within which a partner may be, inclusive.
        after: The longest time after a left record within which a partner may be, inclusive.
        join: `inner`, `left` or `outer`.
        grace: The extra time, beyond the bounds, in which a record can still find partners.
        emit: When to emit a row without a partner: `arrival`, `eager` or `close`; see `StreamStreamJoin`.
        null_key: `drop` records without a key, or `keep` them: left and outer joins emit a record without a key at
            once.
        report_dropped: Whether the changelog also contains dropped rows.
        state_groups: As in `keyed`. A record stays in the state until the clock has passed its time + `after` (a left
            record) or `before` (a right record) + `grace`.
        initial_state: As in `keyed`.
        logic: Makes the logic that processes a key's rows, by default `StreamStreamLogic`; mutation testing passes
            logic with a bug.

    Returns:
        The columns of `keyed`'s changelog, without windows: `value struct<left, right>`, null for a missing partner. A
        streaming result is in append mode. The clock is the largest event time of earlier batches.

    Raises:
        BadInput: A bound is missing (unbounded joins are refused), a column is missing or of the wrong type, the sides'
            keys or orders can't be compared, a duration can't be parsed, or the join or an option is unknown.

    Source: Kafka Streams Join Semantics, "KStream-KStream Join"; Samza's window operator, "Stream-Stream Join".
    """
    declared = _declared(before=before, after=after, join=join, grace=grace, emit=emit, null_key=null_key)
    inputs = two_sides(left, right)
    types = [one.value_type for one in inputs]
    state_type = T.StructType()
    for one in inputs:
        row = T.StructType().add("timestamp", "long").add("value", one.value_type).add("matched", "boolean")
        state_type = state_type.add(one.side, T.ArrayType(row))
    return keyed(
        inputs,
        (logic or StreamStreamLogic)(declared),
        state_type=state_type,
        value_type=joined_type(*types),
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        declaration=declaration_of("stream_stream_join", declared),
    )


def native_stream_stream_join(
    left: JoinInputLike,
    right: JoinInputLike,
    *,
    before: Duration | None = None,
    after: Duration | None = None,
    join: JoinKind = "inner",
    grace: Duration = "0 ms",
    emit: Literal["arrival", "eager", "close"] = "close",
    null_key: Literal["drop", "keep"] = "drop",
) -> DataFrame:
    """Join two streams by Spark's own join: right time in [left time - before, left time + after] (append mode).

    From the records that Spark's join accepts, it emits the same results in the same batches as `stream_stream_join`
    with `emit="close"`, if

    - `spark.sql.streaming.multipleWatermarkPolicy` is `max` when the query starts. With Spark's default, `min`, the
      slower input sets the clock, and an idle input stops the clock: no record is late, closed or forgotten;
    - a batch without data follows every batch (Spark's default trigger). Under `availableNow` lateness is tested
      against the previous batch's watermark, so a late record may still be accepted.

    Spark's join accepts fewer records: a record is late if its timestamp <= clock - grace, even if it could find a
    partner. The smallest example, without grace and with `after` 6: a right record at 10, a cut, a left record at 10.
    Spark doesn't emit the pair, because the left record is late; `stream_stream_join` drops the record only after the
    clock has passed 16. Both operators close rows at the same clock time.

    The result contains no dropped records, and the results of a batch are in no order. Records before 1970 are late.

    Args:
        left: A stream; see `inputs.table`. A batch DataFrame is a complete history: all its rows close. The order of
            arrival has no effect.
        right: The other stream.
        before: The longest time before a left record within which a partner may be, inclusive.
        after: The longest time after a left record within which a partner may be, inclusive.
        join: `inner`, `left` or `outer`.
        grace: The delay of both watermarks: how far behind the clock a record may arrive, and the extra time in which
            it can find partners.
        emit: Only `close` is supported; inner joins ignore the option.
        null_key: `drop` records without a key. An inner join may `keep` them: they move the clock, and are dropped.

    Returns:
        The columns of `stream_stream_join` without `place`; `cause` is null, `ordinal` 0.

    Raises:
        BadInput: Any error of `stream_stream_join`, or Spark's join doesn't support an option.

    Source: Kafka Streams Join Semantics, "KStream-KStream Join"; Spark's guide, "Stream-stream Joins"; SPARK-24730.
    """
    declared = _declared(before=before, after=after, join=join, grace=grace, emit=emit, null_key=null_key)
    require_native_stream_stream_join(declared)
    inputs = two_sides(left, right)
    require_same(*inputs)
    rows = _joined(*inputs, declared)
    names, right_names = (key_names(one.keys, one.side) for one in inputs)
    either = zip(names, right_names, strict=True)
    return changelog(
        rows.withColumns({name: F.coalesce(name, other) for name, other in either}),
        [(field.name, name) for name, (_, field) in zip(names, inputs[0].keys, strict=True)],
        value=F.struct(F.col("left_value").alias("left"), F.col("right_value").alias("right")),
        timestamp=F.timestamp_millis(F.greatest("left_timestamp", "right_timestamp")),
    )


def _declared(
    *,
    before: Duration | None,
    after: Duration | None,
    join: JoinKind,
    grace: Duration,
    emit: Literal["arrival", "eager", "close"] | None,
    null_key: Literal["drop", "keep"],
) -> StreamStreamJoin:
    return StreamStreamJoin(
        before_ms=UNSET if before is None else milliseconds("before", before),
        after_ms=UNSET if after is None else milliseconds("after", after),
        join=join,
        grace_ms=milliseconds("grace", grace),
        emit=UNSET if emit is None else emit,
        null_key=null_key,
    )


def _joined(left: OperatorInput, right: OperatorInput, join: StreamStreamJoin) -> DataFrame:
    """Return the rows of Spark's join."""
    names = (key_names(one.keys, one.side) for one in (left, right))
    same = [F.col(name) == F.col(other) for name, other in zip(*names, strict=True)]
    within = [
        F.expr(f"right_clock >= left_clock - INTERVAL {join.before_ms} MILLISECONDS"),
        F.expr(f"right_clock <= left_clock + INTERVAL {join.after_ms} MILLISECONDS"),
    ]
    how = {"outer": "full_outer"}.get(join.join, join.join)
    return _watermarked(left, join).join(_watermarked(right, join), [*same, *within], how)


def _watermarked(source: OperatorInput, join: StreamStreamJoin) -> DataFrame:
    """Return the rows of an input for Spark's join, with their watermark."""
    names = key_names(source.keys, source.side)
    without_key = any_null([column for column, _ in source.keys])
    clock, value = F.col(f"{source.side}_clock"), F.col(f"{source.side}_value")
    moving = source.time.isNotNull() if join.null_key == "keep" else source.time.isNotNull() & ~without_key
    at = F.unix_millis(source.time)
    rows = source.frame.filter(moving).select(
        # 1 ms later: the watermark begins at 1970 and a record at the watermark is late, so a record at 1970 would be
        # late.
        F.timestamp_millis(at + 1).alias(f"{source.side}_clock"),
        at.alias(f"{source.side}_timestamp"),
        *(column.alias(name) for name, (column, _) in zip(names, source.keys, strict=True)),
        source.value.alias(f"{source.side}_value"),
    )
    taken = value.isNotNull() & ~any_null([F.col(name) for name in names])
    # The filter names the clock, because Spark would otherwise filter rows before they move the watermark.
    behind = F.when(F.unix_millis(clock) > BEFORE_ALL_TIMES, taken)
    return rows.withWatermark(f"{source.side}_clock", f"{join.grace_ms} milliseconds").filter(behind)


def require_native_stream_stream_join(declared: StreamStreamJoin) -> None:
    """Refuse a join that Spark's own join doesn't support.

    Raises:
        BadInput: The message names the option, the reason and the remedy.
    """
    if declared.join == "inner":
        return
    if declared.emit != "close":
        raise BadInput(
            f"emit is {declared.emit!r}, but Spark's own join emits a row without a partner only when none can arrive "
            "any more: use emit close, or the stateful operator (spark)"
        )
    if declared.null_key != "drop":
        raise BadInput(
            f"null_key is {declared.null_key!r}, but Spark's own join emits a row without a key only when no partner "
            "could arrive any more: use null_key drop, or the stateful operator (spark)"
        )


class Buffered(NamedTuple):
    """A stored record (times in ms), and whether it has found a partner."""

    timestamp: int
    value: Any
    matched: bool


Buffers = dict[str, list[Buffered]]
_timestamp = attrgetter("timestamp")


class StreamStreamLogic(Logic[Buffers]):
    """The logic of a key: it stores the records of both sides, by timestamp, then in order of arrival."""

    def __init__(self, join: StreamStreamJoin) -> None:
        self.join = join
        self.keeps_null_keys = join.null_key == "keep"

    def empty(self) -> Buffers:
        """Return a state without records."""
        return {"left": [], "right": []}

    def pack(self, state: Buffers) -> tuple[Any, ...] | None:
        """Pack both sides' records, if any."""
        return (state["left"], state["right"]) if state["left"] or state["right"] else None

    def unpack(self, fields: tuple[Any, ...]) -> Buffers:
        """Both buffers again."""
        return {"left": [Buffered(*row) for row in fields[0]], "right": [Buffered(*row) for row in fields[1]]}

    def take(self, key: Key, state: Buffers, row: Arrived, clock: int) -> list[LogicOutput]:
        """Emit the pairs of a record, or the record without a partner, and store it if later records can find it."""
        join, side, at = self.join, row.side, row.timestamp
        assert at is not None
        if None in key and not join.emits_unmatched(side):
            return [dropped(row, "null key")]
        if row.value is None:
            return [dropped(row, "null value")]
        if self.is_late(side, at, clock):
            return [dropped(row, "late")]
        if None in key:
            return [changed(row, self.alone(side, row.value), at)]
        partners = self.partners(state, side, at, clock)
        if side == "right" or join.right_drives:  # otherwise no record looks up left rows
            insort(state[side], Buffered(at, row.value, bool(partners)), key=_timestamp)
        if side == "right" and not join.right_drives:
            return []
        others = state[OTHER[side]]
        for index in partners:
            others[index] = Buffered(others[index].timestamp, others[index].value, True)
        emitted = [self.pair(row, others[index]) for index in partners]
        if not partners and join.emit != "close" and join.emits_unmatched(side):
            emitted.append(changed(row, self.alone(side, row.value), at))
        return emitted

    def is_late(self, side: str, timestamp: int, clock: int) -> bool:
        """Return whether a record is late: it can't find a partner any more."""
        return not self.join.is_open(side, timestamp, clock)

    def partners(self, state: Buffers, side: str, timestamp: int, clock: int) -> list[int]:
        """Return the indexes of a record's partners among the other side's stored records."""
        join, other = self.join, OTHER[side]
        before, after = (join.before_ms, join.after_ms) if side == "left" else (join.after_ms, join.before_ms)
        first = bisect_left(state[other], max(timestamp - before, join.close_edge(other, clock)), key=_timestamp)
        return list(range(first, bisect_right(state[other], timestamp + after, key=_timestamp)))

    def pair(self, row: Arrived, partner: Buffered) -> LogicOutput:
        """Return the output of a pair."""
        left, right = (row.value, partner.value) if row.side == "left" else (partner.value, row.value)
        assert row.timestamp is not None
        return changed(row, joined(left, right), max(row.timestamp, partner.timestamp))

    def alone(self, side: str, value: Any) -> dict[str, Any]:
        """Return the value of a record without a partner."""
        return joined(value, None) if side == "left" else joined(None, value)

    def close(self, state: Buffers, emitted: int, clock: int) -> list[LogicOutput]:
        """Emit the unmatched records that can find no partner any more, by timestamp; of equal timestamps, right ones
        first.
        """
        if self.join.emit != "close":
            return []
        closed: list[Arrived] = []
        for side in ("right", "left"):
            if self.join.emits_unmatched(side):
                rows, edge = state[side], self.join.close_edge(side, clock)
                closed += [Arrived(at, None, value, side) for at, value, matched in rows if at < edge and not matched]
        self.forget(state, clock)
        closed.sort(key=_timestamp)
        return [changed(row, self.alone(row.side, row.value), row.timestamp) for row in closed]

    def forget(self, state: Buffers, clock: int) -> None:
        """Remove the records that can find no partner any more."""
        for side, rows in state.items():
            del rows[: bisect_left(rows, self.join.close_edge(side, clock), key=_timestamp)]

    def keep(self, state: Buffers, emitted: int, clock: int) -> Buffers:
        """Return the state without the records that can find no partner any more and are already emitted."""
        self.forget(state, emitted if self.join.emit == "close" else clock)
        return state

    def due(self, state: Buffers, clock: int) -> int | None:
        """Return the next time (ms) at which a record can find no partner any more."""
        times = []
        for side, rows in state.items():
            edge = self.join.close_edge(side, clock)
            first = bisect_left(rows, edge, key=_timestamp)
            if first < len(rows):
                times.append(clock + rows[first].timestamp - edge + 1)
        return min(times, default=None)
