"""Records, changes, dropped records, and the table that a changelog folds to.

Timestamps are event time in integer milliseconds, never negative.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

Key: TypeAlias = str
Value: TypeAlias = Any
Window: TypeAlias = tuple[int, int]
TableKey: TypeAlias = tuple[Key | None, Window | None]


class Record(NamedTuple):
    """A record on a named input. On an input that is a table, a null value is a tombstone."""

    input: str
    key: Key | None
    value: Value
    timestamp: int


class Change(NamedTuple):
    """An entry of a changelog: a value, or a tombstone (value None), for a key and (None without windows) a window.

    The key is None only for operators that accept records without a key.
    """

    key: Key | None
    window: Window | None
    value: Value
    timestamp: int


class Dropped(NamedTuple):
    """A record that the operator did not accept, and the reason: `late`, `null key`, `null value` or `filtered`."""

    key: Key | None
    reason: str


class Accepted(NamedTuple):
    """A record that the operator accepted, and the clock's time at its arrival (ms)."""

    record: Record
    clock: int


Output: TypeAlias = Change | Dropped
Table: TypeAlias = dict[TableKey, tuple[Value, int]]
Bag: TypeAlias = list[Change]


def fold(changes: Iterable[Output], table: Table | None = None) -> Table:
    """Fold a changelog by key and window into `{(key, window): (value, timestamp)}`, or into a given table."""
    table = {} if table is None else table
    for change in changes:
        if isinstance(change, Dropped):
            continue
        if change.value is None:
            table.pop((change.key, change.window), None)
        else:
            table[change.key, change.window] = (change.value, change.timestamp)
    return table


def bag(changes: Iterable[Output]) -> Bag:
    """Return the results of a stream as a bag: all results, sorted by key, timestamp, window and value."""
    return sorted((change for change in changes if isinstance(change, Change)), key=_bag_order)


_canonical = json.JSONEncoder(sort_keys=True)


def _bag_order(change: Change) -> tuple[bool, str, int, Window, str]:
    value = _canonical.encode(change.value)
    return (change.key is not None, change.key or "", change.timestamp, change.window or (0, 0), value)
