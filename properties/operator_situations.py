"""Situations of the operators besides session windows: what a history met, read off its records and what came out.

A law says inconclusive until each of them has come up. `needed` names those that can come up under a definition.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from ..reference.histories import History
from ..reference.play import Played
from ..reference.records import Change, Dropped, Record

Met = Iterator[str]


def met(history: History, played: Played) -> set[str]:
    """Name the situations that a history met."""
    records = [taken.record for taken in played.accepted]
    found = {f"dropped: {entry.output.reason}" for entry in played.entries if isinstance(entry.output, Dropped)}
    if any(later.timestamp < earlier.timestamp for earlier, later in pairwise(records)):
        found.add("out of order")
    keys = {record.key for record in records}
    if len(keys - {None}) > 1:
        found.add("two keys")
    if None in keys:
        found.add("null key kept")
    changes = [entry.output for entry in played.entries if isinstance(entry.output, Change)]
    found |= set(_OF[history.operator](played.definition, records, changes, played))
    return found


def needed(operator: str, definition: Any) -> tuple[str, ...]:
    """Name the situations that must come up in histories of a definition, those with null keys among them."""
    kept = getattr(definition, "null_key", "drop") == "keep"
    return (
        "out of order",
        "two keys",
        "null key kept" if kept else "dropped: null key",
        *_NEEDED[operator](definition),
    )


def _window_aggregate(definition: Any, records: list[Record], changes: list[Change], played: Played) -> Met:
    told = Counter((change.key, change.window) for change in changes if change.value is not None)
    if changes:
        yield "window told"
    if any(count > 1 for count in told.values()):
        yield "window told again"
    if any(change.value is None for change in changes):
        yield "told session merged"
    windows = Counter(window for record in records for window in definition.fixed(record.timestamp, 0, 0))
    if definition.type == "fixed" and any(count > 1 for count in windows.values()):
        yield "window of several"


def _range_aggregate(definition: Any, records: list[Record], changes: list[Change], played: Played) -> Met:
    for place, record in enumerate(records):
        distances = [record.timestamp - earlier.timestamp for earlier in records[:place] if earlier.key == record.key]
        if definition.preceding_ms in distances:
            yield "exact bound"
        if definition.preceding_ms + 1 in distances:
            yield "bound + 1"
        if sum(0 <= distance <= definition.preceding_ms for distance in distances) > 1:
            yield "range of several"


def _stream_stream_join(definition: Any, records: list[Record], changes: list[Change], played: Played) -> Met:
    pairs = [change for change in changes if None not in change.value]
    if pairs:
        yield "pair"
    if len(pairs) < len(changes):
        yield "unmatched row"
    arrivals = Counter(
        entry.arrival for entry in played.entries if isinstance(entry.output, Change) and None not in entry.output.value
    )
    if any(count > 1 for count in arrivals.values()):
        yield "several partners"
    lefts = [record for record in records if record.input == "left"]
    for right in (record for record in records if record.input == "right"):
        distances = {right.timestamp - left.timestamp for left in lefts if left.key == right.key}
        if distances & {definition.after_ms, -definition.before_ms}:
            yield "exact bound"
        if distances & {definition.after_ms + 1, -definition.before_ms - 1}:
            yield "bound + 1"


def _stream_table_join(definition: Any, records: list[Record], changes: list[Change], played: Played) -> Met:
    rows: dict[str | None, list[Any]] = defaultdict(list)
    for record in records:
        values = rows[record.key]
        if record.input == "right":
            values.append(record.value)
        elif values and values[-1] is not None:
            yield "row found"
        else:
            yield "row deleted before" if any(value is not None for value in values) else "row missing"


def _table_table_join(definition: Any, records: list[Record], changes: list[Change], played: Played) -> Met:
    yield from _rows_changed(records)
    if any(change.value is not None and None not in change.value for change in changes):
        yield "both sides"
    if any(change.value is None for change in changes):
        yield "tombstone"


def _rows_changed(records: list[Record]) -> Met:
    rows: dict[tuple[str, str | None], Any] = {}
    for record in records:
        old = rows.get((record.input, record.key))
        if old is not None:
            yield "row deleted" if record.value is None else "row changed"
        elif record.value is None:
            yield "missing row deleted"
        rows[record.input, record.key] = record.value


def _table_aggregate(definition: Any, records: list[Record], changes: list[Change], played: Played) -> Met:
    rows: dict[str | None, Any] = {}
    for record in records:
        before, after = definition.group(rows.get(record.key)), definition.group(record.value)
        if before is not None:
            yield "row left" if after is None else "group changed" if after != before else "same group"
        rows[record.key] = record.value
        if before is not None and before not in map(definition.group, rows.values()):
            yield "group emptied"


def _windowed_table(definition: Any, records: list[Record], changes: list[Change], played: Played) -> Met:
    if any(len(definition.starts(record.timestamp)) > 1 for record in records):
        yield "several windows"
    if changes:
        yield "window told"
    if definition.with_ is None:
        return
    values = [
        change.value["value"] if definition.to_stream == "window_in_value" else change.value for change in changes
    ]
    for value in values:
        yield "tombstone" if value is None else "unmatched row" if None in value else "both sides"


def _by_foreign_key(definition: Any, records: list[Record], changes: list[Change], played: Played) -> Met:
    rows: dict[str | None, Any] = {}
    rights: set[str | None] = set()
    for record in records:
        if record.input == "right":
            referring = [key for key, value in rows.items() if definition.foreign_key_of(value) == record.key]
            if len(referring) > 1:
                yield "fan-out"
            if record.value is None and record.key in rights and referring:
                yield "right row deleted"
            (rights.discard if record.value is None else rights.add)(record.key)
            continue
        old, new = rows.get(record.key), record.value
        before, after = definition.foreign_key_of(old), definition.foreign_key_of(new)
        rows[record.key] = new
        if before is not None and after is not None and before != after:
            yield "foreign key changed"
            if before in rights and after not in rights:
                yield "moved to a missing row"
        if before is not None and new is None:
            yield "left row deleted"
        if new is not None and after is None:
            yield "null foreign key" if before is None else "foreign key became null"
        if after in rights:
            yield "row found"


_OF: dict[str, Callable[[Any, list[Record], list[Change], Played], Met]] = {
    "window_aggregate": _window_aggregate,
    "range_aggregate": _range_aggregate,
    "stream_stream_join": _stream_stream_join,
    "stream_table_join": _stream_table_join,
    "table_table_join": _table_table_join,
    "table_aggregate": _table_aggregate,
    "windowed_table": _windowed_table,
    "foreign_key_join": _by_foreign_key,
    "one_to_many_join": _by_foreign_key,
}


def _needed_of_windows(windows: Any) -> Iterator[str]:
    yield "window told"
    if windows.unit == "ms":
        yield "dropped: late"
    if windows.early is not None or windows.late == "update":
        yield "window told again"
    if windows.type == "session" and windows.storage == "aggregate" and windows.early is not None:
        yield "told session merged"


def _needed_of_stream_join(join: Any) -> Iterator[str]:
    yield from ("pair", "several partners", "exact bound", "bound + 1", "dropped: late", "dropped: null value")
    if join.join != "inner":
        yield "unmatched row"


def _needed_of_windowed(table: Any) -> Iterator[str]:
    yield from ("window told", "dropped: late")
    if table.step_ms < table.size_ms:
        yield "several windows"
    if table.with_ is not None:
        yield "both sides"
        if table.join != "inner":
            yield "unmatched row"


_FOREIGN_KEYS = (
    "row found",
    "foreign key changed",
    "moved to a missing row",
    "left row deleted",
    "right row deleted",
    "foreign key became null",
    "null foreign key",
    "fan-out",
)
_NEEDED: dict[str, Callable[[Any], Any]] = {
    "window_aggregate": _needed_of_windows,
    "range_aggregate": lambda definition: ("range of several", "exact bound", "bound + 1"),
    "stream_stream_join": _needed_of_stream_join,
    "stream_table_join": lambda definition: (
        "row found",
        "row missing",
        "row deleted before",
        "dropped: null value",
    ),
    "table_table_join": lambda definition: (
        "both sides",
        "row changed",
        "row deleted",
        "missing row deleted",
        "tombstone",
    ),
    "table_aggregate": lambda definition: ("same group", "group changed", "row left", "group emptied"),
    "windowed_table": _needed_of_windowed,
    "foreign_key_join": lambda definition: _FOREIGN_KEYS,
    "one_to_many_join": lambda definition: _FOREIGN_KEYS,
}
