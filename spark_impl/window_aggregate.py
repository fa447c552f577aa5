"""Samza's stateful window operator on Spark: fixed windows by time or by number of messages, and sessions.

Source: Samza's window operator (SAMZA-552), `process` and `refresh`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from ..reference.core.errors import BadInput
from ..reference.definitions.aggregates import AGGREGATES_OF_SAMZA, named_aggregate
from ..reference.definitions.declarations import UNSET
from ..reference.definitions.windows import Early, WindowAggregate
from .runtime.columns import ColumnLike, accumulator_type, bare, resolve, value_and_result
from .runtime.durations import Duration, milliseconds
from .runtime.inputs import resolved
from .runtime.keyed import InitialState, declaration_of, keyed
from .runtime.logic import BEFORE_ALL_TIMES, TOMBSTONE, UPDATE, Arrived, Key, Logic, LogicOutput, dropped
from .runtime.native import closed_windows


def window_aggregate(
    events: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    size: Duration | int,
    value: ColumnLike | None = None,
    order: ColumnLike | None = None,
    type: Literal["fixed", "session"] = "fixed",
    unit: Literal["ms", "tuple"] = "ms",
    step: Duration | int | None = None,
    retention: Duration = "0 ms",
    storage: Literal["aggregate", "full"] = "aggregate",
    aggregate: str = "count",
    early: Duration | int | None = None,
    late: Literal["drop", "update"] = "drop",
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[WindowAggregate], WindowLogic] | None = None,
) -> DataFrame:
    """Aggregate a stream by Samza's windows, and return the changelog of the aggregates, or the messages.

    In place of Samza's `beforeProcess`, use a `select` or `filter` of the input; in place of `beforeSend`, of the
    result.

    Args:
        events: A streaming or a batch DataFrame. A batch DataFrame is a complete history: it is one batch, and all its
            windows by time are complete.
        key: One or several columns. A row with a null key is dropped, and doesn't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. A row without a
            timestamp is dropped.
        size: The length of a fixed window: a duration or, with `unit="tuple"`, a number of rows; a session's gap.
        value: The column to aggregate or, with `storage="full"`, to emit; `count` needs no column.
        order: The order of arrival within a batch, such as an offset; by default a batch is in timestamp order.
        type: `fixed` windows start at multiples of the step since 1970, and their end is exclusive. `session` windows
            are bounded by the timestamps of rows.
        unit: `ms`, or `tuple`: windows of `size` rows of a key, in order of arrival, with bounds counted in rows.
        step: The distance between starts of fixed windows, in the unit; the size by default, and at most the size.
        retention: The time for which a complete window is stored, for late rows and for readers of the state. The time
            is a lower bound: the state is removed at the next multiple of half the time.
        storage: `aggregate` emits a window's aggregate; `full` stores a window's rows, and emits each row once.
        aggregate: `count`, `sum`, `min`, `max`, `list` or `average`.
        early: When to emit a window that isn't complete. A number: when the window contains that number of rows not yet
            emitted. A duration: when the clock passes a multiple of the duration. By default never.
        late: `drop` ignores rows of complete windows; `update` adds late rows to windows that are still stored.
        report_dropped: Whether the changelog also contains dropped rows.
        state_groups: As in `keyed`. A window by time stays in the state until it is
            complete and past its retention. With `unit="tuple"`, a key's last windows and its number of rows stay for
            ever.
        initial_state: As in `keyed`.
        logic: Makes the logic that processes a key's rows, by default `WindowLogic`; mutation testing passes logic with
            a bug.

    Returns:
        The columns of `keyed`'s changelog; the timestamp of an update is the window's largest timestamp. A session that
        has grown or merged since it was emitted first emits tombstones of the old sessions. With `storage="full"` each
        row of a window is emitted once, with its own timestamp. The bounds of a window of tuples are numbers of rows,
        emitted as ms since 1970. A streaming result is in append mode. The clock is the largest event time of earlier
        batches.

    Raises:
        BadInput: A column is missing or of the wrong type, a duration can't be parsed, a size or step has the wrong
            unit, or the windows are invalid (see `WindowAggregate`).

    Source: Samza's window operator (SAMZA-552), `WindowOperatorSpec`.
    """
    declared = _declared(size, type, unit, step, retention, storage, aggregate, early, late)
    value_column, held, result_type = _held(events, declared, value)
    one = resolved(events, key=key, timestamp=timestamp, value=None, order=order)
    return keyed(
        [one._replace(value=value_column, value_type=events.select(value_column).schema[0].dataType)],
        (logic or WindowLogic)(declared),
        state_type=T.StructType().add("rows", "long").add("windows", T.ArrayType(_window_type(held))),
        value_type=result_type,
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        declaration=declaration_of("window_aggregate", declared),
    )


def native_window_aggregate(
    events: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    size: Duration | int,
    value: ColumnLike | None = None,
    order: ColumnLike | None = None,
    type: Literal["fixed", "session"] = "fixed",
    unit: Literal["ms", "tuple"] = "ms",
    step: Duration | int | None = None,
    retention: Duration = "0 ms",
    storage: Literal["aggregate", "full"] = "aggregate",
    aggregate: str = "count",
    early: Duration | int | None = None,
    late: Literal["drop", "update"] = "drop",
) -> DataFrame:
    """Aggregate a stream by Spark's own `window`; each window by time is emitted once, when complete (append mode).

    The result satisfies the laws of `window_aggregate` without early emission, with `late="drop"`, if a batch without
    data follows every batch (Spark's default trigger). Under `availableNow` lateness is tested against the previous
    batch's watermark, so a late row may still be accepted. The result contains no dropped rows, and the windows of a
    batch are in no order. `sum`, `min`, `max` and `average` ignore null values, which `window_aggregate` refuses.

    Sessions aren't supported, because the operators test lateness differently: Spark's `session_window` tests a row's
    own timestamp, Samza tests the session that the row would join. The smallest example, with gap 6: a row at 15, the
    clock reaches 20, a row at 13. Samza merges the second row with the session [15, 15], which is open until the clock
    has passed 21. Spark drops the second row as late.

    Args:
        events: A streaming or a batch DataFrame; in a batch DataFrame all windows are complete.
        key: One or several columns; rows with a null key are ignored, and don't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms; windows start from 1970 on.
        size: The length of a window.
        value: The column to aggregate; `count` needs no column.
        order: The order of the members of a `list`, by default by timestamp; other aggregates ignore it.
        type: `fixed`.
        unit: `ms`.
        step: The time between the starts of consecutive windows; the size by default, and at most the size.
        retention: Ignored: a complete window accepts no rows, and leaves the state.
        storage: `aggregate`.
        aggregate: `count`, `sum`, `min`, `max`, `list` or `average`.
        early: None.
        late: `drop`.

    Returns:
        The columns of `window_aggregate` without `place`; `cause` is null, `ordinal` 0.

    Raises:
        BadInput: Any error of `window_aggregate`, or Spark's operator doesn't support an option.

    Source: Samza's window operator (SAMZA-552); Spark's guide, "Window Operations on Event Time".
    """
    declared = _declared(size, type, unit, step, retention, storage, aggregate, early, late)
    require_native_window_aggregate(declared)
    value_column, _ = value_and_result(events, declared.aggregate, value)
    one = resolved(events, key=key, timestamp=timestamp, value=None, order=order)._replace(value=value_column)
    return closed_windows(one, size_ms=declared.size, step_ms=declared.step, grace_ms=0, aggregate=declared.aggregate)


def require_native_window_aggregate(declared: WindowAggregate) -> None:
    """Refuse windows that Spark's own operator doesn't support.

    Raises:
        BadInput: The message names the option, the reason and the remedy.
    """
    stateful = "use the stateful operator (spark)"
    if declared.type == "session":
        raise BadInput(
            "type is 'session', but Spark's own session_window tests only the row, and drops a row that its session "
            f"would still accept: {stateful}, or session_windows with late own"
        )
    if declared.unit == "tuple":
        raise BadInput(f"unit is 'tuple', but Spark's own windows are bounded by time: {stateful}")
    if declared.storage == "full":
        raise BadInput(f"storage is 'full', but Spark's own window stores an aggregate, not rows: {stateful}")
    if declared.early is not None:
        raise BadInput(f"early is given, but Spark's own window is emitted once, when it is complete: {stateful}")
    if declared.late == "update":
        raise BadInput(f"late is 'update', but Spark's own window is forgotten once it is emitted: {stateful}")


def _declared(
    size: Duration | int,
    type: Literal["fixed", "session"],
    unit: Literal["ms", "tuple"],
    step: Duration | int | None,
    retention: Duration,
    storage: Literal["aggregate", "full"],
    aggregate: str,
    early: Duration | int | None,
    late: Literal["drop", "update"],
) -> WindowAggregate:
    return WindowAggregate(
        size=_length("size", size, unit),
        type=type,
        unit=unit,
        step=UNSET if step is None else _length("step", step, unit),
        retention_ms=milliseconds("retention", retention),
        storage=storage,
        aggregate=named_aggregate(aggregate, AGGREGATES_OF_SAMZA),
        early=_early(early),
        late=late,
    )


def _length(name: str, length: Duration | int, unit: str) -> int:
    if unit != "tuple":
        return milliseconds(name, length)  # type: ignore[arg-type]
    if not isinstance(length, int) or isinstance(length, bool):
        raise BadInput(f"{name} is {length!r}, but the unit is tuple: give a number of rows")
    return length


def _early(early: Duration | int | None) -> Early | None:
    if early is None:
        return None
    if isinstance(early, int):
        return Early.read({"every_tuples": early})
    return Early.read({"every_ms": milliseconds("early", early)})


def _held(
    events: DataFrame, windows: WindowAggregate, value: ColumnLike | None
) -> tuple[Column, T.DataType, T.DataType]:
    """Return the value's column, the type that a window stores, and the type of the emitted values."""
    if windows.storage == "aggregate":
        column, result = value_and_result(events, windows.aggregate, value)
        return column, accumulator_type(events, windows.aggregate, column, result), result
    if value is None:
        raise BadInput("value: storage full emits the rows' values: name the column that contains them")
    column, field = resolve(events, "value", value)
    message = T.StructType().add("timestamp", "long").add("value", field.dataType).add("emitted", "boolean")
    return column, T.ArrayType(message), field.dataType


def _window_type(held: T.DataType) -> T.StructType:
    bounds = T.StructType().add("start", "long").add("end", "long")
    window = T.StructType(list(bounds.fields)).add("held", held).add("rows", "long").add("latest", "long")
    return window.add("not_emitted", "long").add("since", "long").add("shown", T.ArrayType(bounds))


class Message(NamedTuple):
    """A row (times in ms) in a window with full storage, and whether it has been emitted."""

    timestamp: int
    value: Any
    emitted: bool


@dataclass(eq=False)
class Filled:
    """A window that contains rows.

    Attributes:
        start: The window's start (ms); for a window of tuples, the number of its first row.
        end: The window's end, exclusive; for a session, the timestamp of the last row.
        held: The unfinished aggregate of the window's rows or, with full storage, the rows.
        rows: The number of the window's rows.
        latest: The largest timestamp of the window's rows (ms).
        not_emitted: The number of the window's rows that haven't been emitted.
        since: The clock's time (ms) at the arrival of the first row that hasn't been emitted.
        shown: The windows under which the table contains earlier results of this window.
    """

    start: int
    end: int
    held: Any
    rows: int
    latest: int
    not_emitted: int
    since: int
    shown: list[tuple[int, int]]


_start, _end = attrgetter("start"), attrgetter("end")
_fields = attrgetter("start", "end", "held", "rows", "latest", "not_emitted", "since", "shown")


@dataclass
class State:
    """The state of a key: its number of rows so far, if its windows are of tuples, and its windows by end."""

    rows: int
    windows: list[Filled]


class WindowLogic(Logic[State]):
    """The logic of a key; the state contains the key's windows."""

    def __init__(self, windows: WindowAggregate) -> None:
        self.windows = windows

    def empty(self) -> State:
        """No window."""
        return State(0, [])

    def pack(self, state: State) -> tuple[Any, ...] | None:
        """Pack the windows, and the number of rows, if any."""
        if not state.windows and not state.rows:
            return None
        return state.rows, [_fields(one) for one in state.windows]

    def unpack(self, fields: tuple[Any, ...]) -> State:
        """The windows again."""
        rows, windows = fields
        state = State(rows, [Filled(*window) for window in windows])
        for one in state.windows:
            one.shown = [(start, end) for start, end in one.shown]
            if self.windows.storage == "full":
                one.held = [Message(*message) for message in one.held]
        return state

    def take(self, key: Key, state: State, row: Arrived, clock: int) -> list[LogicOutput]:
        """Add a row to its windows, and emit the windows that become due."""
        assert row.timestamp is not None
        if self.windows.storage == "full":
            if row.value is None:
                return [dropped(row, "null value")]
        else:
            self.windows.aggregate.check(row.value)
        taken = self.merged(key, state, row, clock) if self.windows.type == "session" else self.fixed(state, row, clock)
        if not taken:
            return [dropped(row, "late")]
        emitted: list[LogicOutput] = []
        for one in taken:
            self.add(key, one, row, clock)
            if self.is_due(one, clock):
                emitted += [change._replace(cause=row.order) for change in self.emit(one)]
                if self.is_over(one, clock):
                    state.windows.remove(one)
        return emitted

    def fixed(self, state: State, row: Arrived, clock: int) -> list[Filled]:
        """Return the fixed windows that accept a row."""
        assert row.timestamp is not None
        index = state.rows
        if self.windows.unit == "tuple":
            state.rows += 1
        taken = []
        for start, end in self.windows.fixed(row.timestamp, index, clock):
            at = bisect_left(state.windows, end, key=_end)
            if at == len(state.windows) or state.windows[at].end != end:
                state.windows.insert(at, self.opened(start, end))
            taken.append(state.windows[at])
        return taken

    def merged(self, key: Key, state: State, row: Arrived, clock: int) -> list[Filled]:
        """Merge the sessions near a row, and return the merged session, or nothing if it is complete."""
        at, edge = row.timestamp, self.edge(clock)
        assert at is not None
        near = self.near(state, at, edge)
        start, end = min([at, *map(_start, near)]), max([at, *map(_end, near)])
        if end < edge:
            return []
        session = self.opened(start, end)
        for one in near:
            state.windows.remove(one)
            self.join(key, session, one)
        insort(state.windows, session, key=_end)
        return [session]

    def edge(self, clock: int) -> int:
        """Return the timestamp (ms) before which ended sessions accept no more rows, at a clock time (ms)."""
        return clock - self.windows.size - self.windows.late_ms

    def near(self, state: State, timestamp: int, edge: int) -> list[Filled]:
        """Return the sessions that a row with this timestamp (ms) joins, by end."""
        gap = self.windows.size
        first = bisect_left(state.windows, max(timestamp - gap, edge), key=_end)
        # Search by start too: sessions that still accept rows don't overlap, so they are also in the order of their
        # starts.
        return state.windows[first : bisect_right(state.windows, timestamp + gap, first, key=_start)]

    def opened(self, start: int, end: int) -> Filled:
        """Return a window without rows."""
        full = self.windows.storage == "full"
        return Filled(start, end, [] if full else self.windows.aggregate.initializer(), 0, BEFORE_ALL_TIMES, 0, 0, [])

    def join(self, key: Key, session: Filled, other: Filled) -> None:
        """Merge a later session into a session."""
        if self.windows.storage == "full":
            session.held = session.held + other.held
        else:
            session.held = self.windows.aggregate.merger(bare(key), session.held, other.held)
        if other.not_emitted:
            session.since = min(session.since, other.since) if session.not_emitted else other.since
        session.not_emitted += other.not_emitted
        session.rows += other.rows
        session.latest = max(session.latest, other.latest)
        session.shown = [*session.shown, *other.shown]

    def add(self, key: Key, window: Filled, row: Arrived, clock: int) -> None:
        """Add a row to a window."""
        assert row.timestamp is not None
        if self.windows.storage == "full":
            window.held.append(Message(row.timestamp, row.value, False))
        else:
            window.held = self.windows.aggregate.aggregator(bare(key), row.value, window.held)
        window.rows += 1
        window.latest = max(window.latest, row.timestamp)
        window.since = window.since if window.not_emitted else clock
        window.not_emitted += 1

    def is_complete(self, window: Filled, clock: int) -> bool:
        """Return whether a window is complete at a clock time (ms): by number of rows, end or session gap."""
        if self.windows.unit == "tuple":
            return window.rows == self.windows.size
        return clock >= self.completion(window)

    def completion(self, window: Filled) -> int:
        """Return when (ms) a window by time is complete."""
        return window.end + self.windows.size + 1 if self.windows.type == "session" else window.end

    def is_due(self, window: Filled, clock: int) -> bool:
        """Return whether a window has unemitted rows, and is complete or due by the early-emission policy."""
        early = self.windows.early
        if not window.not_emitted or self.is_complete(window, clock):
            return window.not_emitted > 0
        if early is not None and early.every_tuples is not None:
            return window.not_emitted >= early.every_tuples
        return early is not None and clock >= self.tick(window)

    def tick(self, window: Filled) -> int:
        """Return when (ms) a window is emitted early."""
        early = self.windows.early
        assert early is not None
        assert early.every_ms is not None
        return (window.since // early.every_ms + 1) * early.every_ms

    def is_over(self, window: Filled, clock: int) -> bool:
        """Return whether a window has been complete, and emitted, longer than the retention at a clock time (ms)."""
        return not window.not_emitted and (over := self.over(window)) is not None and over <= clock

    def over(self, window: Filled) -> int | None:
        """Return when (ms) a window can be forgotten, or None for an incomplete window of tuples."""
        retention_ms = self.windows.retention_ms
        if self.windows.unit != "tuple":
            return self.completion(window) + retention_ms
        if window.rows < self.windows.size:
            return None
        return window.latest + retention_ms + 1 if retention_ms else 0

    def emit(self, window: Filled) -> list[LogicOutput]:
        """Emit a window: the aggregate, which replaces earlier output; with full storage, the rows not yet emitted."""
        window.not_emitted = 0
        if self.windows.storage == "full":
            not_emitted = [message for message in window.held if not message.emitted]
            window.held = [message._replace(emitted=True) for message in window.held]
            return [self.update(window, message.value, message.timestamp) for message in not_emitted]
        emitted = [self.tombstone(*shown) for shown in self.gone(window)] if window.shown else []
        window.shown = [(window.start, window.end)] if self.windows.type == "session" else []
        return [*emitted, self.update(window, self.windows.aggregate.finish(window.held), window.latest)]

    def gone(self, window: Filled) -> Iterable[tuple[int, int]]:
        """Return the earlier windows of a session that the table still contains, by end."""
        return sorted(
            (shown for shown in window.shown if shown != (window.start, window.end)), key=lambda shown: shown[1]
        )

    def update(self, window: Filled, value: Any, timestamp: int) -> LogicOutput:
        """Return an update of a window."""
        return LogicOutput(window.start, window.end, value, timestamp, UPDATE, None, None)

    def tombstone(self, start: int, end: int) -> LogicOutput:
        """Return the tombstone of an earlier window of a session."""
        return LogicOutput(start, end, None, end, TOMBSTONE, None, None)

    def close(self, state: State, emitted: int, clock: int) -> list[LogicOutput]:
        """Emit the windows that the clock has made due, by end: Samza's `refresh`."""
        return [change for one in state.windows if self.is_due(one, clock) for change in self.emit(one)]

    def keep(self, state: State, emitted: int, clock: int) -> State:
        """Return the state without the windows past their retention."""
        state.windows = [one for one in state.windows if not self.is_over(one, clock)]
        return state

    def due(self, state: State, clock: int) -> int | None:
        """Return the next time (ms) at which a window is complete, due or past its retention."""
        windows, times = self.windows, []
        half = windows.retention_ms // 2 or 1
        for one in state.windows:
            if one.not_emitted and windows.unit != "tuple":
                times.append(self.completion(one))
            if one.not_emitted and windows.early is not None and windows.early.every_ms is not None:
                times.append(self.tick(one))
            over = self.over(one)
            if over is not None:
                times.append(-(-over // half) * half)
        return min([time for time in times if time > clock], default=None)
