"""Samza's stateful window operator: fixed windows by time or by number of messages, and sessions.

Source: Samza's window operator (SAMZA-552), `process` and `refresh`: a message is added to all windows that contain it,
and makes them pending. A pending window is emitted when it is complete, or when the early-emission policy says so. If
the late-arrival policy is `update`, a complete window is emitted again for a late message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .core.clocks import Clock
from .core.errors import BadInput
from .core.records import Accepted, Bag, Change, Dropped, Key, Output, Record, Table, Window, bag, fold
from .definitions.windows import WindowAggregate
from .session_windows import sessions_of


@dataclass(eq=False)
class Message:
    """A message, the clock's time at its arrival (ms), and the windows that have emitted it (None for a session)."""

    record: Record
    clock: int
    emitted_by: set[Window | None] = field(default_factory=set)


@dataclass
class Filled:
    """A window of a key with its messages; `shown` are the windows under which the table has its earlier results."""

    windows: WindowAggregate
    key: Key
    window: Window
    messages: list[Message]
    shown: list[Window] = field(default_factory=list)

    @property
    def name(self) -> Window | None:
        """The window's name in `emitted_by`; all sessions share one name, because they grow and merge."""
        return None if self.windows.type == "session" else self.window

    @property
    def not_emitted(self) -> list[Message]:
        """The messages that the window has not emitted; the window is pending if there are any."""
        name = self.name
        return [message for message in self.messages if name not in message.emitted_by]

    def is_complete(self, clock: int) -> bool:
        """Return whether the window is complete at a clock time (ms): by message count, end or session gap."""
        if self.windows.unit == "tuple":
            return len(self.messages) == self.windows.size
        return self.window[1] < clock - self.windows.size if self.name is None else self.window[1] <= clock

    def is_over(self, clock: int) -> bool:
        """Return whether the window has been complete for longer than the retention at a clock time (ms)."""
        retention_ms = self.windows.retention_ms
        if self.windows.unit == "ms" or retention_ms == 0:
            return self.is_complete(clock - retention_ms)
        latest = max(record.timestamp for record in _records(self.messages))
        return self.is_complete(clock) and latest < clock - retention_ms

    def is_due(self, clock: int) -> bool:
        """Return whether the window is pending, and is complete or due by the early-emission policy."""
        not_emitted, early = self.not_emitted, self.windows.early
        if not not_emitted or early is None or self.is_complete(clock):
            return bool(not_emitted) and self.is_complete(clock)
        if early.every_tuples is not None:
            return len(not_emitted) >= early.every_tuples
        assert early.every_ms is not None
        return clock // early.every_ms > min(message.clock for message in not_emitted) // early.every_ms

    def emit(self) -> list[Change]:
        """Emit the aggregate, which replaces earlier output, or with full storage, the messages not yet emitted."""
        not_emitted = self.not_emitted
        for message in not_emitted:
            message.emitted_by.add(self.name)
        if self.windows.storage == "full":
            emitted = [
                Change(self.key, self.window, record.value, record.timestamp) for record in _records(not_emitted)
            ]
        else:
            gone = sorted((window for window in self.shown if window != self.window), key=lambda window: window[1])
            emitted = [Change(self.key, window, None, window[1]) for window in gone]
            emitted.append(self.aggregated(self.messages))
            self.shown = [self.window]
        sent = map(self.windows.before_send, emitted)
        return [change for change in sent if change is not None]

    def aggregated(self, messages: list[Message]) -> Change:
        """Return the row that the window emits for the given messages."""
        records = _records(messages)
        value = self.windows.aggregate.of(self.key, [record.value for record in records])
        return Change(self.key, self.window, value, max(record.timestamp for record in records))


def _records(messages: Iterable[Message]) -> list[Record]:
    return [message.record for message in messages]


def meaning(windows: WindowAggregate, accepted: Iterable[Accepted], clock: int) -> Table | Bag:
    """Return the emitted aggregates of the windows at a clock time (ms), or their emitted messages.

    A fixed window's output depends on its own messages alone; sessions merge, so their output depends on all messages
    of their key. To find earlier output, this function recomputes the windows at each message from the messages before
    it.
    """
    emitted: list[Change] = []
    rows: list[Change | None] = []
    for (key, window), messages in _together(windows, accepted).items():
        for number, message in enumerate(messages):
            for arrived in (messages[:number], messages[: number + 1]):
                emitted += _emitted(_filled(windows, key, window, arrived), message.clock)
        emitted += _emitted(_filled(windows, key, window, messages), clock)
        if windows.storage == "aggregate":
            shown = _filled(windows, key, window, [message for message in messages if message.emitted_by])
            rows += [windows.before_send(filled.aggregated(filled.messages)) for filled in shown]
    return bag(emitted) if windows.storage == "full" else fold(row for row in rows if row is not None)


