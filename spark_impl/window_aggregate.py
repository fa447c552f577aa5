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

    Instead of Samza's `beforeProcess`, `select` or `filter` the input; instead of `beforeSend`, the result.

    Args:
        events: A streaming or a batch DataFrame. A batch DataFrame is a history that has ended: it is one batch, and
            all its windows by time are complete.
        key: One or several columns. A row in which one of them is null is dropped, and doesn't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. A row without one is
            dropped.
        size: The length of a fixed window: a duration or, with `unit="tuple"`, a number of rows; a session's gap.
        value: The column to aggregate or, with `storage="full"`, to emit; `count` needs none.
        order: The order of arrival within a batch, such as an offset; by default a batch is in timestamp order.
        type: `fixed` windows, whose end is exclusive and which start at multiples of the step since 1970; or one
            `session` after another, whose bounds are timestamps of rows.
        unit: `ms`, or `tuple`: windows of `size` rows of a key, in order of arrival, with bounds counted in rows.
        step: The distance between starts of fixed windows, in the unit; the size by default, and at most the size.
        retention: How long a complete window is stored, for late rows and to be read from the state. It is a lower
            bound: the state is removed at the next multiple of half of it.
        storage: `aggregate` emits a window's aggregate; `full` stores its rows, and emits those not emitted before.
        aggregate: `count`, `sum`, `min`, `max`, `list` or `average`.
        early: When a window is emitted before it is complete: with a number, when it has that many rows that aren't
            emitted yet; with a duration, whenever the clock passes a multiple of it. Never by default.
        late: `drop` leaves a row out of complete windows; `update` adds it to those that are retained.
        report_dropped: Whether dropped rows are emitted too.
        state_groups: As in `keyed`. A window by time stays in the state until it is
            complete and past its retention. By tuple, a key's last windows and its count of rows stay for ever.
        initial_state: As in `keyed`.
        logic: Makes the logic of a declaration; `WindowLogic` by default, another for mutants.

    Returns:
        As `keyed`; the timestamp of an update is the largest in its window. A session that has grown or merged since it
        was emitted is preceded by tombstones of the old sessions. With `storage="full"` each row of a window is emitted
        once, with its own timestamp. The bounds of a window of tuples are numbers of rows, emitted as ms since 1970. A
        streaming result is in append mode. The clock is the largest event time of earlier batches.

    Raises:
        BadInput: A column is missing or of the wrong type, a duration can't be parsed, a size or step is in the wrong
            unit, or the windows can't be declared (see `WindowAggregate`).

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

    It satisfies the laws of `window_aggregate` without early emission, with `late="drop"`, when a batch without data
    follows every batch (Spark's default trigger). Under `availableNow` lateness is tested against the watermark of one
    batch earlier, and a late row may still be accepted. It doesn't emit the rows it drops, and the windows of a batch
    are in no order. `sum`, `min`, `max` and `average` leave null values out, which `window_aggregate` refuses.

    It has no sessions: for lateness Spark's `session_window` tests a row's own timestamp, Samza the session that the
    row would be in. The smallest history, with gap 6: a row at 15, the clock reaches 20, a row at 13. Samza merges it
    with the session [15, 15], which is open until the clock has passed 21; to Spark it is late.

    Args:
        events: A streaming or a batch DataFrame; in a batch DataFrame all windows are complete.
        key: One or several columns; rows in which one is null are left out, and don't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms; windows start from 1970 on.
        size: The length of a window.
        value: The column to aggregate; `count` needs none.
        order: The order of the members of a `list`, by default by timestamp; other aggregates need none.
        type: `fixed`.
        unit: `ms`.
        step: The time from one window's start to the next; the size by default, and at most the size.
        retention: Has no effect here: a complete window accepts no rows, and leaves the state.
        storage: `aggregate`.
        aggregate: `count`, `sum`, `min`, `max`, `list` or `average`.
        early: None.
        late: `drop`.

    Returns:
        The columns of `window_aggregate` but `place`; `cause` is null, `ordinal` 0.

    Raises:
        BadInput: As `window_aggregate`, and where an option isn't one that Spark's operator can serve.

    Source: Samza's window operator (SAMZA-552); Spark's guide, "Window Operations on Event Time".
    """
    declared = _declared(size, type, unit, step, retention, storage, aggregate, early, late)
    require_native_window_aggregate(declared)
    value_column, _ = value_and_result(events, declared.aggregate, value)
    one = resolved(events, key=key, timestamp=timestamp, value=None, order=order)._replace(value=value_column)
    return closed_windows(one, size_ms=declared.size, step_ms=declared.step, grace_ms=0, aggregate=declared.aggregate)


def require_native_window_aggregate(declared: WindowAggregate) -> None:
    """Refuse windows that Spark's own operator can't do.

    Raises:
        BadInput: The message names the option, the reason and the remedy.
    """
    stateful = "use the stateful operator (spark)"
    if declared.type == "session":
        raise BadInput(
            "type is 'session', but Spark's own session_window tests only the row, and drops a row that its session "
            f"would still take: {stateful}, or session_windows with late own"
        )
    if declared.unit == "tuple":
        raise BadInput(f"unit is 'tuple', but Spark's own window goes by time: {stateful}")
    if declared.storage == "full":
        raise BadInput(f"storage is 'full', but Spark's own window keeps an aggregate, no rows: {stateful}")
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
        raise BadInput("value: storage full emits the rows' values: name the column that holds them")
    column, field = resolve(events, "value", value)
    message = T.StructType().add("timestamp", "long").add("value", field.dataType).add("emitted", "boolean")
    return column, T.ArrayType(message), field.dataType


def _window_type(held: T.DataType) -> T.StructType:
    bounds = T.StructType().add("start", "long").add("end", "long")
    window = T.StructType(list(bounds.fields)).add("held", held).add("rows", "long").add("latest", "long")
    return window.add("not_emitted", "long").add("since", "long").add("shown", T.ArrayType(bounds))


class Message(NamedTuple):
    """A row that a window with full storage stores (ms), and whether it has been emitted."""

    timestamp: int
    value: Any
    emitted: bool


@dataclass(eq=False)
class Filled:
    """A window with rows in it.

    Attributes:
        start: Its first ms or, by tuple, row.
        end: Its end, exclusive; of a session, its last row's timestamp.
        held: The unfinished aggregate of its rows or, with full storage, the rows themselves.
        rows: The number of its rows.
        latest: Their largest timestamp (ms).
        not_emitted: The number of its rows that haven't been emitted.
        since: The clock (ms) when the first row that hasn't been emitted arrived.
        shown: The windows under which the table has rows of it.
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
    """The state of a key: its number of rows so far, if its windows are by tuple, and its windows by end."""

    rows: int
    windows: list[Filled]


class WindowLogic(Logic[State]):
    """The logic of a key; its state is its windows.

    It has a method for each of the window operator's policies and callbacks, and so more than other operators' logics.
    """

    def __init__(self, windows: WindowAggregate) -> None:
        self.windows = windows

    def empty(self) -> State:
        """No window."""
        return State(0, [])

    def pack(self, state: State) -> tuple[Any, ...] | None:
        """The windows, and the count of rows, if there is anything to remember."""
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
        """Add a row to its windows, and emit the windows that it makes due."""
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
        """Merge the sessions near a row, and return the merged session; nothing if that is complete."""
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
        """Return the time (ms) before which a session must have ended to accept no more rows at that clock."""
        return clock - self.windows.size - self.windows.late_ms

    def near(self, state: State, timestamp: int, edge: int) -> list[Filled]:
        """Return the sessions that a row at that timestamp (ms) belongs to, by end."""
        gap = self.windows.size
        first = bisect_left(state.windows, max(timestamp - gap, edge), key=_end)
        # Sessions that still accept rows don't overlap, so their starts are in order too.
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
        """Return whether a window has reached its size at that clock (ms)."""
        if self.windows.unit == "tuple":
            return window.rows == self.windows.size
        return clock >= self.completion(window)

    def completion(self, window: Filled) -> int:
        """Return when (ms) a window by time is complete."""
        return window.end + self.windows.size + 1 if self.windows.type == "session" else window.end

    def is_due(self, window: Filled, clock: int) -> bool:
        """Return whether a window has something to emit, and is complete or due by the early-emission policy."""
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
        """Return whether a window has been complete, and emitted, for longer than the retention at that clock (ms)."""
        return not window.not_emitted and (over := self.over(window)) is not None and over <= clock

    def over(self, window: Filled) -> int | None:
        """Return when (ms) a window is over, or None: an incomplete window by tuple waits for ever."""
        retention_ms = self.windows.retention_ms
        if self.windows.unit != "tuple":
            return self.completion(window) + retention_ms
        if window.rows < self.windows.size:
            return None
        return window.latest + retention_ms + 1 if retention_ms else 0

    def emit(self, window: Filled) -> list[LogicOutput]:
        """Emit a window's aggregate, replacing its earlier rows; or its rows not emitted before."""
        window.not_emitted = 0
        if self.windows.storage == "full":
            not_emitted = [message for message in window.held if not message.emitted]
            window.held = [message._replace(emitted=True) for message in window.held]
            return [self.update(window, message.value, message.timestamp) for message in not_emitted]
        emitted = [self.tombstone(*shown) for shown in self.gone(window)] if window.shown else []
        window.shown = [(window.start, window.end)] if self.windows.type == "session" else []
        return [*emitted, self.update(window, self.windows.aggregate.finish(window.held), window.latest)]

    def gone(self, window: Filled) -> Iterable[tuple[int, int]]:
        """Return the earlier windows of a session that the table still has, by end."""
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
        """Return the state without the windows that are out of retention."""
        state.windows = [one for one in state.windows if not self.is_over(one, clock)]
        return state

    def due(self, state: State, clock: int) -> int | None:
        """Return the next time (ms) at which a window is complete, due or out of retention."""
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
