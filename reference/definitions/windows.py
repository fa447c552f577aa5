"""Definitions of windows.

All durations are milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from ..core.errors import BadInput
from ..core.records import Change, Record, TableKey, Window
from .aggregates import AGGREGATES_OF_SAMZA, COUNT, Aggregate, named_aggregate
from .declarations import (
    PYTHON_ONLY,
    UNSET,
    Definition,
    field_of,
    is_whole,
    not_negative,
    one_of,
    whole_milliseconds,
)
from .joins import require_join

Taken = TypeVar("Taken")


def _as_it_is(taken: Taken) -> Taken:
    return taken


@dataclass(frozen=True)
class SessionWindows(Definition):
    """The session windows of KIP-94: records of a key no more than `gap_ms` apart share a session.

    Attributes:
        gap_ms: The inactivity gap; records exactly one gap apart share a session.
        grace_ms: The time after the gap in which a session still accepts late records.
        retention_ms: The time for which a session stays in the store after its end; at least gap + grace, which is the
            default.
        aggregate: The aggregate of a session's values.
        emit: `update` emits every change of a session, `close` only its final value, once.
        late: `merged` drops a record if the session that it would join is closed (Kafka Streams); `own` drops a record
            by its own timestamp, regardless of the session that it would join (Spark).

    Raises:
        BadInput: A duration isn't a whole number of ms, the gap isn't positive, the grace is negative, the retention is
            shorter than gap + grace, or `emit` or `late` is invalid.

    Source: KIP-94, "SessionWindows" and "Late arriving data"; KIP-633 for grace.
    """

    gap_ms: int = field(metadata={"needed": 'the inactivity gap in milliseconds, such as "gap_ms": 10'})
    grace_ms: int = 0
    retention_ms: int = field(
        default_factory=lambda: UNSET, metadata={"give": "milliseconds, or leave it out for gap + grace"}
    )
    aggregate: Aggregate = field(default=COUNT, metadata={"read": named_aggregate})
    emit: Literal["update", "close"] = "update"
    late: Literal["merged", "own"] = "merged"

    def __post_init__(self) -> None:
        """Validate the declaration, and set the default retention."""
        if self.retention_ms is UNSET and is_whole(self.gap_ms) and is_whole(self.grace_ms):
            object.__setattr__(self, "retention_ms", self.gap_ms + self.grace_ms)
        whole_milliseconds(self, "gap_ms", "grace_ms", "retention_ms")
        if not isinstance(self.aggregate, Aggregate):
            raise BadInput(
                f"aggregate is {self.aggregate!r}: give an Aggregate; named_aggregate returns one by its name"
            )
        if self.gap_ms <= 0:
            raise BadInput(f"gap_ms is {self.gap_ms}: a session's gap must be positive")
        if self.grace_ms < 0:
            raise BadInput(f"grace_ms is {self.grace_ms}: grace can't be negative; use 0 for none")
        if self.retention_ms < self.gap_ms + self.grace_ms:
            raise BadInput(
                f"retention_ms is {self.retention_ms}, less than gap + grace ({self.gap_ms + self.grace_ms}): "
                "an open session would be forgotten; raise it to that or leave it out"
            )
        one_of(self, "emit", "update", "close")
        one_of(self, "late", "merged", "own")

    @property
    def unordered(self) -> bool:
        """Return true for `list`: the order of a session's merges determines the order of the list."""
        return self.aggregate.ordered

    def check(self, record: Record) -> None:
        """Refuse a value that the aggregate doesn't accept."""
        if record.key is not None:
            self.aggregate.check(record.value)

    def close_edge(self, clock: int) -> int:
        """Return a timestamp (ms): at a clock time (ms), sessions that end earlier are closed."""
        return clock - self.gap_ms - self.grace_ms

    def expiry_edge(self, clock: int) -> int:
        """Return a timestamp (ms): at a clock time (ms), sessions that end earlier are forgotten."""
        return clock - self.retention_ms


