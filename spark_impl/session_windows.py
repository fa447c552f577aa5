"""Session windows on Spark: KIP-94's changelog from `transformWithState`, or Spark's own `session_window`.

Source: KIP-94; Spark Structured Streaming Deep Dive (8), "Session Window".
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.definitions.aggregates import Aggregate, named_aggregate
from ..reference.definitions.windows import SessionWindows
from .runtime.columns import ColumnLike, bare, key_columns, timestamp_column, value_and_result
from .runtime.durations import Duration, milliseconds
from .runtime.inputs import any_null, resolved
from .runtime.keyed import InitialState, declaration_of, keyed
from .runtime.logic import TOMBSTONE, UPDATE, Arrived, Key, Logic, LogicOutput, dropped
from .runtime.native import changelog


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
    initial_state: InitialState = None,
    logic: Callable[[SessionWindows], SessionLogic] | None = None,
) -> DataFrame:
    """Aggregate a stream by session windows, and return the changelog of the sessions.

    Args:
        events: A streaming or a batch DataFrame. A batch DataFrame is a complete history: it is one batch, and with
            `emit="close"` all its sessions close.
        key: One or several columns. A row with a null key is dropped, and doesn't move the clock.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. A row without a
            timestamp is dropped.
        gap: The inactivity gap; rows exactly one gap apart share a session.
        value: The column to aggregate; `count` needs no column.
        order: The order of arrival within a batch, such as an offset; by default a batch is in timestamp order.
        grace: The time after the gap in which a session stays open.
        retention: The time for which a session's state is stored after its end; by default, and at least, gap + grace.
            The retention is a lower bound: the state is removed at the next multiple of half the retention.
        aggregate: `count`, `sum`, `min`, `max`, `list`, or an `Aggregate` with a `value_type`.
        value_type: The type of the aggregate, as DDL or a DataType; named aggregates don't need it.
        emit: `update` emits every change, `close` each session's final value once.
        late: `merged` or `own`; see `SessionWindows`.
        report_dropped: Whether the changelog also contains dropped rows.
        state_groups: As in `keyed`.
        initial_state: As in `keyed`.
        logic: Makes the logic that processes a key's rows, by default `SessionLogic`; mutation testing passes logic
            with a bug.

    Returns:
        The key's columns, then `window struct<start: timestamp, end: timestamp>` (both are timestamps of rows),
        `value`, `timestamp timestamp` (the window's end), `change string` (`update`; `tombstone`, whose value is null;
        `dropped` with `report_dropped`), `reason string` (why a row was dropped: `late`, `null key`, `null timestamp`),
        `cause` (the order column's value of the row that caused the change; null for a closing session, and bigint null
        without an order column), `ordinal int`, the order of a key's changes within a batch, and `place`, a struct that
        can be the next operator's `order` (see `keyed`). A streaming result is in append mode. The clock is the largest
        timestamp of earlier batches; an existing watermark of the input delays it further.

    Raises:
        BadInput: A column is missing or of the wrong type, a duration can't be parsed, or the windows are invalid (see
            `SessionWindows`).

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
    value_column, result_type = value_and_result(events, chosen, value, value_type)
    one = resolved(events, key=key, timestamp=timestamp, value=None, order=order)
    session = T.StructType().add("start", "long").add("end", "long").add("value", result_type)
    return keyed(
        [one._replace(value=value_column, value_type=events.select(value_column).schema[0].dataType)],
        (logic or SessionLogic)(windows),
        state_type=T.StructType().add("sessions", T.ArrayType(session)),
        value_type=result_type,
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        declaration=declaration_of("session_windows", windows),
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
    """Aggregate a stream by Spark's own `session_window`; each session is emitted once, when it closes (append mode).

    The result satisfies the laws of `session_windows` with `emit="close", late="own"` if a batch without data follows
    every batch (Spark's default trigger). Under `availableNow` lateness is tested against the previous batch's
    watermark, so a late row may still be accepted. The result contains no dropped rows, and a `list` is in an arbitrary
    order. The setting `spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition` changes Spark's plan, but
    not the result.

    Args:
        events: A streaming or a batch DataFrame; in a batch DataFrame all sessions close.
        key: One or several columns; rows with a null key are ignored.
        timestamp: Event time: a timestamp column, or a bigint column of ms.
        gap: The inactivity gap; rows exactly one gap apart share a session.
        value: The column to aggregate; `count` needs no column.
        grace: The time after the gap in which a session stays open. The watermark's delay is the grace plus 1 ms: Spark
            closes a session at `end + gap <= watermark`, KIP-94 only at `end + gap < watermark`.
        aggregate: `count`, `sum`, `min`, `max` or `list`.

    Returns:
        The columns of `session_windows` without `place`; `window.end` is the last row's timestamp, not Spark's
        exclusive end.

    Raises:
        BadInput: As `session_windows`.

    Source: Spark Structured Streaming Deep Dive (8); SPARK-10816.
    """
    windows = SessionWindows(gap_ms=milliseconds("gap", gap), grace_ms=milliseconds("grace", grace))
    keys = key_columns(events, key)
    time = timestamp_column(events, timestamp)
    value_column, _ = value_and_result(events, named_aggregate(aggregate), value, None)
    names = [f"key_{number}" for number in range(len(keys))]
    rows = events.filter(~any_null([column for column, _ in keys]) & time.isNotNull()).select(
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
    named = [(field.name, name) for name, (_, field) in zip(names, keys, strict=True)]
    window = F.struct(F.col("session.start").alias("start"), end.alias("end"))
    return changelog(sessions, named, value=F.col("value"), timestamp=end, window=window)


class Session(NamedTuple):
    """A stored session; both bounds are timestamps of rows (ms)."""

    start: int
    end: int
    value: Any


_start, _end = attrgetter("start"), attrgetter("end")


class SessionLogic(Logic[list[Session]]):
    """The logic of a key; the state contains the key's sessions, by end."""

    def __init__(self, windows: SessionWindows) -> None:
        self.windows = windows

    def for_key(self, key: Key) -> SessionLogic:
        """Return the logic for this key."""
        return self

    def empty(self) -> list[Session]:
        """No session."""
        return []

    def pack(self, state: list[Session]) -> tuple[Any, ...] | None:
        """Pack the sessions, if any."""
        return (state,) if state else None

    def unpack(self, fields: tuple[Any, ...]) -> list[Session]:
        """The sessions again."""
        return [Session(*session) for session in fields[0]]

    def take(self, key: tuple[Any, ...], sessions: list[Session], row: Arrived, clock: int) -> list[LogicOutput]:
        """Add a row to `sessions`, which are ordered by end; return the changes to emit."""
        windows, timestamp = self.windows, row.timestamp
        assert timestamp is not None
        edge = windows.close_edge(clock)
        near, start, end = self.near(sessions, timestamp, edge), timestamp, timestamp
        if near:
            start, end = min(start, near[0].start), max(end, near[-1].end)
        if (end if windows.late == "merged" else timestamp) < edge:
            return [dropped(row, "late")]
        merged = Session(start, end, self.aggregate(key, near, row))
        for session in near:
            sessions.remove(session)
        insort(sessions, merged, key=_end)
        return self.emit_merge(near, merged, row) if windows.emit == "update" else []

    def near(self, sessions: list[Session], timestamp: int, edge: int) -> list[Session]:
        """Return the sessions within the gap of a timestamp that end at or after `edge` (ms), by end."""
        gap = self.windows.gap_ms
        first = bisect_left(sessions, max(timestamp - gap, edge), key=_end)
        # Search by start too: open sessions don't overlap, so they are also in the order of their starts.
        return sessions[first : bisect_right(sessions, timestamp + gap, first, key=_start)]

    def aggregate(self, key: tuple[Any, ...], near: list[Session], row: Arrived) -> Any:
        """Return the merged aggregate of the sessions, in session order, with the row's value added last."""
        by, bare_key = self.windows.aggregate, bare(key)
        by.check(row.value)
        value = by.initializer()
        for session in near:
            value = by.merger(bare_key, value, session.value)
        return by.aggregator(bare_key, row.value, value)

    def emit_merge(self, near: list[Session], merged: Session, row: Arrived) -> list[LogicOutput]:
        """Return tombstones of the merged sessions, if the new session is longer than 0 ms, then the new session."""
        update = LogicOutput(merged.start, merged.end, merged.value, merged.end, UPDATE, None, row.order)
        if not near or merged.start == merged.end:
            return [update]
        return [*[self.tombstone(session, row) for session in near], update]

    def tombstone(self, session: Session, row: Arrived) -> LogicOutput:
        """Return the tombstone of a merged session."""
        return LogicOutput(session.start, session.end, None, session.end, TOMBSTONE, None, row.order)

    def close(self, sessions: list[Session], emitted: int, clock: int) -> list[LogicOutput]:
        """Emit the sessions that the clock has closed since `emitted` (ms), by end."""
        if self.windows.emit == "update":
            return []
        emitted_edge, edge = self.windows.close_edge(emitted), self.windows.close_edge(clock)
        closed = [session for session in sessions if emitted_edge <= session.end < edge]
        return [LogicOutput(start, end, value, end, UPDATE, None, None) for start, end, value in closed]

    def keep(self, sessions: list[Session], emitted: int, clock: int) -> list[Session]:
        """Return the sessions within their retention, and the closed sessions not yet emitted."""
        edge = self.windows.expiry_edge(clock)
        if self.windows.emit == "close":
            edge = min(edge, self.windows.close_edge(emitted))
        return sessions[bisect_left(sessions, edge, key=_end) :]

    def due(self, sessions: list[Session], clock: int) -> int | None:
        """Return the time (ms), after `clock`, at which the next session closes or expires, or None."""
        windows, times = self.windows, []
        half = windows.retention_ms // 2 or 1
        for session in sessions:
            times.append(-(-(session.end + windows.retention_ms + 1) // half) * half)
            if windows.emit == "close":
                times.append(session.end + windows.gap_ms + windows.grace_ms + 1)
        return min([time for time in times if time > clock], default=None)
