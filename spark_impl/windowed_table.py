"""Windowed tables on Spark: a WTable, which only a windowed aggregate makes, and its joins.

Source: join semantics, "Windowed Aggregate", "WTable", "JOIN operators".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.aggregates import Aggregate, named_aggregate
from ..reference.declarations import UNSAID
from ..reference.errors import BadInput
from ..reference.windows import WindowedTable
from .columns import ColumnLike, bare, resolve, value_and_result
from .durations import Duration, milliseconds
from .keyed import (
    TOMBSTONE,
    UPDATE,
    Arrived,
    Input,
    Key,
    Logic,
    Told,
    declaration_of,
    dropped,
    joined,
    joined_type,
    keyed,
    resolved,
)
from .native import closed_windows

SIDES = ("events", "right")


def windowed_table(
    events: DataFrame,
    right: DataFrame | None = None,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    size: Duration,
    value: ColumnLike | None = None,
    order: ColumnLike | None = None,
    right_key: ColumnLike | Sequence[ColumnLike] | None = None,
    right_timestamp: ColumnLike | None = None,
    right_value: ColumnLike | None = None,
    right_order: ColumnLike | None = None,
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
    logic: Callable[[WindowedTable], WindowedLogic] | None = None,
) -> DataFrame:
    """Aggregate a stream by windows, join the table by key and window that this makes, and give the changelog.

    Args:
        events: The stream that is aggregated, streaming or batch. A batch DataFrame is a history that has ended: it is
            one batch, and with `emit="close"` all its windows close.
        right: What is joined, as `with_` says.
        key: One or several columns. A row in which one of them is null is dropped, and doesn't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. A row without one is
            dropped.
        size: How long a window is; its end is exclusive.
        value: What is aggregated; `count` needs none.
        order: The order of arrival across both inputs, such as an offset; without it a batch is taken by timestamp.
        right_key: The right input's key, where it isn't called as on the left; likewise the other `right_…`.
        right_timestamp: Its event time.
        right_value: Its value. Of a table or a look-up it may be of any type, and a null deletes a table's row.
        right_order: Its order of arrival.
        step: From one window's start to the next one's; the size by default, and no more than it.
        grace: How long after its end a window still takes rows.
        aggregate: `count`, `sum`, `min`, `max`, `list`, or an `Aggregate` with a `value_type`.
        value_type: The type of the aggregate, as DDL or a DataType; known for the named ones.
        emit: `update` tells every change of a window, `close` its final value once.
        with_: What `right` is: nothing; a `table` by key; the events of another `windowed_table` under the same
            windows; or a stream (`stream_lookup`) or a table (`table_lookup`) whose rows look up a window of their key.
        join: `left`, and between two windowed tables `inner` (the default there) and `outer` too.
        shift: A window joins the other table's window that starts so much later (or, where negative, earlier).
        window_start: For a look-up: the right input's column with the start of the window, a timestamp or bigint ms.
        to_stream: How the result is re-keyed: not at all; `window_in_key`: a single string key becomes `key@start`, in
            ms; `window_in_value`: the value becomes `struct<value, window: struct<start: bigint, end: bigint>>`.
        retention: How much longer than its grace a window is kept for a table or look-ups; by default for ever, as the
            definition has it. A window that is forgotten isn't told again, and is looked up in vain.
        report_dropped: Whether rows that were dropped are told too.
        state_groups: As in `keyed`: None keeps one state for each key. A window stays in the state until it is closed:
            its own end and, with another windowed table, that of its partner are past by the grace. With a table or
            look-ups the table's rows stay, and the windows for as long as `retention` says.
        logic: Makes what decides, of a declaration; another than `WindowedLogic` for seeded bugs.

    Returns:
        As `keyed`. The value is the aggregate; joined, `struct<left, right>`, the primary side first: that is `right`
        in a look-up, whose result has no window. The timestamp is the largest of the rows that made it. A streaming
        result is in append mode. The clock is the largest event time of earlier batches.

    Raises:
        BadInput: A column is missing or of the wrong type, the inputs' keys clash, `right` is missing or too much, a
            duration can't be parsed, the windows or the join can't be declared (see `WindowedTable`), the key isn't a
            single string where the window is to go into it, or `retention` is given where the definition says it all.

    Source: join semantics, "Windowed Aggregate", "WTable", "JOIN operators".
    """
    declared = WindowedTable(
        size_ms=milliseconds("size", size),
        step_ms=UNSAID if step is None else milliseconds("step", step),
        grace_ms=milliseconds("grace", grace),
        aggregate=named_aggregate(aggregate) if isinstance(aggregate, str) else aggregate,
        emit=emit,
        with_=with_,
        join=UNSAID if join is None else join,
        shift_ms=milliseconds("shift", shift),
        window_start=None if window_start is None else "window_start",
        to_stream=to_stream,
    )
    if (right is None) != (declared.with_ is None):
        missing = f"with_ is {with_!r}, but there is no right input: give it"
        raise BadInput(missing if right is None else "there is a right input, but with_ doesn't say what it is")
    decides = (logic or WindowedLogic)(declared)
    decides.retention_ms = _retention(declared, retention)
    one, result = _aggregated(events, declared.aggregate, value, value_type, key, timestamp, order, SIDES[0])
    inputs, state, kept = [one], [_windows_type(result)], _windows_type(result)
    other: T.DataType = T.IntegerType()
    if right is not None:
        key = key if right_key is None else right_key
        timestamp = timestamp if right_timestamp is None else right_timestamp
        order = order if right_order is None else right_order
        right_value = value if right_value is None else right_value
        try:
            if declared.with_ == "windowed_table":
                second, other = _aggregated(
                    right, declared.aggregate, right_value, value_type, key, timestamp, order, SIDES[1]
                )
                kept = _windows_type(other)
            else:
                second, other = _looking(right, right_value, window_start, key, timestamp, order)
        except BadInput as error:
            raise BadInput(f"right: {error}") from None
        inputs.append(second)
    primary, secondary = (other, result) if declared.looked_up else (result, other)
    told_type = result if declared.with_ is None else joined_type(primary, secondary)
    row = T.StructType().add("value", other).add("start", "long").add("timestamp", "long")
    _require_key(declared, one)
    changes = keyed(
        inputs,
        decides,
        kept_type=T.StructType().add("events", state[0]).add("right", kept).add("row", row),
        value_type=told_type,
        state_groups=state_groups,
        report_dropped=report_dropped,
        declaration=declaration_of("windowed_table", declared, retention_ms=decides.retention_ms),
    )
    return _rekeyed(declared, changes, one.keys[0][1].name)


def native_windowed_table(
    events: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    size: Duration,
    value: ColumnLike | None = None,
    order: ColumnLike | None = None,
    step: Duration | None = None,
    grace: Duration = "0 ms",
    aggregate: str = "count",
    emit: Literal["update", "close"] = "close",
    with_: Literal["table", "windowed_table", "stream_lookup", "table_lookup"] | None = None,
    to_stream: Literal["window_in_key", "window_in_value"] | None = None,
) -> DataFrame:
    """Aggregate a stream by Spark's own `window`: each window once, when it closes (append mode).

    It keeps the laws of `windowed_table` with `emit="close"`, nothing joined, when a batch without data follows every
    batch (Spark's default trigger). Under `availableNow` lateness is tested against the watermark of one batch earlier,
    and a late row may still be taken. It doesn't tell the rows it drops, nor the windows of a batch in order of their
    end. `sum`, `min` and `max` leave null values out, which `windowed_table` refuses.

    Args:
        events: A streaming or a batch DataFrame; in a batch DataFrame all windows close.
        key: One or several columns; rows in which one is null are left out, and don't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms; windows start from 1970 on.
        size: How long a window is; its end is exclusive.
        value: What is aggregated; `count` needs none.
        order: The order in which the members of a `list` lie; by timestamp without it. Others need none.
        step: From one window's start to the next one's; the size by default, and no more than it.
        grace: How long after its end a window still takes rows: the watermark's delay.
        aggregate: `count`, `sum`, `min`, `max` or `list`.
        emit: `close`.
        with_: None.
        to_stream: As in `windowed_table`.

    Returns:
        The columns of `windowed_table` but `place`; `cause` is null, `ordinal` 0.

    Raises:
        BadInput: As `windowed_table`, and where `emit` is `update` or something is to be joined.

    Source: join semantics, "Windowed Aggregate"; Spark's guide, "Window Operations on Event Time".
    """
    declared = WindowedTable(
        size_ms=milliseconds("size", size),
        step_ms=UNSAID if step is None else milliseconds("step", step),
        grace_ms=milliseconds("grace", grace),
        aggregate=named_aggregate(aggregate),
        emit=emit,
        with_=with_,
        window_start="window_start" if with_ in ("stream_lookup", "table_lookup") else None,
        to_stream=to_stream,
    )
    require_native_windowed_table(declared)
    one = resolved(events, key=key, timestamp=timestamp, value=None, order=order)
    _require_key(declared, one)
    changes = closed_windows(
        events,
        key=key,
        timestamp=timestamp,
        value=value,
        order=order,
        size_ms=declared.size_ms,
        step_ms=declared.step_ms,
        grace_ms=declared.grace_ms,
        aggregate=declared.aggregate,
    )
    return _rekeyed(declared, changes, one.keys[0][1].name)


def require_native_windowed_table(declared: WindowedTable) -> None:
    """Refuse a windowed table that Spark's own operator can't mean.

    Raises:
        BadInput: The message names the option, the reason and the remedy.
    """
    if declared.with_ is not None:
        raise BadInput(
            f"with is {declared.with_!r}, but Spark's own windowed aggregate keeps no table that could be joined: "
            "leave with out, or use the stateful operator (spark)"
        )
    if declared.emit != "close":
        raise BadInput(
            f"emit is {declared.emit!r}, but Spark's own windowed aggregate doesn't tell every change, at best a "
            "batch's last: use emit close, or the stateful operator (spark)"
        )


def _retention(declared: WindowedTable, retention: Duration | None) -> int | None:
    if retention is None:
        return None
    if declared.with_ in (None, "windowed_table"):
        raise BadInput(
            "retention: here a window is forgotten once nothing can change it: leave it out, or raise the grace"
        )
    kept_ms = milliseconds("retention", retention)
    if kept_ms < 0:
        raise BadInput(f"retention is {retention!r}: it can't be negative; leave it out to keep windows for ever")
    return kept_ms


def _aggregated(
    frame: DataFrame,
    aggregate: Aggregate,
    value: ColumnLike | None,
    value_type: str | T.DataType | None,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    order: ColumnLike | None,
    side: str,
) -> tuple[Input, T.DataType]:
    """Find the columns of an input that is aggregated, and the type of its aggregate."""
    column, result = value_and_result(frame, aggregate, value, value_type)
    one = resolved(frame, key=key, timestamp=timestamp, value=None, order=order, side=side)
    return one._replace(value=column, value_type=frame.select(column).schema[0].dataType), result


def _looking(
    frame: DataFrame,
    value: ColumnLike | None,
    window_start: ColumnLike | None,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    order: ColumnLike | None,
) -> tuple[Input, T.DataType]:
    """Find the columns of a table or of an input that looks windows up: its values travel with the start they name."""
    if value is None:
        raise BadInput("value: there is none to be joined: name its column with right_value")
    one = resolved(frame, key=key, timestamp=timestamp, value=value, order=order, side=SIDES[1])
    start = F.lit(None).cast("bigint") if window_start is None else _start(frame, window_start)
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


def _windows_type(result: T.DataType) -> T.ArrayType:
    return T.ArrayType(T.StructType().add("start", "long").add("value", result).add("timestamp", "long"))


def _require_key(declared: WindowedTable, one: Input) -> None:
    kinds = [field.dataType for _, field in one.keys]
    if declared.to_stream == "window_in_key" and not (len(kinds) == 1 and isinstance(kinds[0], T.StringType)):
        shown = ", ".join(kind.simpleString() for kind in kinds)
        raise BadInput(
            f"to_stream: the key is {shown}, but a window goes into a single string: cast or concatenate it, or use "
            "window_in_value"
        )


def _rekeyed(declared: WindowedTable, changes: DataFrame, key: str) -> DataFrame:
    """Put the windows into the keys or the values; rows that were dropped have none."""
    if declared.to_stream is None:
        return changes
    bounds = [F.unix_millis(F.col("window")[name]).alias(name) for name in ("start", "end")]
    has_window, name = F.col("window").isNotNull(), f"`{key.replace('`', '``')}`"
    if declared.to_stream == "window_in_key":
        in_key = F.concat(F.col(name), F.lit("@"), bounds[0].cast("string"))
        changed = {key: F.when(has_window, in_key).otherwise(F.col(name))}
    else:
        # Nullable within too: Arrow refuses a null struct with a field that can't be null.
        in_value = F.struct(F.col("value"), F.when(has_window, F.struct(*bounds)).alias("window"))
        changed = {"value": F.when(has_window, in_value)}
    return changes.withColumns({**changed, "window": F.lit(None).cast(changes.schema["window"].dataType)})


class Windowed(NamedTuple):
    """A window's aggregate, and the largest timestamp that it has seen (ms)."""

    value: Any
    timestamp: int


class TableRow(NamedTuple):
    """The row of the table that is joined: its value, the window that it looks up, and its timestamp (all ms)."""

    value: Any
    start: int | None
    timestamp: int


@dataclass
class Kept:
    """The state of a key: each input's windows by their start, and the row of the table."""

    sides: dict[str, dict[int, Windowed]]
    row: TableRow | None


class WindowedLogic(Logic[Kept]):
    """What happens to one key: its windows, its row of the table, and their join.

    A window is told, that is, seen by the join, when it changes or, with emit `close`, once the clock has closed it.

    Attributes:
        retention_ms: How much longer than its grace (ms) a window is kept for a table or look-ups; None: for ever.
    """

    retention_ms: int | None = None

    def __init__(self, table: WindowedTable) -> None:
        self.table = table

    def empty(self) -> Kept:
        """No window, no row."""
        return Kept({side: {} for side in SIDES}, None)

    def pack(self, kept: Kept) -> tuple[Any, ...] | None:
        """The windows and the row, if there is anything to remember."""
        if not any(kept.sides.values()) and kept.row is None:
            return None
        return (*([(start, *at) for start, at in kept.sides[side].items()] for side in SIDES), kept.row)

    def unpack(self, fields: tuple[Any, ...]) -> Kept:
        """The windows and the row again."""
        *sides, row = fields
        windows = [{start: Windowed(value, timestamp) for start, value, timestamp in side} for side in sides]
        return Kept(dict(zip(SIDES, windows, strict=True)), None if row is None else TableRow(*row))

    def take(self, key: Key, kept: Kept, row: Arrived, clock: int) -> list[Told]:
        """Take a row of either input, and tell what it changes."""
        edge = clock - self.table.grace_ms
        if row.side == SIDES[0] or self.table.with_ == "windowed_table":
            told = self.aggregate(key, kept, row, edge)
        elif self.table.with_ == "stream_lookup" and row.value is None:
            return [dropped(row, "null value")]
        else:
            told = self.take_right(kept, row, edge)
        return [change._replace(cause=row.order) for change in told]

    def aggregate(self, key: Key, kept: Kept, row: Arrived, edge: int) -> list[Told]:
        """Add a row to its windows, and tell those with emit `update`, by end."""
        assert row.timestamp is not None
        starts = self.open(row.timestamp, edge)
        if not starts:
            return [dropped(row, "late")]
        by, windows = self.table.aggregate, kept.sides[row.side]
        by.check(row.value)
        for start in starts:
            at = windows.get(start) or Windowed(by.initializer(), 0)
            value = by.aggregator(bare(key), row.value, at.value)
            windows[start] = Windowed(value, max(at.timestamp, row.timestamp))
        if self.table.emit == "close":
            return []
        return [change for start in starts for change in self.tell(kept, row.side, start, edge)]

    def open(self, timestamp: int, edge: int) -> list[int]:
        """Give the starts of the windows that take a row of that timestamp (ms): those that end after the edge."""
        return [start for start in self.table.starts(timestamp) if start + self.table.size_ms > edge]

    def told(self, kept: Kept, side: str, start: int | None, edge: int) -> Windowed | None:
        """Give a window that has been told when what ends up to the edge (ms) is closed."""
        if start is None or (self.table.emit == "close" and start + self.table.size_ms > edge):
            return None
        return kept.sides[side].get(start)

    def tell(self, kept: Kept, side: str, start: int, edge: int) -> list[Told]:
        """Tell what a window that has changed changes in the result."""
        match self.table.with_:
            case None:
                return [self.change(start, *kept.sides[side][start])]
            case "windowed_table":
                at = start if side == SIDES[0] else start - self.table.shift_ms
                return self.tell_pair(kept, side, at, edge) if at >= 0 else []
            case "table":
                return [self.tell_with_row(kept, start, kept.sides[side][start])]
            case "table_lookup" if kept.row is not None and kept.row.start == start:
                return [self.tell_looked_up(kept.row, kept.sides[side][start])]
        return []

    def tell_pair(self, kept: Kept, side: str, start: int, edge: int) -> list[Told]:
        """Tell a row of the join of two windowed tables, of which one side has changed."""
        left = self.told(kept, SIDES[0], start, edge)
        right = self.told(kept, SIDES[1], start + self.table.shift_ms, edge)
        needed = {"inner": [left, right], "left": [left], "outer": []}[self.table.join]
        if any(one is None for one in needed):
            return []
        stamps = [one.timestamp for one in (left, right) if one is not None]
        return [self.change(start, joined(left and left.value, right and right.value), max(stamps))]

    def tell_with_row(self, kept: Kept, start: int, at: Windowed) -> Told:
        """Tell a window with the table's row, or without."""
        row = kept.row
        stamp = at.timestamp if row is None else max(at.timestamp, row.timestamp)
        return self.change(start, joined(at.value, row and row.value), stamp)

    def tell_looked_up(self, row: TableRow, at: Windowed | None) -> Told:
        """Tell a row with the window that it looks up, or without."""
        stamp = row.timestamp
        if at is not None and self.table.with_ == "table_lookup":
            stamp = max(stamp, at.timestamp)
        return self.change(None, joined(row.value, at and at.value), stamp)

    def take_right(self, kept: Kept, row: Arrived, edge: int) -> list[Told]:
        """Take a row of the table, or one that looks up, and tell what it changes."""
        assert row.timestamp is not None
        new = None if row.value is None else TableRow(row.value["value"], row.value["start"], row.timestamp)
        found = None if new is None else self.told(kept, SIDES[0], new.start, edge)
        if self.table.with_ == "stream_lookup":
            assert new is not None
            return [self.tell_looked_up(new, found)]
        old, kept.row = kept.row, new
        if self.table.with_ == "table":
            windows = [(start, self.told(kept, SIDES[0], start, edge)) for start in sorted(kept.sides[SIDES[0]])]
            changes = [self.tell_with_row(kept, start, at) for start, at in windows if at is not None]
            return [change._replace(timestamp=max(change.timestamp or 0, row.timestamp)) for change in changes]
        if new is not None:
            return [self.tell_looked_up(new, found)]
        return [] if old is None else [self.change(None, None, row.timestamp)]

    def change(self, start: int | None, value: Any, timestamp: int) -> Told:
        """Tell a row of the result: an update, or a tombstone where the value is None."""
        end = None if start is None else start + self.table.size_ms
        return Told(start, end, value, timestamp, TOMBSTONE if value is None else UPDATE, None, None)

    def close(self, kept: Kept, told: int, clock: int) -> list[Told]:
        """Tell the windows that the clock has closed since `told` (ms), as though it passed each end in turn."""
        table = self.table
        if table.emit == "update":
            return []
        ends: dict[int, list[tuple[str, int]]] = {}
        for side in SIDES:
            for start in kept.sides[side]:
                end = start + table.size_ms
                if told < end + table.grace_ms <= clock:
                    ends.setdefault(end, []).append((side, start))
        return [change for end, closed in sorted(ends.items()) for change in self.tell_closed(kept, closed, end)]

    def tell_closed(self, kept: Kept, closed: list[tuple[str, int]], edge: int) -> list[Told]:
        """Tell windows that close together, by end; a row of the result that both sides change is told once."""
        told = {change.end: change for side, start in closed for change in self.tell(kept, side, start, edge)}
        return sorted(told.values(), key=lambda change: change.end or 0)

    def keep(self, kept: Kept, told: int, clock: int) -> Kept:
        """Forget the windows that nothing can change any more, once they are told."""
        now = told if self.table.emit == "close" else clock
        for side, windows in kept.sides.items():
            kept.sides[side] = {
                start: at for start, at in windows.items() if (over := self.over(side, start)) is None or over > now
            }
        return kept

    def over(self, side: str, start: int) -> int | None:
        """Give when (ms) a window is needed no more, or None."""
        closed = start + self.table.size_ms + self.table.grace_ms
        if self.table.with_ == "windowed_table":
            shift = self.table.shift_ms
            return closed + max(0, shift if side == SIDES[0] else -shift)
        if self.table.with_ is None:
            return closed
        return None if self.retention_ms is None else closed + self.retention_ms

    def due(self, kept: Kept, clock: int) -> int | None:
        """The next time at which a window closes or, at the next multiple of half its life, can be forgotten."""
        half = max((self.table.size_ms + self.table.grace_ms) // 2, 1)
        times = []
        for side, windows in kept.sides.items():
            for start in windows:
                over = self.over(side, start)
                times += [] if over is None else [-(-over // half) * half]
                times += [start + self.table.size_ms + self.table.grace_ms] if self.table.emit == "close" else []
        return min((time for time in times if time > clock), default=None)
