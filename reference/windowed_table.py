"""Windowed tables: the result of a windowed aggregate is a table by key and window (a WTable), which can be joined.

Source: Kafka Streams Join Semantics, "Windowed Aggregate", "WTable", "JOIN operators". The rows that the aggregate has
emitted (every change, or closed windows) are joined like tables: `table_table_join`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from .core.clocks import Clock
from .core.records import Accepted, Bag, Change, Dropped, Key, Output, Record, Table, TableKey, Value, bag, fold
from .definitions.windows import WindowedTable
from .table_table_join import Latest, TableJoin, joined_tables


def meaning(table: WindowedTable, accepted: Iterable[Accepted], clock: int) -> Table | Bag:
    """Return the result of the accepted records at a clock time (ms): the windows' aggregates, joined.

    A stream result contains every change of the joined table: those that a record causes, and those at a window's end.
    Only records of a row's key change the row.
    """
    taken = list(accepted)
    if not table.is_stream:
        return fold(_rekeyed(table, Change(*row, *at[:2])) for row, at in _joined(table, taken, clock).items())
    by_key: dict[Key | None, list[Accepted]] = defaultdict(list)
    for at in taken:
        by_key[at.record.key].append(at)
    return bag(change for of_key in by_key.values() for change in _changes(table, of_key, clock))


def _changes(table: WindowedTable, taken: Sequence[Accepted], clock: int) -> list[Change]:
    """Return the changes of the rows of one key."""
    if table.with_ == "stream_lookup":
        return [_looked_up(table, taken, index) for index, at in enumerate(taken) if at.record.input == "right"]
    emitted: list[Change] = []
    before: dict[TableKey, Latest] = {}
    ends = {start + table.size_ms + table.grace_ms for at in taken for start in table.starts(at.record.timestamp)}
    clocks = [now for _, now in taken]
    for index, (last, now) in enumerate(pairwise([0, *clocks, clock])):
        passed = [(taken[:index], end) for end in sorted(ends) if last < end <= now]
        for known, then in [*passed, (taken[: index + 1], now)]:
            joined = _joined(table, known, then)
            emitted += [_rekeyed(table, Change(*row, *at[:2])) for row, at in joined.items() if before.get(row) != at]
            before = joined
    return emitted


def _looked_up(table: WindowedTable, taken: Sequence[Accepted], index: int) -> Change:
    record, now = taken[index]
    row = _windows(table, "events", taken[:index], now).get((record.key, table.looked_up_window(record.value)))
    return Change(record.key, None, [record.value, row and row.value], record.timestamp)


def _joined(table: WindowedTable, taken: Sequence[Accepted], clock: int) -> dict[TableKey, Latest]:
    windows = _windows(table, "events", taken, clock)
    if table.with_ is None:
        return windows
    if table.with_ == "windowed_table":
        others = _windows(table, "right", taken, clock).items()
        shifted = {row: at for other, at in others if (row := table.joined_row(other)) is not None}
        return joined_tables(table.join, windows, shifted)
    rows: dict[TableKey, Latest] = {
        (record.key, None): Latest(record.value, record.timestamp, index)
        for index, (record, _) in enumerate(taken)
        if record.input == "right"
    }
    if table.with_ == "table":
        return joined_tables("left", windows, {row: rows[row[0], None] for row in windows if (row[0], None) in rows})
    looked = {row: (row[0], table.looked_up_window(at.value)) for row, at in rows.items() if at.value is not None}
    return joined_tables("left", rows, {row: windows[window] for row, window in looked.items() if window in windows})


def _windows(table: WindowedTable, side: str, taken: Sequence[Accepted], clock: int) -> dict[TableKey, Latest]:
    """Return the windows that an input's aggregate has emitted; with emit `close`, only closed windows."""
    members: dict[TableKey, list[tuple[int, Record]]] = defaultdict(list)
    for index, (record, now) in enumerate(taken):
        for row in _open_rows(table, record, now) if record.input == side else ():
            members[row].append((index, record))
    rows: dict[TableKey, Latest] = {}
    for row, records in members.items():
        came: float = records[-1][0]
        if table.emit == "close":
            if not table.is_closed(row, clock):
                continue
            came = sum(not table.is_closed(row, now) for _, now in taken) - 0.5
        value = table.aggregate.of(row[0] or "", [record.value for _, record in records])
        rows[row] = Latest(value, max(record.timestamp for _, record in records), came)
    return rows


def _open_rows(table: WindowedTable, record: Record, clock: int) -> list[TableKey]:
    edge = clock - table.grace_ms
    ends = [start + table.size_ms for start in table.starts(record.timestamp)]
    return [(record.key, (end - table.size_ms, end)) for end in ends if end > edge]


def _rekeyed(table: WindowedTable, change: Change) -> Change:
    key, window, value, timestamp = change
    if table.to_stream is None or window is None:
        return change
    if table.to_stream == "window_in_key":
        return Change(f"{key}@{window[0]}", None, value, timestamp)
    return Change(key, None, {"value": value, "window": list(window)}, timestamp)


