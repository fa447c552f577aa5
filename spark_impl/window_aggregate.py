"""Samza's stateful window operator on Spark: fixed windows by time or by number of messages, and sessions.

Source: Samza's window operator (SAMZA-552), `process` and `refresh`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from ..reference.aggregates import AGGREGATES_OF_SAMZA, named_aggregate
from ..reference.declarations import UNSAID
from ..reference.errors import BadInput
from ..reference.windows import Early, WindowAggregate
from .columns import ColumnLike, accumulator_type, bare, resolve, value_and_result
from .durations import Duration, milliseconds
from .keyed import TOMBSTONE, UPDATE, Arrived, Key, Logic, Told, declaration_of, dropped, keyed, resolved
from .native import closed_windows


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
    logic: Callable[[WindowAggregate], WindowLogic] | None = None,
) -> DataFrame:
    """Put a stream into windows, and give the changelog of their aggregates, or their messages.

    Samza's `beforeProcess` is a `select` or `filter` of the input here, and its `beforeSend` one of the result.

    Args:
        events: A streaming or a batch DataFrame. A batch DataFrame is a history that has ended: it is one batch, and
            all its windows by time are complete.
        key: One or several columns. A row in which one of them is null is dropped, and doesn't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. A row without one is
            dropped.
        size: How long a fixed window is: a duration or, with `unit="tuple"`, a number of rows; of a session, its gap.
        value: What is aggregated or, with `storage="full"`, told; `count` needs none.
        order: The order of arrival within a batch, such as an offset; without it a batch is taken by timestamp.
        type: `fixed` windows, whose end is exclusive and which start at multiples of the step since 1970; or one
            `session` after another, whose bounds are timestamps of rows.
        unit: `ms`, or `tuple`: windows of so many rows of a key, in order of arrival, with bounds counted in rows.
        step: From one fixed window's start to the next one's, in the unit; the size by default, and no more than it.
        retention: How long a complete window is kept, for late rows and to be read from the state. It is a lower bound:
            state goes at the next multiple of half of it.
        storage: `aggregate` tells a window's aggregate; `full` keeps its rows, and tells those not told before.
        aggregate: `count`, `sum`, `min`, `max`, `list` or `average`.
        early: When a window that isn't complete is told: a number: when it has so many rows that aren't told yet; a
            duration: at each tick of the clock, one each so long.
        late: `drop` leaves a row out of complete windows; `update` takes it into those still kept.
        report_dropped: Whether rows that were dropped are told too.
        state_groups: As in `keyed`: None keeps one state for each key. A window by time stays in the state until it is
            complete and past its retention. By tuple, a key's last windows and its count of rows stay for ever.
        logic: Makes what decides, of a declaration; another than `WindowLogic` for seeded bugs.

    Returns:
        As `keyed`; the timestamp of an update is the largest in its window. A session that has grown or merged since it
        was told is preceded by tombstones of what was told of it. With `storage="full"` each row of a window is told
        once, with its own timestamp. The bounds of a window of tuples are numbers of rows, told as ms since 1970. A
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
        kept_type=T.StructType().add("rows", "long").add("windows", T.ArrayType(_window_type(held))),
        value_type=result_type,
        state_groups=state_groups,
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
    """Aggregate a stream by Spark's own `window`: each fixed window by time once, when it is complete (append mode).

    It keeps the laws of `window_aggregate` without early emission, with `late="drop"`, when a batch without data
    follows every batch (Spark's default trigger). Under `availableNow` lateness is tested against the watermark of one
    batch earlier, and a late row may still be taken. It doesn't tell the rows it drops, nor the windows of a batch in
    order of their end. `sum`, `min`, `max` and `average` leave null values out, which `window_aggregate` refuses.

    Sessions it can't serve: Spark's `session_window` tests a row alone, Samza the session that the row would be in. The
    smallest history, with gap 6: a row at 15, the clock reaches 20, a row at 13. Samza merges it with the session
    [15, 15], which is open until the clock has passed 21; to Spark it is late.

    Args:
        events: A streaming or a batch DataFrame; in a batch DataFrame all windows are complete.
        key: One or several columns; rows in which one is null are left out, and don't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms; windows start from 1970 on.
        size: How long a window is.
        value: What is aggregated; `count` needs none.
        order: The order in which the members of a `list` lie; by timestamp without it. Others need none.
        type: `fixed`.
        unit: `ms`.
        step: From one window's start to the next one's; the size by default, and no more than it.
        retention: Means nothing here: a complete window takes no rows, and leaves the state.
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
    return closed_windows(
        events,
        key=key,
        timestamp=timestamp,
        value=value,
        order=order,
        size_ms=declared.size,
        step_ms=declared.step,
        grace_ms=0,
        aggregate=declared.aggregate,
    )


def require_native_window_aggregate(declared: WindowAggregate) -> None:
    """Refuse windows that Spark's own operator can't mean.

    Raises:
        BadInput: The message names the option, the reason and the remedy.
    """
    stateful = "use the stateful operator (spark)"
    if declared.type == "session":
        raise BadInput(
            "type is 'session', but Spark's own session_window tests a row alone, and drops one that its session would "
            f"still take: {stateful}, or session_windows with late own"
        )
    if declared.unit == "tuple":
        raise BadInput(f"unit is 'tuple', but Spark's own window goes by time: {stateful}")
    if declared.storage == "full":
        raise BadInput(f"storage is 'full', but Spark's own window keeps an aggregate, no rows: {stateful}")
    if declared.early is not None:
        raise BadInput(f"early is given, but Spark's own window is told once, when it is complete: {stateful}")
    if declared.late == "update":
        raise BadInput(f"late is 'update', but Spark's own window is forgotten once it is told: {stateful}")


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
        step=UNSAID if step is None else _length("step", step, unit),
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
    """Find the value's column, what a window holds, and what is told of it."""
    if windows.storage == "aggregate":
        column, result = value_and_result(events, windows.aggregate, value)
        return column, accumulator_type(events, windows.aggregate, column, result), result
    if value is None:
        raise BadInput("value: storage full tells the rows' values: name the column that holds them")
    column, field = resolve(events, "value", value)
    message = T.StructType().add("timestamp", "long").add("value", field.dataType).add("told", "boolean")
    return column, T.ArrayType(message), field.dataType


