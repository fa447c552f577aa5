"""Windowed tables on Spark: the result of a windowed aggregate is a table by key and window, which can be joined.

Source: Kafka Streams Join Semantics, "Windowed Aggregate", "WTable", "JOIN operators".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.core.errors import BadInput
from ..reference.definitions.aggregates import Aggregate, named_aggregate
from ..reference.definitions.declarations import UNSET
from ..reference.definitions.windows import WindowedTable
from .runtime.columns import ColumnLike, bare, resolve, value_and_result
from .runtime.durations import Duration, milliseconds
from .runtime.inputs import (
    JoinInput,
    JoinInputLike,
    OperatorInput,
    joined_type,
    reading,
    require_order_of_both,
    resolved,
)
from .runtime.keyed import InitialState, declaration_of, keyed
from .runtime.logic import TOMBSTONE, UPDATE, Arrived, Key, Logic, LogicOutput, dropped, joined
from .runtime.native import closed_windows

SIDES = ("events", "right")


def windowed_table(
    events: JoinInputLike,
    right: JoinInputLike | None = None,
    *,
    size: Duration,
    step: Duration | None = None,
    grace: Duration = "0 ms",
    aggregate: str | Aggregate = "count",
    value_type: str | T.DataType | None = None,
    emit: Literal["update", "close"] = "update",
    with_: Literal["table", "windowed_table", "stream_lookup", "table_lookup"] | None = None,
    join: Literal["inner", "left", "outer"] | None = None,
    shift: Duration = "0 ms",
    window_start: ColumnLike | None = None,
    to_stream: Literal["window_in_key", "window_in_value"] | None = None,
    retention: Duration | None = None,
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[WindowedTable], WindowedLogic] | None = None,
) -> DataFrame:
    """Aggregate a stream by windows, join the resulting table by key and window, and return the changelog.

    Args:
        events: The stream to aggregate; see `inputs.table`. A batch DataFrame is a complete history: it is one batch,
            and with `emit="close"` all its windows close. A dropped row doesn't move the clock.
        right: The input to join the result with; `with_` names the kind of this input.
        size: The length of a window; its end is exclusive.
        step: The time between the starts of consecutive windows; the size by default, and at most the size.
        grace: The time after its end in which a window still accepts rows.
        aggregate: `count`, `sum`, `min`, `max`, `list`, or an `Aggregate` with a `value_type`.
        value_type: The type of the aggregate, as DDL or a DataType; named aggregates don't need it.
        emit: `update` emits every change of a window, `close` its final value once.
        with_: The kind of `right`: None; a `table` by key; the events of another `windowed_table` with the same
            windows; or a stream (`stream_lookup`) or a table (`table_lookup`) whose rows look up a window of their key.
        join: `left`; two windowed tables also support `inner` (their default) and `outer`.
        shift: A window joins the other table's window that starts `shift` later (earlier, if negative).
        window_start: For a look-up: the right input's column that contains the start of the window, a timestamp or
            bigint ms.
        to_stream: Where the result contains the window: by default beside the key; `window_in_key`: a single string key
            becomes `key@start`, in ms; `window_in_value`: the value becomes `struct<value, window: struct<start:
            bigint, end: bigint>>`.
        retention: The extra time, after its grace, for which a window is stored for a table or look-ups; by default
            unlimited. A forgotten window isn't emitted again, and look-ups don't find it.
        report_dropped: Whether the changelog also contains dropped rows.
        state_groups: As in `keyed`. A window stays in the state until the clock has passed its end, and its partner's
            end in another windowed table, by the grace. With a table or look-ups, the table's rows stay for ever, and
            the windows for the `retention`.
        initial_state: As in `keyed`.
        logic: Makes the logic that processes a key's rows, by default `WindowedLogic`; mutation testing passes logic
            with a bug.

    Returns:
        The columns of `keyed`'s changelog. The value is the aggregate, or `struct<left, right>` if joined, the primary
        side first. In a look-up the primary side is `right`, and the result has no window. The timestamp is the largest
        of the rows behind the value. A streaming result is in append mode. The clock is the largest event time of
        earlier batches.

    Raises:
        BadInput: A column is missing or of the wrong type, the inputs' keys or orders can't be compared, `right` is
            missing or unexpected, a duration can't be parsed, the windows or the join are invalid (see
            `WindowedTable`), `window_in_key` is used with a key that isn't a single string, or `retention` is given
            without a table or look-ups.

    Source: Kafka Streams Join Semantics, "Windowed Aggregate", "WTable", "JOIN operators".
    """
    declared = WindowedTable(
        size_ms=milliseconds("size", size),
        step_ms=UNSET if step is None else milliseconds("step", step),
        grace_ms=milliseconds("grace", grace),
        aggregate=named_aggregate(aggregate) if isinstance(aggregate, str) else aggregate,
        emit=emit,
        with_=with_,
        join=UNSET if join is None else join,
        shift_ms=milliseconds("shift", shift),
        window_start=None if window_start is None else "window_start",
        to_stream=to_stream,
    )
    _require_right(declared, right)
    decides = (logic or WindowedLogic)(declared)
    decides.retention_ms = _retention(declared, retention)
    inputs, result, other = _inputs(declared, events, right, value_type, window_start)
    state_type, emitted_type = _types(declared, result, other)
    changes = keyed(
        inputs,
        decides,
        state_type=state_type,
        value_type=emitted_type,
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        declaration=declaration_of("windowed_table", declared, retention_ms=decides.retention_ms),
    )
    return _rekeyed(declared, changes, inputs[0].keys[0][1].name)


def native_windowed_table(
    events: JoinInputLike,
    *,
    size: Duration,
    step: Duration | None = None,
    grace: Duration = "0 ms",
    aggregate: str = "count",
    emit: Literal["update", "close"] = "close",
    with_: Literal["table", "windowed_table", "stream_lookup", "table_lookup"] | None = None,
    to_stream: Literal["window_in_key", "window_in_value"] | None = None,
) -> DataFrame:
    """Aggregate a stream by Spark's own `window`; each window is emitted once, when it closes (append mode).

    The result satisfies the laws of `windowed_table` with `emit="close"` and without a join, if a batch without data
    follows every batch (Spark's default trigger). Under `availableNow` lateness is tested against the previous batch's
    watermark, so a late row may still be accepted. The result contains no dropped rows, and the windows of a batch are
    in no order. `sum`, `min` and `max` ignore null values, which `windowed_table` refuses.

    Args:
        events: The stream to aggregate; see `inputs.table`. In a batch DataFrame all windows close. Windows are aligned
            to 1970. The members of a `list` are in the order of arrival; the default order is time.
        size: The length of a window; its end is exclusive.
        step: The time between the starts of consecutive windows; the size by default, and at most the size.
        grace: The time after its end in which a window still accepts rows: the watermark's delay.
        aggregate: `count`, `sum`, `min`, `max` or `list`.
        emit: `close`.
        with_: None.
        to_stream: As in `windowed_table`.

    Returns:
        The columns of `windowed_table` without `place`; `cause` is null, `ordinal` 0.

    Raises:
        BadInput: Any error of `windowed_table`; or `emit` is `update`, or a join is declared.

    Source: Kafka Streams Join Semantics, "Windowed Aggregate"; Spark's guide, "Window Operations on Event Time".
    """
    declared = WindowedTable(
        size_ms=milliseconds("size", size),
        step_ms=UNSET if step is None else milliseconds("step", step),
        grace_ms=milliseconds("grace", grace),
        aggregate=named_aggregate(aggregate),
        emit=emit,
        with_=with_,
        window_start="window_start" if with_ in ("stream_lookup", "table_lookup") else None,
        to_stream=to_stream,
    )
    require_native_windowed_table(declared)
    with reading(SIDES[0], events) as given:
        one, _ = _aggregated(given, declared.aggregate, None, SIDES[0])
    _require_key(declared, one)
    changes = closed_windows(
        one,
        size_ms=declared.size_ms,
        step_ms=declared.step_ms,
        grace_ms=declared.grace_ms,
        aggregate=declared.aggregate,
    )
    return _rekeyed(declared, changes, one.keys[0][1].name)


def require_native_windowed_table(declared: WindowedTable) -> None:
    """Refuse a windowed table that Spark's own operator doesn't support.

    Raises:
        BadInput: The message names the option, the reason and the remedy.
    """
    if declared.with_ is not None:
        raise BadInput(
            f"with is {declared.with_!r}, but Spark's own windowed aggregate stores no table to join: leave with out, "
            "or use the stateful operator (spark)"
        )
    if declared.emit != "close":
        raise BadInput(
            f"emit is {declared.emit!r}, but Spark's own windowed aggregate emits at best a batch's last change, not "
            "every change: use emit close, or the stateful operator (spark)"
        )


def _retention(declared: WindowedTable, retention: Duration | None) -> int | None:
    if retention is None:
        return None
    if declared.with_ in (None, "windowed_table"):
        raise BadInput(
            "retention: this windowed table forgets a window once no row can change it: leave it out, or raise the "
            "grace"
        )
    retention_ms = milliseconds("retention", retention)
    if retention_ms < 0:
        raise BadInput(f"retention is {retention!r}: it can't be negative; leave it out to store windows for ever")
    return retention_ms


def _require_right(declared: WindowedTable, right: JoinInputLike | None) -> None:
    if right is None and declared.with_ is not None:
        raise BadInput(f"with_ is {declared.with_!r}, but there is no right input: give right too")
    if right is not None and declared.with_ is None:
        raise BadInput("there is a right input, but with_ doesn't name its kind")


def _inputs(
    declared: WindowedTable,
    events: JoinInputLike,
    right: JoinInputLike | None,
    value_type: str | T.DataType | None,
    window_start: ColumnLike | None,
) -> tuple[list[OperatorInput], T.DataType, T.DataType]:
    """Return the inputs with their columns resolved, the type of the aggregate, and the type of the right values."""
    with reading(SIDES[0], events) as given:
        one, result = _aggregated(given, declared.aggregate, value_type, SIDES[0])
    _require_key(declared, one)
    if right is None:
        return [one], result, T.IntegerType()
    require_order_of_both(events=events, right=right)
    with reading(SIDES[1], right) as given:
        if declared.with_ == "windowed_table":
            second, other = _aggregated(given, declared.aggregate, value_type, SIDES[1])
        else:
            second, other = _looking(given, window_start)
    return [one, second], result, other


def _aggregated(
    given: JoinInput, aggregate: Aggregate, value_type: str | T.DataType | None, side: str
) -> tuple[OperatorInput, T.DataType]:
    """Return an aggregated input with its columns resolved, and the type of its aggregate."""
    value = "value" if given.value is None and aggregate.name != "count" else given.value
    column, result = value_and_result(given.frame, aggregate, value, value_type)
    one = resolved(**given._replace(value=None)._asdict(), side=side)
    return one._replace(value=column, value_type=given.frame.select(column).schema[0].dataType), result


def _looking(given: JoinInput, window_start: ColumnLike | None) -> tuple[OperatorInput, T.DataType]:
    """Return a resolved table, or a resolved input of look-ups, whose values come with the start of the window."""
    value = "value" if given.value is None else given.value
    one = resolved(**given._replace(value=value)._asdict(), side=SIDES[1])
    start = F.lit(None).cast("bigint") if window_start is None else _start(given.frame, window_start)
    both = F.when(one.value.isNotNull(), F.struct(one.value.alias("value"), start.alias("start")))
    travelling = T.StructType().add("value", one.value_type).add("start", "long")
    return one._replace(value=both, value_type=travelling), one.value_type


def _start(frame: DataFrame, window_start: ColumnLike) -> Column:
    column, field = resolve(frame, "window_start", window_start)
    match field.dataType:
        case T.LongType():
            return column
        case T.TimestampType() | T.TimestampNTZType():
            return F.unix_millis(column.cast("timestamp"))
    raise BadInput(
        f"window_start: the column {field.name!r} is {field.dataType.simpleString()}: "
        "it must be a timestamp, or a bigint of milliseconds; cast it"
    )


def _types(declared: WindowedTable, result: T.DataType, other: T.DataType) -> tuple[T.StructType, T.DataType]:
    """Return the types of the state and of the result's values, from the types of `_inputs`."""
    right = _windows_type(other if declared.with_ == "windowed_table" else result)
    row = T.StructType().add("value", other).add("start", "long").add("timestamp", "long")
    state = T.StructType().add("events", _windows_type(result)).add("right", right).add("row", row)
    primary, secondary = (other, result) if declared.looked_up else (result, other)
    return state, result if declared.with_ is None else joined_type(primary, secondary)


def _windows_type(result: T.DataType) -> T.ArrayType:
    return T.ArrayType(T.StructType().add("start", "long").add("value", result).add("timestamp", "long"))


def _require_key(declared: WindowedTable, one: OperatorInput) -> None:
    kinds = [field.dataType for _, field in one.keys]
    if declared.to_stream == "window_in_key" and not (len(kinds) == 1 and isinstance(kinds[0], T.StringType)):
        shown = ", ".join(kind.simpleString() for kind in kinds)
        raise BadInput(
            f"to_stream: the key is {shown}, but a window goes into a single string: cast or concatenate it, or use "
            "window_in_value"
        )


def _rekeyed(declared: WindowedTable, changes: DataFrame, key: str) -> DataFrame:
    """Move the windows into the keys or the values; dropped rows have no window."""
    if declared.to_stream is None:
        return changes
    bounds = [F.unix_millis(F.col("window")[name]).alias(name) for name in ("start", "end")]
    has_window, name = F.col("window").isNotNull(), f"`{key.replace('`', '``')}`"
    if declared.to_stream == "window_in_key":
        in_key = F.concat(F.col(name), F.lit("@"), bounds[0].cast("string"))
        changed = {key: F.when(has_window, in_key).otherwise(F.col(name))}
    else:
        # `when` makes the nested fields nullable, because Arrow refuses a null struct with a field that can't be null.
        in_value = F.struct(F.col("value"), F.when(has_window, F.struct(*bounds)).alias("window"))
        changed = {"value": F.when(has_window, in_value)}
    return changes.withColumns({**changed, "window": F.lit(None).cast(changes.schema["window"].dataType)})


class Windowed(NamedTuple):
    """A window's aggregate, and its largest timestamp (ms)."""

    value: Any
    timestamp: int


class TableEntry(NamedTuple):
    """The joined table's row: its value, the window that it looks up, and its timestamp (all ms)."""

    value: Any
    start: int | None
    timestamp: int


@dataclass
class WindowedState:
    """The state of a key: each input's windows by start, and the row of the table."""

    sides: dict[str, dict[int, Windowed]]
    row: TableEntry | None


class WindowedLogic(Logic[WindowedState]):
    """The logic of a key: its windows, its row of the table, and their join.

    The join uses only emitted windows: with emit `update` every change of a window, with emit `close` only closed
    windows.

    Attributes:
        retention_ms: The extra time, after its grace (ms), for which a window is stored for a table or look-ups; None
            for no limit.
    """

    retention_ms: int | None = None

    def __init__(self, table: WindowedTable) -> None:
        self.table = table

    def empty(self) -> WindowedState:
        """Return a state without windows and row."""
        return WindowedState({side: {} for side in SIDES}, None)

    def pack(self, state: WindowedState) -> tuple[Any, ...] | None:
        """Pack the windows and the row, if any."""
        if not any(state.sides.values()) and state.row is None:
            return None
        return (*[[(start, *at) for start, at in state.sides[side].items()] for side in SIDES], state.row)

    def unpack(self, fields: tuple[Any, ...]) -> WindowedState:
        """Unpack the windows and the row."""
        *sides, row = fields
        windows = [{start: Windowed(value, timestamp) for start, value, timestamp in side} for side in sides]
        return WindowedState(dict(zip(SIDES, windows, strict=True)), None if row is None else TableEntry(*row))

    def take(self, key: Key, state: WindowedState, row: Arrived, clock: int) -> list[LogicOutput]:
        """Process a row of either input, and return the changes that the row causes."""
        edge = clock - self.table.grace_ms
        if row.side == SIDES[0] or self.table.with_ == "windowed_table":
            emitted = self.aggregate(key, state, row, edge)
        elif self.table.with_ == "stream_lookup" and row.value is None:
            return [dropped(row, "null value")]
        else:
            emitted = self.take_right(state, row, edge)
        return [change._replace(cause=row.order) for change in emitted]

    def aggregate(self, key: Key, state: WindowedState, row: Arrived, edge: int) -> list[LogicOutput]:
        """Add a row to its windows; with emit `update`, emit these windows by end."""
        assert row.timestamp is not None
        starts = self.open(row.timestamp, edge)
        if not starts:
            return [dropped(row, "late")]
        by, windows, bare_key = self.table.aggregate, state.sides[row.side], bare(key)
        by.check(row.value)
        for start in starts:
            at = windows.get(start)
            value = by.aggregator(bare_key, row.value, by.initializer() if at is None else at.value)
            windows[start] = Windowed(value, row.timestamp if at is None else max(at.timestamp, row.timestamp))
        if self.table.emit == "close":
            return []
        return [change for start in starts for change in self.emit(state, row.side, start, edge)]

    def open(self, timestamp: int, edge: int) -> list[int]:
        """Return the starts of the windows that accept a row: they contain its time (ms), and end after the edge."""
        return [start for start in self.table.starts(timestamp) if start + self.table.size_ms > edge]

    def emitted(self, state: WindowedState, side: str, start: int | None, edge: int) -> Windowed | None:
        """Return a window if it has been emitted; windows that end at or before the edge (ms) are closed."""
        if start is None or (self.table.emit == "close" and start + self.table.size_ms > edge):
            return None
        return state.sides[side].get(start)

    def emit(self, state: WindowedState, side: str, start: int, edge: int) -> list[LogicOutput]:
        """Return the result's changes that a changed window causes."""
        match self.table.with_:
            case None:
                return [self.change(start, *state.sides[side][start])]
            case "windowed_table":
                at = start if side == SIDES[0] else start - self.table.shift_ms
                return self.emit_pair(state, side, at, edge) if at >= 0 else []
            case "table":
                return [self.emit_with_row(state, start, state.sides[side][start])]
            case "table_lookup" if state.row is not None and state.row.start == start:
                return [self.emit_looked_up(state.row, state.sides[side][start])]
        return []

    def emit_pair(self, state: WindowedState, side: str, start: int, edge: int) -> list[LogicOutput]:
        """Return a row of the join of two windowed tables after one side has changed."""
        left = self.emitted(state, SIDES[0], start, edge)
        right = self.emitted(state, SIDES[1], start + self.table.shift_ms, edge)
        if (left is None and self.table.join != "outer") or (right is None and self.table.join == "inner"):
            return []
        stamp = max(left.timestamp if left else 0, right.timestamp if right else 0)
        return [self.change(start, joined(left and left.value, right and right.value), stamp)]

    def emit_with_row(self, state: WindowedState, start: int, at: Windowed) -> LogicOutput:
        """Return the row of a window with the table's row, if any."""
        row = state.row
        stamp = at.timestamp if row is None else max(at.timestamp, row.timestamp)
        return self.change(start, joined(at.value, row and row.value), stamp)

    def emit_looked_up(self, row: TableEntry, at: Windowed | None) -> LogicOutput:
        """Return a row with the window that it looks up, if any."""
        stamp = row.timestamp
        if at is not None and self.table.with_ == "table_lookup":
            stamp = max(stamp, at.timestamp)
        return self.change(None, joined(row.value, at and at.value), stamp)

    def take_right(self, state: WindowedState, row: Arrived, edge: int) -> list[LogicOutput]:
        """Process a row of the table, or a row that looks up a window, and return the changes that the row causes."""
        assert row.timestamp is not None
        new = None if row.value is None else TableEntry(row.value["value"], row.value["start"], row.timestamp)
        found = None if new is None else self.emitted(state, SIDES[0], new.start, edge)
        if self.table.with_ == "stream_lookup":
            assert new is not None
            return [self.emit_looked_up(new, found)]
        old, state.row = state.row, new
        if self.table.with_ == "table":
            windows = [(start, self.emitted(state, SIDES[0], start, edge)) for start in sorted(state.sides[SIDES[0]])]
            changes = [self.emit_with_row(state, start, at) for start, at in windows if at is not None]
            return [change._replace(timestamp=max(change.timestamp or 0, row.timestamp)) for change in changes]
        if new is not None:
            return [self.emit_looked_up(new, found)]
        return [] if old is None else [self.change(None, None, row.timestamp)]

    def change(self, start: int | None, value: Any, timestamp: int) -> LogicOutput:
        """Return a row of the result: an update, or a tombstone if the value is None."""
        end = None if start is None else start + self.table.size_ms
        return LogicOutput(start, end, value, timestamp, TOMBSTONE if value is None else UPDATE, None, None)

    def close(self, state: WindowedState, emitted: int, clock: int) -> list[LogicOutput]:
        """Emit the windows that the clock has closed since `emitted` (ms), in the order of their ends."""
        table = self.table
        if table.emit == "update":
            return []
        ends: dict[int, list[tuple[str, int]]] = {}
        for side in SIDES:
            for start in state.sides[side]:
                end = start + table.size_ms
                if emitted < end + table.grace_ms <= clock:
                    ends.setdefault(end, []).append((side, start))
        return [change for end, closed in sorted(ends.items()) for change in self.emit_closed(state, closed, end)]

    def emit_closed(self, state: WindowedState, closed: list[tuple[str, int]], edge: int) -> list[LogicOutput]:
        """Emit windows that close together, by end; each changed result row is emitted once."""
        emitted = {change.end: change for side, start in closed for change in self.emit(state, side, start, edge)}
        return sorted(emitted.values(), key=lambda change: change.end or 0)

    def keep(self, state: WindowedState, emitted: int, clock: int) -> WindowedState:
        """Return the state without the emitted windows that no row can change any more."""
        now = emitted if self.table.emit == "close" else clock
        for side, windows in state.sides.items():
            for start in [*windows]:
                if (over := self.over(side, start)) is not None and over <= now:
                    del windows[start]
        return state

    def over(self, side: str, start: int) -> int | None:
        """Return when (ms) a window can be forgotten, or None."""
        closed = start + self.table.size_ms + self.table.grace_ms
        if self.table.with_ == "windowed_table":
            shift = self.table.shift_ms
            return closed + max(0, shift if side == SIDES[0] else -shift)
        if self.table.with_ is None:
            return closed
        return None if self.retention_ms is None else closed + self.retention_ms

    def due(self, state: WindowedState, clock: int) -> int | None:
        """Return the next time (ms) at which a window closes, or can be forgotten (at a multiple of half its storage
        time).
        """
        life, times = self.table.size_ms + self.table.grace_ms, []
        half = life // 2 or 1
        for side, windows in state.sides.items():
            for start in windows:
                if (over := self.over(side, start)) is not None:
                    times.append(-(-over // half) * half)
                if self.table.emit == "close":
                    times.append(start + life)
        return min([time for time in times if time > clock], default=None)