def _together(windows: WindowAggregate, accepted: Iterable[Accepted]) -> dict[tuple[Key, Window | None], list[Message]]:
    """Group the messages by key and fixed window; the window of sessions is None."""
    together: dict[tuple[Key, Window | None], list[Message]] = defaultdict(list)
    counts: dict[Key, int] = defaultdict(int)
    for record, now in accepted:
        processed = windows.before_process(record)
        assert processed is not None
        assert processed.key is not None
        fixed = [] if windows.type == "session" else windows.fixed(processed.timestamp, counts[processed.key], now)
        counts[processed.key] += 1
        for window in [None] if windows.type == "session" else fixed:
            together[processed.key, window].append(Message(processed, now))
    return together


def _filled(windows: WindowAggregate, key: Key, window: Window | None, messages: list[Message]) -> list[Filled]:
    """Make the windows of messages: their common fixed window, or their sessions."""
    if window is not None:
        return [Filled(windows, key, window, messages)] if messages else []
    sessions = sessions_of(messages, windows.size, windows.size + windows.late_ms)
    bounds = [(session[0].record.timestamp, session[-1].record.timestamp) for session in sessions]
    return [Filled(windows, key, bound, session) for bound, session in zip(bounds, sessions, strict=True)]


def _emitted(every: list[Filled], clock: int) -> list[Change]:
    return [change for filled in every if filled.is_due(clock) for change in filled.emit()]


class Behaviour:
    """The state machine: the open or stored windows, by key."""

    def __init__(self, windows: WindowAggregate, clock: Clock) -> None:
        self.windows = windows
        self.clock = clock
        self.filled: dict[Key, dict[Window, Filled]] = defaultdict(dict)
        self.counts: dict[Key, int] = defaultdict(int)

    def arrive(self, record: Record) -> list[Output]:
        """Emit the windows that the clock has made due; add a message to its windows; emit those that it makes due."""
        processed = self.windows.before_process(record)
        if processed is None or processed.key is None:
            return [Dropped(record.key, "null key" if record.key is None else "filtered")]
        key, now = processed.key, Message(processed, 0)
        self.clock.observe(processed.timestamp)
        emitted = self.advance()
        if processed.value is None and self.windows.storage == "full":
            return [*emitted, Dropped(key, "null value")]
        now.clock = self.clock.now
        taken = self._merged(key, now) if self.windows.type == "session" else self._fixed(key, now)
        return [*emitted, *self.advance()] if taken else [*emitted, Dropped(key, "late")]

    def _fixed(self, key: Key, message: Message) -> bool:
        index = self.counts[key]
        self.counts[key] += 1
        windows = self.windows.fixed(message.record.timestamp, index, message.clock)
        for window in windows:
            self.filled[key].setdefault(window, Filled(self.windows, key, window, [])).messages.append(message)
        return bool(windows)

    def _merged(self, key: Key, message: Message) -> bool:
        gap, at = self.windows.size, message.record.timestamp
        edge = message.clock - gap - self.windows.late_ms
        around = (max(at - gap, edge), at + gap)
        near = [one for one in self.filled[key].values() if around[0] <= one.window[1] and one.window[0] <= around[1]]
        near.sort(key=lambda one: one.window[1])
        start, end = min([at, *(one.window[0] for one in near)]), max([at, *(one.window[1] for one in near)])
        if end < edge:
            return False
        for one in near:
            del self.filled[key][one.window]
        messages = [*(old for one in near for old in one.messages), message]
        shown = [window for one in near for window in one.shown]
        self.filled[key][start, end] = Filled(self.windows, key, (start, end), messages, shown)
        return True

    def advance(self) -> list[Output]:
        """Emit the pending windows that are due, by end, then key; forget expired windows (Samza's `refresh`)."""
        every = [one for windows in self.filled.values() for one in windows.values()]
        due = [one for one in every if one.is_due(self.clock.now)]
        emitted = [
            change
            for one in sorted(due, key=lambda one: (one.window[1], one.key, one.window[0]))
            for change in one.emit()
        ]
        for one in every:
            if one.is_over(self.clock.now):
                del self.filled[one.key][one.window]
        return [*emitted]

    def messages(self, earliest_ms: int, latest_ms: int, **fields: Any) -> list[Record]:
        """Return the stored messages between two timestamps (ms) whose values contain the given fields (`getMessages`).

        Raises:
            BadInput: The storage is `aggregate`, which stores no messages.
        """
        if self.windows.storage != "full":
            raise BadInput("the messages of an aggregated window can't be read: use storage full")
        held = {
            id(message): message.record
            for windows in self.filled.values()
            for one in windows.values()
            for message in one.messages
        }
        inside = [record for record in held.values() if earliest_ms <= record.timestamp <= latest_ms]
        return [
            record
            for record in sorted(inside, key=lambda record: record.timestamp)
            if all(isinstance(record.value, dict) and record.value.get(name) == value for name, value in fields.items())
        ]