@dataclass(frozen=True)
class Early:
    """Samza's early-emission policy: when to emit a window that isn't complete.

    Attributes:
        every_tuples: Emit the window when it has this many messages that it hasn't emitted.
        every_ms: The interval (ms): emit the window when the clock passes a multiple of it.
    """

    every_tuples: int | None = None
    every_ms: int | None = None

    @classmethod
    def read(cls, option: Any) -> Early | None:
        """Read the option of a history file: `{"every_tuples": n}`, `{"every_ms": n}`, or null for none.

        Raises:
            BadInput: The option has another form, or n isn't a positive whole number.
        """
        if option is None:
            return None
        if not isinstance(option, Mapping) or len(option) != 1 or not set(option) <= {"every_tuples", "every_ms"}:
            raise BadInput(f'early is {option!r}: use {{"every_tuples": n}} or {{"every_ms": n}}, or leave it out')
        ((name, every),) = option.items()
        if not is_whole(every) or every < 1:
            raise BadInput(f"early has {name} {every!r}: give a whole number, 1 or more")
        return cls(**option)


@dataclass(frozen=True)
class WindowAggregate(Definition):
    """Samza's stateful window operator.

    Attributes:
        size: The length of a fixed window, in `unit`; for a session, the gap (ms).
        type: `fixed` windows, or `session` windows.
        unit: `ms`, or `tuple`: windows of `size` messages of a key, in order of arrival.
        step: The distance between the starts of consecutive fixed windows, in `unit`; at most the size, which is the
            default.
        retention_ms: The time for which a complete window is stored, for late messages and queries.
        storage: `aggregate` emits a window's aggregate; `full` stores a window's messages, and emits each message once.
        aggregate: The aggregate of a window's messages, if the storage is `aggregate`.
        early: When to emit a window before it is complete.
        late: `drop` ignores messages of complete windows; `update` adds late messages to windows that are still stored.
        before_process: Returns the record to process in place of a record, or None to ignore the record.
        before_send: Returns the change to emit in place of a change, or None to emit nothing.

    Raises:
        BadInput: A size isn't positive, the step is larger than the size, a session has tuples or a step, or late
            messages should update windows that aren't stored.

    Source: Samza's window operator (SAMZA-552), `WindowOperatorSpec` and `refresh`.
    """

    size: int = field(metadata={"needed": 'the length of a window, such as "size": 10'})
    type: Literal["fixed", "session"] = "fixed"
    unit: Literal["ms", "tuple"] = "ms"
    step: int = field(default_factory=lambda: UNSET)
    retention_ms: int = 0
    storage: Literal["aggregate", "full"] = "aggregate"
    aggregate: Aggregate = field(
        default=COUNT, metadata={"read": lambda name: named_aggregate(name, AGGREGATES_OF_SAMZA)}
    )
    early: Early | None = field(default=None, metadata={"read": Early.read})
    late: Literal["drop", "update"] = "drop"
    before_process: Callable[[Record], Record | None] = field(default=_as_it_is, metadata=PYTHON_ONLY)
    before_send: Callable[[Change], Change | None] = field(default=_as_it_is, metadata=PYTHON_ONLY)

    def __post_init__(self) -> None:
        """Validate the declaration, and set the default step."""
        one_of(self, "type", "fixed", "session")
        one_of(self, "unit", "ms", "tuple")
        one_of(self, "storage", "aggregate", "full")
        one_of(self, "late", "drop", "update")
        if self.type == "session" and self.unit == "tuple":
            raise BadInput("a session's gap is a time, not a number of tuples: use unit ms")
        if self.type == "session" and self.step is not UNSET:
            raise BadInput("a session has no step, because it begins at its first record: leave step out")
        _check_steps(self, "size", "step")
        not_negative(self, "retention_ms")
        if self.late == "update" and not self.retention_ms:
            raise BadInput("late messages can't update windows that aren't stored: give retention_ms, or use late drop")

    @property
    def is_stream(self) -> bool:
        """Return whether the result is a stream of messages, rather than a table of aggregates."""
        return self.storage == "full"

    @property
    def unordered(self) -> bool:
        """Return true for a session's `list`: the order of the session's merges determines the order of the list."""
        return self.type == "session" and self.storage == "aggregate" and self.aggregate.ordered

    @property
    def late_ms(self) -> int:
        """Return the time (ms) for which a complete window still accepts messages."""
        return self.retention_ms if self.late == "update" else 0

    def fixed(self, timestamp: int, index: int, clock: int) -> list[Window]:
        """Return the fixed windows `(start, end)` that accept a message.

        Args:
            timestamp: The message's timestamp (ms).
            index: The message's index among the messages of its key, from 0.
            clock: The clock's time (ms).
        """
        at = index if self.unit == "tuple" else timestamp
        windows = [(start, start + self.size) for start in starts_of(at, self.size, self.step)]
        return [window for window in windows if self.unit == "tuple" or window[1] > clock - self.late_ms]

    def check(self, record: Record) -> None:
        """Refuse a value that the aggregate doesn't accept."""
        if record.key is not None and self.storage == "aggregate":
            self.aggregate.check(record.value)