def _window_type(held: T.DataType) -> T.StructType:
    bounds = T.StructType().add("start", "long").add("end", "long")
    window = T.StructType(list(bounds.fields)).add("held", held).add("rows", "long").add("latest", "long")
    return window.add("untold", "long").add("since", "long").add("shown", T.ArrayType(bounds))


class Message(NamedTuple):
    """A row that a window with full storage holds (ms), and whether it has been told."""

    timestamp: int
    value: Any
    told: bool


@dataclass(eq=False)
class Filled:
    """A window with rows in it.

    Attributes:
        start: Its first ms or, by tuple, row.
        end: Its end, exclusive; of a session, its last row's timestamp.
        held: The unfinished aggregate of its rows or, with full storage, the rows themselves.
        rows: How many there are.
        latest: Their largest timestamp (ms).
        untold: How many of them haven't been told.
        since: What the clock (ms) said when the first of these came.
        shown: The windows under which rows of it were told, and not taken back.
    """

    start: int
    end: int
    held: Any
    rows: int
    latest: int
    untold: int
    since: int
    shown: list[tuple[int, int]]


_end = attrgetter("end")


@dataclass
class Kept:
    """The state of a key: how many rows it has had, where windows go by tuples, and its windows by end."""

    rows: int
    windows: list[Filled]


