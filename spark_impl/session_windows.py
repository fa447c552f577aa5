"""Session windows on Spark: KIP-94's changelog from `transformWithState`, and Spark's own `session_window` beside it.

Source: KIP-94; Spark Structured Streaming Deep Dive (8), "Session Window".
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from ..reference.aggregates import Aggregate, named_aggregate
from ..reference.errors import BadInput
from ..reference.windows import SessionWindows
from .columns import NUMBERS, ColumnLike, key_columns, resolve, timestamp_column
from .durations import Duration, milliseconds

END_OF_TIME = 2**62
UPDATE, TOMBSTONE, DROPPED = "update", "tombstone", "dropped"


def session_windows(
    events: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    gap: Duration,
    value: ColumnLike | None = None,
    order: ColumnLike | None = None,
    grace: Duration = "0 ms",
    retention: Duration | None = None,
    aggregate: str | Aggregate = "count",
    value_type: str | T.DataType | None = None,
    emit: Literal["update", "close"] = "update",
    late: Literal["merged", "own"] = "merged",
    report_dropped: bool = False,
    state_groups: int | None = None,
    logic: Callable[[SessionWindows], SessionLogic] | None = None,
) -> DataFrame:
    """Aggregate a stream by session windows, and give the changelog of the sessions.

    Args:
        events: A streaming or a batch DataFrame. A batch DataFrame is a history that has ended: it is one batch, and
            with `emit="close"` all its sessions close.
        key: One or several columns. A row in which one of them is null is dropped, and doesn't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. A row without one is
            dropped.
        gap: The inactivity gap; rows exactly one gap apart share a session.
        value: What is aggregated; `count` needs none.
        order: The order of arrival within a batch, such as an offset; without it a batch is taken by timestamp.
        grace: How much longer than the gap a session stays open.
        retention: How long a session's state is kept after its end; gap + grace by default, which is also the least.
            It is a lower bound: state goes at the next multiple of half of it.
        aggregate: `count`, `sum`, `min`, `max`, `list`, or an `Aggregate` with a `value_type`.
        value_type: The type of the aggregate, as DDL or a DataType; known for the named ones.
        emit: `update` tells every change, `close` each session's final value once.
        late: `merged` or `own`; see `SessionWindows`.
        report_dropped: Whether rows that were dropped are told too.
        state_groups: None keeps one state for each key. A number hashes the keys into so many groups, each of which is
            read and written whole: with many small keys in a batch that saves most of the round trips.
        logic: Makes what decides, of a declaration; `SessionLogic` by default, another for seeded bugs.

    Returns:
        The key's columns, then `window struct<start: timestamp, end: timestamp>` (both are timestamps of rows),
        `value`, `timestamp timestamp` (the window's end), `change string` (`update`, `tombstone` whose value is null,
        and `dropped` where asked for), `reason string` (why a row was dropped: `late`, `null key`, `null timestamp`),
        `cause` (the order column's value of the row that set the change off, null for a closing session; bigint null
        without an order column) and `ordinal int`, the order of a key's changes within a batch.
        A streaming result is in append mode. The clock is the largest timestamp of earlier batches; a watermark that
        the input already carries delays it further.

    Raises:
        BadInput: A column is missing or of the wrong type, a duration can't be parsed, or the windows can't be declared
            (see `SessionWindows`).

    Source: KIP-94.
    """
    chosen = named_aggregate(aggregate) if isinstance(aggregate, str) else aggregate
    gap_ms, grace_ms = milliseconds("gap", gap), milliseconds("grace", grace)
    windows = SessionWindows(
        gap_ms=gap_ms,
        grace_ms=grace_ms,
        retention_ms=gap_ms + grace_ms if retention is None else milliseconds("retention", retention),
        aggregate=chosen,
        emit=emit,
        late=late,
    )
    if state_groups is not None and state_groups < 1:
        raise BadInput(f"state_groups is {state_groups}: give a positive number, or None for one state a key")
    keys = key_columns(events, key)
    time = timestamp_column(events, timestamp)
    value_column, result_type = _value_and_result(events, chosen, value, value_type)
    order_column, order_type = (F.lit(None).cast("bigint"), T.LongType()) if order is None else _order(events, order)

    key_names = [f"key_{number}" for number in range(len(keys))]
    no_null_key = ~_any_null([column for column, _ in keys])
    projected = events.select(
        F.when(no_null_key, time).alias("clock"),
        *(column.alias(name) for name, (column, _) in zip(key_names, keys, strict=True)),
        F.unix_millis(time).alias("timestamp"),
        order_column.alias("order"),
        value_column.alias("value"),
    )
    if events.isStreaming:
        projected = projected.withWatermark("clock", "0 seconds")
    if state_groups is not None:
        hashed = F.pmod(F.xxhash64(*key_names), F.lit(state_groups)).cast("int").alias("state_group")
        projected = projected.select("*", hashed)
    grouping = key_names if state_groups is None else ["state_group"]
    # Without the watermarked column in the operator's input Spark drops nothing itself: lateness is the operator's.
    rows = projected.drop("clock")

    key_fields = [T.StructField(name, field.dataType) for name, (_, field) in zip(key_names, keys, strict=True)]
    session = T.StructType().add("start", "long").add("end", "long").add("value", result_type)
    change = T.StructType(
        [
            *key_fields,
            *T.StructType().add("start", "long").add("end", "long").add("value", result_type).fields,
            *T.StructType().add("timestamp", "long").add("change", "string").add("reason", "string").fields,
            T.StructField("cause", order_type),
        ]
    )
    processor = SessionWindowsProcessor(
        (logic or SessionLogic)(windows),
        key_width=len(keys),
        state_type=_state_type(key_fields, session),
        change_names=change.names,
        report_dropped=report_dropped,
        ended=not events.isStreaming,
    )
    changes = rows.groupBy(*grouping).transformWithState(
        statefulProcessor=processor,
        outputStructType=T.StructType().add("changes", T.ArrayType(change)),
        outputMode="Append",
        timeMode="EventTime",
    )
    told = changes.select(F.posexplode("changes").alias("ordinal", "told"))
    return told.select(
        *(F.col(f"told.{name}").alias(field.name) for name, (_, field) in zip(key_names, keys, strict=True)),
        F.when(
            F.col("told.start").isNotNull(),
            F.struct(
                F.timestamp_millis("told.start").alias("start"),
                F.timestamp_millis("told.end").alias("end"),
            ),
        ).alias("window"),
        F.col("told.value").alias("value"),
        F.timestamp_millis("told.timestamp").alias("timestamp"),
        "told.change",
        "told.reason",
        "told.cause",
        "ordinal",
    )


def native_session_windows(
    events: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    gap: Duration,
    value: ColumnLike | None = None,
    grace: Duration = "0 ms",
    aggregate: str = "count",
) -> DataFrame:
    """Aggregate a stream by Spark's own `session_window`: each session once, when it closes (append mode).

    It keeps the laws of `session_windows` with `emit="close", late="own"` when a batch without data follows every batch
    (Spark's default trigger). Under `availableNow` lateness is tested against the watermark of one batch earlier, and a
    late row may still be taken. It tells no dropped rows, and a `list` is in no useful order. The setting
    `spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition` changes its plan, not its answer.

    Args:
        events: A streaming or a batch DataFrame; in a batch DataFrame all sessions close.
        key: One or several columns; rows in which one is null are left out.
        timestamp: Event time: a timestamp column, or a bigint column of ms.
        gap: The inactivity gap; rows exactly one gap apart share a session.
        value: What is aggregated; `count` needs none.
        grace: How much longer than the gap a session stays open; it becomes the watermark's delay, plus 1 ms, for Spark
            closes at `end + gap <= watermark` where KIP-94 closes after it.
        aggregate: `count`, `sum`, `min`, `max` or `list`.

    Returns:
        The columns of `session_windows`; `window.end` is the last row's timestamp, not Spark's exclusive end.

    Raises:
        BadInput: As `session_windows`.

    Source: Spark Structured Streaming Deep Dive (8); SPARK-10816.
    """
    windows = SessionWindows(gap_ms=milliseconds("gap", gap), grace_ms=milliseconds("grace", grace))
    keys = key_columns(events, key)
    time = timestamp_column(events, timestamp)
    value_column, _ = _value_and_result(events, named_aggregate(aggregate), value, None)
    names = [f"key_{number}" for number in range(len(keys))]
    rows = events.filter(~_any_null([column for column, _ in keys]) & time.isNotNull()).select(
        time.alias("clock"),
        *(column.alias(name) for name, (column, _) in zip(names, keys, strict=True)),
        value_column.alias("value"),
    )
    sessions = (
        rows.withWatermark("clock", f"{windows.grace_ms + 1} milliseconds")
        .groupBy(F.session_window("clock", f"{windows.gap_ms} milliseconds").alias("session"), *names)
        .agg(F.expr(named_aggregate(aggregate).spark).alias("value"))
    )
    end = F.timestamp_millis(F.unix_millis("session.end") - F.lit(windows.gap_ms))
    return sessions.select(
        *(F.col(name).alias(field.name) for name, (_, field) in zip(names, keys, strict=True)),
        F.struct(F.col("session.start").alias("start"), end.alias("end")).alias("window"),
        "value",
        end.alias("timestamp"),
        F.lit(UPDATE).alias("change"),
        F.lit(None).cast("string").alias("reason"),
        F.lit(None).cast("bigint").alias("cause"),
        F.lit(0).alias("ordinal"),
    )


class Session(NamedTuple):
    """A session in the state; both bounds are timestamps of rows (ms)."""

    start: int
    end: int
    value: Any


_end = attrgetter("end")


class Told(NamedTuple):
    """A change of one key, or a row that was dropped (all ms)."""

    start: int | None
    end: int | None
    value: Any
    timestamp: int | None
    change: str
    reason: str | None
    cause: Any


class Arrived(NamedTuple):
    """A row of one key (ms)."""

    timestamp: int | None
    order: Any
    value: Any


class SessionLogic:
    """What happens to the sessions of one key. Pure Python: no Spark, no state of its own."""

    def __init__(self, windows: SessionWindows) -> None:
        self.windows = windows

    def for_key(self, key: tuple[Any, ...]) -> SessionLogic:
        """Give what decides for this key: the same for all, unless seeded bugs travel together."""
        return self

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        """Put the rows of a batch into the order of arrival, which the shuffle has lost."""
        return sorted(rows, key=lambda row: (row.order, -1 if row.timestamp is None else row.timestamp))

    def take(self, key: tuple[Any, ...], sessions: list[Session], row: Arrived, clock: int) -> list[Told]:
        """Take one row: change `sessions`, which are in order of end, in place, and give what is to be told."""
        windows, timestamp = self.windows, row.timestamp
        if any(part is None for part in key):
            return [Told(None, None, None, timestamp, DROPPED, "null key", row.order)]
        if timestamp is None:
            return [Told(None, None, None, None, DROPPED, "null timestamp", row.order)]
        edge = windows.close_edge(clock)
        near = self.near(sessions, timestamp, edge)
        start = min([timestamp, *(session.start for session in near)])
        end = max([timestamp, *(session.end for session in near)])
        if (end if windows.late == "merged" else timestamp) < edge:
            return [Told(None, None, None, timestamp, DROPPED, "late", row.order)]
        merged = Session(start, end, self.aggregate(key, near, row))
        for session in near:
            sessions.remove(session)
        insort(sessions, merged, key=_end)
        return self.tell_merge(near, merged, row) if windows.emit == "update" else []

    def near(self, sessions: list[Session], timestamp: int, edge: int) -> list[Session]:
        """Give the open sessions that a record at `timestamp` belongs to, by end; `sessions` are in order of end."""
        gap = self.windows.gap_ms
        first = bisect_left(sessions, max(timestamp - gap, edge), key=_end)
        # Open sessions don't overlap, so their starts are in order too.
        return list(takewhile(lambda session: session.start <= timestamp + gap, islice(sessions, first, None)))

    def aggregate(self, key: tuple[Any, ...], near: list[Session], row: Arrived) -> Any:
        """Merge the sessions' aggregates in session order, the row's value last."""
        by = self.windows.aggregate
        by.check(row.value)
        value = by.initializer()
        for session in near:
            value = by.merger(_bare(key), value, session.value)
        return by.aggregator(_bare(key), row.value, value)

    def tell_merge(self, near: list[Session], merged: Session, row: Arrived) -> list[Told]:
        """Tombstones of the merged sessions, then the new one; none for a session that only the row's instant fills."""
        told = []
        if (merged.start, merged.end) != (row.timestamp, row.timestamp):
            told = [self.tombstone(session, row) for session in near]
        return [*told, Told(merged.start, merged.end, merged.value, merged.end, UPDATE, None, row.order)]

    def tombstone(self, session: Session, row: Arrived) -> Told:
        """The tombstone of a merged session."""
        return Told(session.start, session.end, None, session.end, TOMBSTONE, None, row.order)

    def close(self, sessions: list[Session], told_edge: int, clock: int) -> list[Told]:
        """Tell the sessions that closed since `told_edge` was told, by end."""
        edge = self.windows.close_edge(clock)
        due = [session for session in sessions if told_edge <= session.end < edge]
        return [Told(due.start, due.end, due.value, due.end, UPDATE, None, None) for due in due]

    def kept(self, sessions: list[Session], told_edge: int, clock: int) -> list[Session]:
        """Give the sessions that the retention still keeps, and those whose closing is still to be told."""
        edge = self.windows.expiry_edge(clock)
        if self.windows.emit == "close":
            edge = min(edge, told_edge)
        return [session for session in sessions if session.end >= edge]

    def due(self, sessions: list[Session], clock: int) -> int | None:
        """Give when (ms) something is to be done next, after `clock`, or None: a session closes or expires."""
        windows = self.windows
        half = max(windows.retention_ms // 2, 1)
        times = [-(-(session.end + windows.retention_ms + 1) // half) * half for session in sessions]
        if windows.emit == "close":
            times += [session.end + windows.gap_ms + windows.grace_ms + 1 for session in sessions]
        return min((time for time in times if time > clock), default=None)


class State(NamedTuple):
    """The state of a group of keys: their sessions, up to which edge closings were told, and the pending timer (ms)."""

    sessions: dict[tuple[Any, ...], list[Session]]
    told_edge: int
    timer: int | None


class SessionWindowsProcessor(StatefulProcessor):
    """Carries `SessionLogic` through Spark: one packed value state and at most one useful timer for a group."""

    def __init__(
        self,
        logic: SessionLogic,
        key_width: int,
        state_type: T.StructType,
        change_names: list[str],
        report_dropped: bool,
        ended: bool,
    ) -> None:
        self.logic = logic
        self.key_width = key_width
        self.state_type = state_type
        self.change_names = change_names
        self.report_dropped = report_dropped
        self.ended = ended

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self.handle = handle
        self.state = handle.getValueState("sessions", self.state_type)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Take the rows of a group, key by key, each key's in order of arrival."""
        clock = max(timerValues.getCurrentWatermarkInMs(), 0)
        state, width = self.load(), self.key_width
        arrived: dict[tuple[Any, ...], list[Arrived]] = {}
        for row in rows:
            arrived.setdefault(tuple(row[:width]), []).append(Arrived(*row[width : width + 3]))
        changes: list[dict[str, Any]] = []
        for key_of_row, of_key in arrived.items():
            sessions = state.sessions.setdefault(key_of_row, [])
            logic = self.logic.for_key(key_of_row)
            for arrival in logic.in_order(of_key):
                changes += self.named(key_of_row, logic.take(key_of_row, sessions, arrival, clock))
        if self.ended:
            changes += self.closed(state, END_OF_TIME)
        elif state.timer is not None and state.timer <= clock:
            # Served here, a timer that is due costs three round trips fewer than one that fires.
            self.handle.deleteTimer(state.timer)
            changes += self.closed(state, clock)
            state = self.passed(state, clock)
        self.save(state, clock)
        return self.told(changes)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Tell what the clock has closed, forget what the retention no longer keeps, and set the next timer."""
        clock = max(timerValues.getCurrentWatermarkInMs(), 0)
        state = self.load()
        changes = self.closed(state, clock)
        self.save(self.passed(state, clock), clock)
        return self.told(changes)

    def passed(self, state: State, clock: int) -> State:
        """The state once what `clock` closed was told, and no timer is pending."""
        return State(state.sessions, max(state.told_edge, self.logic.windows.close_edge(clock)), None)

    def closed(self, state: State, clock: int) -> list[dict[str, Any]]:
        """Tell what closed in the group, by end, then key."""
        if self.logic.windows.emit == "update":
            return []
        due = [
            (told, key)
            for key, sessions in state.sessions.items()
            for told in self.logic.for_key(key).close(sessions, state.told_edge, clock)
        ]
        due.sort(key=lambda pair: (pair[0].end, pair[1]))
        return [change for told, key in due for change in self.named(key, [told])]

    def named(self, key: tuple[Any, ...], told: Iterable[Told]) -> list[dict[str, Any]]:
        """Put changes into the form of the output's struct."""
        return [
            dict(zip(self.change_names, (*key, *change), strict=True))
            for change in told
            if self.report_dropped or change.change != DROPPED
        ]

    def told(self, changes: list[dict[str, Any]]) -> Iterator[Row]:
        """One row for the whole group: a row each would cost an Arrow batch each."""
        return iter([Row(changes=changes)] if changes else [])

    def load(self) -> State:
        """Read the group's state."""
        found = self.state.get()
        if found is None:
            return State({}, 0, None)
        groups, told_edge, timer = found
        return State({tuple(group[:-1]): [Session(*kept) for kept in group[-1]] for group in groups}, told_edge, timer)

    def save(self, state: State, clock: int) -> None:
        """Write the group's state, with a timer for what is due next; no sessions, no state."""
        kept = {
            key: self.logic.for_key(key).kept(sessions, state.told_edge, clock)
            for key, sessions in state.sessions.items()
        }
        kept = {key: sessions for key, sessions in kept.items() if sessions}
        if not kept:
            self.state.clear()
            return
        timer = state.timer
        times = [self.logic.for_key(key).due(sessions, clock) for key, sessions in kept.items()]
        due = min((time for time in times if time is not None), default=None)
        if due is not None and (timer is None or due < timer):
            self.handle.registerTimer(due)
            timer = due
        self.state.update(([(*key, sessions) for key, sessions in kept.items()], state.told_edge, timer))

    def close(self) -> None:
        """Nothing to close."""


def _bare(key: tuple[Any, ...]) -> Any:
    return key[0] if len(key) == 1 else key


def _any_null(columns: list[Column]) -> Column:
    null = F.lit(False)
    for column in columns:
        null = null | column.isNull()
    return null


def _order(events: DataFrame, order: ColumnLike) -> tuple[Column, T.DataType]:
    column, field = resolve(events, "order", order)
    if not isinstance(field.dataType, (*NUMBERS, T.StringType, T.TimestampType, T.DateType)):
        raise BadInput(
            f"order: the column {field.name!r} is {field.dataType.simpleString()}, which has no order: cast it"
        )
    return column, field.dataType


def _value_and_result(
    events: DataFrame, aggregate: Aggregate, value: ColumnLike | None, value_type: str | T.DataType | None
) -> tuple[Column, T.DataType]:
    if value is None:
        if aggregate.name != "count":
            raise BadInput(f"value: {aggregate.name} needs a column to aggregate: name one")
        return F.lit(None).cast("int"), T.LongType()
    column, field = resolve(events, "value", value)
    if value_type is not None:
        return column, value_type if isinstance(value_type, T.DataType) else T.DataType.fromDDL(value_type)
    kind = field.dataType
    whole = isinstance(kind, (T.ByteType, T.ShortType, T.IntegerType, T.LongType))
    shown = f"value: the column {field.name!r} is {kind.simpleString()}"
    match aggregate.name:
        case "count":
            return column, T.LongType()
        case "sum" if isinstance(kind, NUMBERS):
            return column, T.LongType() if whole else T.DoubleType()
        case "sum":
            raise BadInput(f"{shown}, which can't be summed: cast it to bigint or double")
        case "min" | "max" if isinstance(kind, (*NUMBERS, T.StringType)):
            return column, kind
        case "min" | "max":
            raise BadInput(f"{shown}, which {aggregate.name} can't take: cast it to a number or a string")
        case "list" if isinstance(kind, (*NUMBERS, T.StringType, T.BooleanType)):
            return column, T.ArrayType(kind)
        case "list":
            raise BadInput(f"{shown}, which list can't take: cast it to a number, a boolean or a string")
    raise BadInput(f"value_type: the type of the aggregate {aggregate.name!r} isn't known: give it, such as 'bigint'")


def _state_type(key_fields: list[T.StructField], session: T.StructType) -> T.StructType:
    of_key = T.StructType([*key_fields, T.StructField("sessions", T.ArrayType(session))])
    return T.StructType().add("keys", T.ArrayType(of_key)).add("told_edge", "long").add("timer", "long")