@dataclass(frozen=True)
class RangeAggregate(Definition):
    """`OVER (ORDER BY time RANGE … PRECEDING)`: each record's aggregate over the earlier records of its key.

    Attributes:
        preceding_ms: The length of the range, both ends included.
        aggregate: The aggregate of the values; `average` is supported too.

    Raises:
        BadInput: `preceding_ms` isn't a whole number of ms, or is negative.

    Source: Samza's window operator, "Windowed Aggregation".
    """

    preceding_ms: int = field(metadata={"needed": 'the length of the range, such as "preceding_ms": 600000'})
    aggregate: Aggregate = field(
        default=COUNT, metadata={"read": lambda name: named_aggregate(name, AGGREGATES_OF_SAMZA)}
    )

    def __post_init__(self) -> None:
        """Check the declaration."""
        not_negative(self, "preceding_ms")

    @property
    def is_stream(self) -> bool:
        """Return true: every record has one result."""
        return True

    def check(self, record: Record) -> None:
        """Refuse a value that the aggregate doesn't accept."""
        if record.key is not None:
            self.aggregate.check(record.value)


@dataclass(frozen=True)
class WindowedTable(Definition):
    """A windowed aggregate, whose result is a table by key and window (a WTable), and its joins.

    Attributes:
        size_ms: The length of a window; its end is exclusive.
        step_ms: The time between the starts of consecutive windows; at most the size, which is the default.
        grace_ms: The time after its end in which a window still accepts records.
        aggregate: The aggregate of a window's values.
        emit: `update` emits every change of a window, `close` only its final value, once.
        with_: The kind of the input `right`: None for no join; a `table` by key; another `windowed_table` with the same
            windows; or a stream (`stream_lookup`) or table (`table_lookup`) that looks up windows, and is then the
            primary side.
        join: `left`; two windowed tables also support `inner` (their default) and `outer`.
        shift_ms: The time from a window's start to the start of the other table's window that it joins; may be
            negative.
        window_start: For a look-up, the field of the primary value that contains the start (ms) of the window.
        to_stream: Where the result contains the window: by default beside the key; `window_in_key`: in the key, as
            `key@start`; `window_in_value`: in the value, and the result is a stream.

    Raises:
        BadInput: A size isn't positive, the step is larger than the size, the grace is negative, the join isn't
            supported, or an option doesn't belong to the join.

    Source: Kafka Streams Join Semantics, "Windowed Aggregate", "WTable", "JOIN operators"; a window closes at end +
    grace.
    """

    size_ms: int = field(metadata={"needed": 'the length of a window in milliseconds, such as "size_ms": 10'})
    step_ms: int = field(default_factory=lambda: UNSET)
    grace_ms: int = 0
    aggregate: Aggregate = field(default=COUNT, metadata={"read": named_aggregate})
    emit: Literal["update", "close"] = "update"
    with_: Literal["table", "windowed_table", "stream_lookup", "table_lookup"] | None = None
    join: Literal["inner", "left", "outer"] = field(default_factory=lambda: UNSET)
    shift_ms: int = 0
    window_start: str | None = None
    to_stream: Literal["window_in_key", "window_in_value"] | None = None

    def __post_init__(self) -> None:
        """Validate the declaration, and set the default step and join."""
        _check_steps(self, "size_ms", "step_ms")
        not_negative(self, "grace_ms")
        one_of(self, "emit", "update", "close")
        one_of(self, "with_", None, "table", "windowed_table", "stream_lookup", "table_lookup")
        one_of(self, "to_stream", None, "window_in_key", "window_in_value")
        whole_milliseconds(self, "shift_ms")
        if self.with_ is None and self.join is not UNSET:
            raise BadInput(f"join is {self.join!r}, but no input is joined: give the option with, or leave join out")
        if self.join is UNSET:
            object.__setattr__(self, "join", "inner" if self.with_ == "windowed_table" else "left")
        if self.with_ is not None:
            require_join(*_KINDS[self.with_], self.join)
        if self.shift_ms and self.with_ != "windowed_table":
            raise BadInput("shift_ms shifts the windows of another windowed table: use it only with windowed_table")
        if self.shift_ms % self.step_ms:
            raise BadInput(f"shift_ms is {self.shift_ms}: no window starts there; use a multiple of step_ms")
        if self.looked_up and not isinstance(self.window_start, str):
            raise BadInput('a look-up needs window_start: the field with the start of the window, such as "day"')
        if not self.looked_up and self.window_start is not None:
            raise BadInput("window_start belongs to a look-up: leave it out, or use with stream_lookup or table_lookup")
        if self.looked_up and self.to_stream is not None:
            raise BadInput("the result of a look-up has no window: leave to_stream out")

    @property
    def looked_up(self) -> bool:
        """Return whether the windowed table is the secondary side, whose windows the other side looks up."""
        return self.with_ in ("stream_lookup", "table_lookup")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return `events`, and `right` if an input is joined."""
        return ("events",) if self.with_ is None else ("events", "right")

    @property
    def is_stream(self) -> bool:
        """Return whether the result is a stream: of look-ups, or with the windows in the values."""
        return self.with_ == "stream_lookup" or self.to_stream == "window_in_value"

    def starts(self, timestamp: int) -> list[int]:
        """Return the starts (ms) of the windows that contain a timestamp."""
        return starts_of(timestamp, self.size_ms, self.step_ms)

    def is_closed(self, row: TableKey, clock: int) -> bool:
        """Return whether the window of a row is closed, at a clock time (ms)."""
        assert row[1] is not None
        return row[1][1] <= clock - self.grace_ms

    def joined_row(self, row: TableKey) -> TableKey | None:
        """Return the primary row that joins a row of the other windowed table; None if it would start before 0."""
        key, window = row
        assert window is not None
        start = window[0] - self.shift_ms
        return (key, (start, start + self.size_ms)) if start >= 0 else None

    def looked_up_window(self, value: Any) -> Window | None:
        """Return the window that a value looks up; None if the window's start is null.

        Raises:
            BadInput: The value isn't an object, lacks the field, or the field isn't a whole number.
        """
        assert self.window_start is not None
        start = field_of(value, self.window_start, "the window's start")
        if start is not None and not is_whole(start):
            raise BadInput(f"the field {self.window_start!r} holds {start!r}: give the window's start in whole ms")
        return None if start is None else (start, start + self.size_ms)

    def check(self, record: Record) -> None:
        """Refuse a value that the aggregate doesn't accept, or a look-up without a valid window start."""
        if record.key is None:
            return
        if record.input == "events" or self.with_ == "windowed_table":
            self.aggregate.check(record.value)
        elif self.looked_up and record.value is not None:
            self.looked_up_window(record.value)


def starts_of(position: int, size: int, step: int) -> list[int]:
    """Return the starts of the fixed windows that contain a position, in order; no window starts before 0.

    Args:
        position: A timestamp (ms), or the index of a message.
        size: The length of a window, in the same unit.
        step: The distance between the starts of consecutive windows.
    """
    first = max(0, (position - size) // step * step + step)
    return list(range(first, position + 1, step))


_KINDS = {
    "table": ("WTable", "KTable"),
    "windowed_table": ("WTable", "WTable"),
    "stream_lookup": ("KStream", "WTable"),
    "table_lookup": ("KTable", "WTable"),
}


def _check_steps(definition: Any, size: str, step: str) -> None:
    for name in (size, step):
        if getattr(definition, name) is UNSET:
            object.__setattr__(definition, name, getattr(definition, size))
        if not is_whole(getattr(definition, name)) or getattr(definition, name) < 1:
            raise BadInput(f"{name} is {getattr(definition, name)!r}: give a whole number, 1 or more")
    if getattr(definition, step) > getattr(definition, size):
        raise BadInput(
            f"{step} is {getattr(definition, step)}, more than {size} ({getattr(definition, size)}): records between "
            "two windows would be lost"
        )