class WindowLogic(Logic[Kept]):
    """What happens to the windows of one key."""

    def __init__(self, windows: WindowAggregate) -> None:
        self.windows = windows

    def empty(self) -> Kept:
        """No window."""
        return Kept(0, [])

    def pack(self, kept: Kept) -> tuple[Any, ...] | None:
        """The windows, and the count of rows, if there is anything to remember."""
        if not kept.windows and not kept.rows:
            return None
        fields = ("start", "end", "held", "rows", "latest", "untold", "since", "shown")
        return kept.rows, [tuple(getattr(one, name) for name in fields) for one in kept.windows]

    def unpack(self, fields: tuple[Any, ...]) -> Kept:
        """The windows again."""
        rows, windows = fields
        kept = Kept(rows, [Filled(*window) for window in windows])
        for one in kept.windows:
            one.shown = [(start, end) for start, end in one.shown]
            if self.windows.storage == "full":
                one.held = [Message(*message) for message in one.held]
        return kept

    def take(self, key: Key, kept: Kept, row: Arrived, clock: int) -> list[Told]:
        """Add a row to its windows, and tell those that it makes due."""
        assert row.timestamp is not None
        if self.windows.storage == "full":
            if row.value is None:
                return [dropped(row, "null value")]
        else:
            self.windows.aggregate.check(row.value)
        taken = self.merged(key, kept, row, clock) if self.windows.type == "session" else self.fixed(kept, row, clock)
        if not taken:
            return [dropped(row, "late")]
        for one in taken:
            self.add(key, one, row, clock)
        told = [change for one in taken if self.is_due(one, clock) for change in self.tell(one)]
        for one in taken:
            if self.is_over(one, clock):
                kept.windows.remove(one)
        return [change._replace(cause=row.order) for change in told]

    def fixed(self, kept: Kept, row: Arrived, clock: int) -> list[Filled]:
        """Give the fixed windows that take a row."""
        assert row.timestamp is not None
        place = kept.rows
        if self.windows.unit == "tuple":
            kept.rows += 1
        taken = []
        for start, end in self.windows.fixed(row.timestamp, place, clock):
            at = bisect_left(kept.windows, end, key=_end)
            if at == len(kept.windows) or kept.windows[at].end != end:
                kept.windows.insert(at, self.opened(start, end))
            taken.append(kept.windows[at])
        return taken

    def merged(self, key: Key, kept: Kept, row: Arrived, clock: int) -> list[Filled]:
        """Merge the sessions near a row, and give the one that takes it; none if that is complete."""
        at, edge = row.timestamp, self.edge(clock)
        assert at is not None
        near = self.near(kept, at, edge)
        start, end = min([at, *(one.start for one in near)]), max([at, *(one.end for one in near)])
        if end < edge:
            return []
        session = self.opened(start, end)
        for one in near:
            kept.windows.remove(one)
            self.join(key, session, one)
        insort(kept.windows, session, key=_end)
        return [session]

    def edge(self, clock: int) -> int:
        """Give the edge (ms) at that clock: a session takes no rows any more if its end lies before it."""
        return clock - self.windows.size - self.windows.late_ms

    def near(self, kept: Kept, timestamp: int, edge: int) -> list[Filled]:
        """Give the sessions that a row at that timestamp (ms) belongs to, by end."""
        gap = self.windows.size
        first = bisect_left(kept.windows, max(timestamp - gap, edge), key=_end)
        # Those that still take rows don't overlap, so their starts are in order too.
        return list(takewhile(lambda one: one.start <= timestamp + gap, islice(kept.windows, first, None)))

    def opened(self, start: int, end: int) -> Filled:
        """Give a window without rows."""
        full = self.windows.storage == "full"
        return Filled(start, end, [] if full else self.windows.aggregate.initializer(), 0, 0, 0, 0, [])

    def join(self, key: Key, session: Filled, other: Filled) -> None:
        """Bring what another session holds into a session, behind its own."""
        if self.windows.storage == "full":
            session.held = session.held + other.held
        else:
            session.held = self.windows.aggregate.merger(bare(key), session.held, other.held)
        if other.untold:
            session.since = min(session.since, other.since) if session.untold else other.since
        session.untold += other.untold
        session.rows += other.rows
        session.latest = max(session.latest, other.latest)
        session.shown = [*session.shown, *other.shown]

    def add(self, key: Key, one: Filled, row: Arrived, clock: int) -> None:
        """Add a row to a window."""
        assert row.timestamp is not None
        if self.windows.storage == "full":
            one.held.append(Message(row.timestamp, row.value, False))
        else:
            one.held = self.windows.aggregate.aggregator(bare(key), row.value, one.held)
        one.rows += 1
        one.latest = max(one.latest, row.timestamp)
        one.since = min(one.since, clock) if one.untold else clock
        one.untold += 1

    def is_complete(self, one: Filled, clock: int) -> bool:
        """Whether a window has reached its size at that clock (ms)."""
        if self.windows.unit == "tuple":
            return one.rows == self.windows.size
        return clock >= self.completion(one)

    def completion(self, one: Filled) -> int:
        """Give when (ms) a window by time is complete."""
        return one.end + self.windows.size + 1 if self.windows.type == "session" else one.end

    def is_due(self, one: Filled, clock: int) -> bool:
        """Whether a window has something to tell, and is complete or due by the early-emission policy."""
        early = self.windows.early
        if not one.untold or early is None or self.is_complete(one, clock):
            return bool(one.untold) and self.is_complete(one, clock)
        if early.every_tuples is not None:
            return one.untold >= early.every_tuples
        return clock >= self.tick(one)

    def tick(self, one: Filled) -> int:
        """Give the tick of the clock (ms) at which what is untold of a window is told early."""
        early = self.windows.early
        assert early is not None
        assert early.every_ms is not None
        return (one.since // early.every_ms + 1) * early.every_ms

    def is_over(self, one: Filled, clock: int) -> bool:
        """Whether a window has been complete, and told, for longer than the retention at that clock (ms)."""
        over = self.over(one)
        return not one.untold and over is not None and over <= clock

    def over(self, one: Filled) -> int | None:
        """Give when (ms) a window is over, or None: by tuple, one that isn't complete waits for ever."""
        kept_ms = self.windows.retention_ms
        if self.windows.unit != "tuple":
            return self.completion(one) + kept_ms
        if one.rows < self.windows.size:
            return None
        return one.latest + kept_ms + 1 if kept_ms else 0

    def tell(self, one: Filled) -> list[Told]:
        """Tell a window's aggregate, in place of what was shown of it; or those of its rows not told before."""
        one.untold = 0
        if self.windows.storage == "full":
            untold = [message for message in one.held if not message.told]
            one.held = [message._replace(told=True) for message in one.held]
            return [self.update(one, message.value, message.timestamp) for message in untold]
        told = [self.tombstone(*shown) for shown in self.gone(one)]
        one.shown = [(one.start, one.end)] if self.windows.type == "session" else []
        return [*told, self.update(one, self.windows.aggregate.finish(one.held), one.latest)]

    def gone(self, one: Filled) -> Iterable[tuple[int, int]]:
        """Give the windows that a session has been told as, and isn't any more, by end."""
        return sorted((shown for shown in one.shown if shown != (one.start, one.end)), key=lambda shown: shown[1])

    def update(self, one: Filled, value: Any, timestamp: int) -> Told:
        """Tell a value of a window."""
        return Told(one.start, one.end, value, timestamp, UPDATE, None, None)

    def tombstone(self, start: int, end: int) -> Told:
        """Take back what was told of a session."""
        return Told(start, end, None, end, TOMBSTONE, None, None)

    def close(self, kept: Kept, told: int, clock: int) -> list[Told]:
        """Samza's `refresh`: tell the windows that the clock has made due, by end."""
        return [change for one in kept.windows if self.is_due(one, clock) for change in self.tell(one)]

    def keep(self, kept: Kept, told: int, clock: int) -> Kept:
        """Forget the windows that are out of retention."""
        return Kept(kept.rows, [one for one in kept.windows if not self.is_over(one, clock)])

    def due(self, kept: Kept, clock: int) -> int | None:
        """The next time at which a window is complete, due or over."""
        early = self.windows.early
        times = []
        for one in kept.windows:
            if one.untold and self.windows.unit != "tuple":
                times.append(self.completion(one))
            if one.untold and early is not None and early.every_ms is not None:
                times.append(self.tick(one))
            over = self.over(one)
            if over is not None:
                half = max(self.windows.retention_ms // 2, 1)
                times.append(-(-over // half) * half)
        return min((time for time in times if time > clock), default=None)