class WindowedInput:
    """The windowed aggregate of one input: the open windows, and the table of emitted windows."""

    def __init__(self, table: WindowedTable) -> None:
        self.table = table
        self.open: dict[TableKey, tuple[Any, int]] = {}
        self.emitted: Table = {}

    def take(self, record: Record, clock: int) -> list[TableKey] | None:
        """Add a record to its windows; return the rows to emit, by start, or None if all its windows are closed."""
        rows, by = _open_rows(self.table, record, clock), self.table.aggregate
        for row in rows:
            aggregate, largest = self.open.get(row) or (by.initializer(), 0)
            self.open[row] = (by.aggregator(row[0] or "", record.value, aggregate), max(largest, record.timestamp))
        if self.table.emit == "close":
            return [] if rows else None
        for row in rows:
            self.emitted[row] = self.open[row]
        return rows or None

    def close(self, clock: int) -> list[TableKey]:
        """Close windows; return the rows to emit, if emit is `close`."""
        edge = clock - self.table.grace_ms
        closed = [row for row in self.open if row[1] is not None and row[1][1] <= edge]
        for row in closed:
            self.emitted[row] = self.open.pop(row)
        return closed if self.table.emit == "close" else []


class Behaviour:
    """The state machine: one or two windowed aggregates, the joined table, and the join."""

    def __init__(self, table: WindowedTable, clock: Clock) -> None:
        self.table = table
        self.clock = clock
        self.sides = {name: WindowedInput(table) for name in table.inputs}
        self.rows: Table = {}
        self.join = TableJoin(table.join)

    def arrive(self, record: Record) -> list[Output]:
        """Emit the windows that the clock has closed, then the changes that a record causes."""
        if record.key is None:
            return [Dropped(None, "null key")]
        before = self.clock.now
        self.clock.observe(record.timestamp)
        emitted = self.advance() if self.clock.now > before else []
        if record.input == "right" and self.table.with_ != "windowed_table":
            return [*emitted, *self._arrive_right(record)]
        rows = self.sides[record.input].take(record, self.clock.now)
        if rows is None:
            return [*emitted, Dropped(record.key, "late")]
        return [*emitted, *self._emit([(record.input, row) for row in rows])]

    def advance(self) -> list[Output]:
        """Emit the windows that the clock has closed (emit `close`), as if the clock had passed each end in turn."""
        ends: dict[int, list[tuple[str, TableKey]]] = defaultdict(list)
        for name, side in self.sides.items():
            for row in side.close(self.clock.now):
                ends[row[1][1] if row[1] else 0].append((name, row))
        return [output for _, closed in sorted(ends.items()) for output in self._emit(closed)]

    def _emit(self, rows: Iterable[tuple[str, TableKey]]) -> list[Output]:
        """Pass rows of the aggregates on to the join, and emit each changed result row once."""
        emitted: dict[TableKey, Change] = {}
        for side, row in rows:
            at = self.sides[side].emitted[row]
            for change in self._change(side, row, *at):
                emitted[change.key, change.window] = change
        return [_rekeyed(self.table, change) for change in sorted(emitted.values(), key=_end)]

    def _change(self, side: str, row: TableKey, value: Value, timestamp: int) -> list[Change]:
        key, joined = row[0], self.table.joined_row(row) if side == "right" else row
        match self.table.with_:
            case None:
                return [Change(*row, value, timestamp)]
            case "windowed_table":
                right = "left" if side == "events" else "right"
                return [] if joined is None else self.join.change(right, joined, value, timestamp)
            case "table":
                if (key, None) in self.rows:
                    self.join.tables["right"][row] = self.rows[key, None]
                return self.join.change("left", row, value, timestamp)
            case "table_lookup":
                if (key, None) in self.rows and self.table.looked_up_window(self.rows[key, None][0]) == row[1]:
                    return self.join.change("right", (key, None), value, timestamp)
        return []

    def _arrive_right(self, record: Record) -> list[Output]:
        own, emitted = (record.key, None), self.sides["events"].emitted
        if self.table.with_ == "stream_lookup":
            if record.value is None:
                return [Dropped(record.key, "null value")]
            found = emitted.get((record.key, self.table.looked_up_window(record.value)), (None, 0))
            return [Change(*own, [record.value, found[0]], record.timestamp)]
        self.rows.pop(own, None)
        if record.value is not None:
            self.rows[own] = (record.value, record.timestamp)
        if self.table.with_ == "table":
            windows = sorted(row for row in emitted if row[0] == record.key)
            changes = [self.join.change("right", row, record.value, record.timestamp) for row in windows]
            return [_rekeyed(self.table, change) for emitted in changes for change in emitted]
        looked = None if record.value is None else emitted.get((record.key, self.table.looked_up_window(record.value)))
        self.join.tables["right"].pop(own, None)
        if looked is not None:
            self.join.tables["right"][own] = looked
        return [*self.join.change("left", own, record.value, record.timestamp)]


def _end(change: Change) -> tuple[int, Key]:
    return (change.window[1] if change.window else 0, change.key or "")
