"""Debezium's change events of a table: envelopes with `op`, `before` and `after`, and a tombstone after each delete.

An arrival in a history is a change of a table. It contains the written or deleted row, the flag `deleted`, and the time
of the change, `ts_ms`. `ChangeLog` derives the envelopes from a key's earlier changes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

import pyarrow as pa

from .forms.payloads import json_of_row, json_text
from .forms.rows import Row
from .model import Arrival, JobHistory, Source

TIME, DELETED = "ts_ms", "deleted"
"""The additional columns of a history: the time of a change, and whether the change deletes the row."""
COLUMNS = (pa.field(DELETED, pa.bool_(), nullable=False), pa.field(TIME, pa.timestamp("us", "UTC"), nullable=False))
TIME_KIND = pa.int64()


def envelope(row: Row, columns: Sequence[pa.Field], table: str, op: str, before: Row | None, number: int) -> bytes:
    """Write a change event as Debezium's JSON converter does without schemas.

    Args:
        row: The row after the change, or the deleted row, with `ts_ms` as a number.
        columns: The table's columns.
        table: The table's name.
        op: `c`, `u`, `d`, or `r` for a row of the first snapshot.
        before: The row before the change; None if there was no row.
        number: The transaction's number.
    """
    images = [None if image is None else json_of_row(image, columns) for image in (before, None if op == "d" else row)]
    source: Mapping[str, str] = {
        "version": '"3.0.0.Final"',
        "connector": '"postgresql"',
        "name": '"streamproof"',
        "ts_ms": str(row[TIME]),
        "snapshot": '"true"' if op == "r" else '"false"',
        "db": '"app"',
        "schema": '"public"',
        "table": json_text(table),
        "txId": str(number),
        "lsn": str(number),
    }
    fields: Mapping[str, str] = {
        "before": images[0] or "null",
        "after": images[1] or "null",
        "source": _object(source),
        "op": f'"{op}"',
        "ts_ms": str(row[TIME]),
        "transaction": "null",
    }
    return _object(fields).encode()


def _object(fields: Mapping[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}"


def are_in_order(source: Source, rows: Iterable[Row]) -> bool:
    """Return whether the changes of each key arrive in time order; only a key's latest change may arrive again."""
    latest: dict[str, Row] = {}
    seen: set[str] = set()
    for row in rows:
        key, same = repr(source.key_of(row)), repr(row)
        before = latest.setdefault(key, row)
        if (same in seen and row != before) or row[TIME] < before[TIME]:
            return False
        seen.add(same)
        latest[key] = row
    return True


def in_order(history: JobHistory, sources: Iterable[Source]) -> JobHistory:
    """Return a history in which the changes of each table row arrive in time order, as in a database's log.

    The function sorts the times of a row's changes, and assigns them to the changes in order. A repeated older change
    is replaced by a repetition of the latest change.
    """
    for source in (source for source in sources if source.is_change_log):
        ordered = iter(_in_order(source, [row for name, row in history.arrivals if name == source.name]))
        arrivals = history.arrivals
        history = history.with_arrivals(
            Arrival(name, next(ordered) if name == source.name else row) for name, row in arrivals
        )
    return history


def _in_order(source: Source, rows: Sequence[Row]) -> list[Row]:
    times: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        times[repr(source.key_of(row))].append(row[TIME])
    waiting = {key: iter(sorted(of_key)) for key, of_key in times.items()}
    latest: dict[str, Row] = {}
    drawn: set[str] = set()
    handed_out: set[str] = set()
    ordered: list[Row] = []
    for row in rows:
        key = repr(source.key_of(row))
        moved = {**row, TIME: next(waiting[key])}
        if key not in latest or not (repr(row) in drawn or repr(moved) in handed_out):
            latest[key] = moved
        drawn.add(repr(row))
        handed_out.add(repr(latest[key]))
        ordered.append(latest[key])
    return ordered


def keep_order(history: JobHistory, varied: JobHistory, sources: Iterable[Source]) -> JobHistory:
    """Return the reordered history `varied`, but with the changes of each table row in the order of `history`, as in a
    log.
    """
    by_name = {source.name: source for source in sources if source.is_change_log}
    if not by_name:
        return varied
    waiting: dict[str, deque[Arrival]] = defaultdict(deque)

    def key_of(arrival: Arrival) -> str:
        return repr((arrival.input, by_name[arrival.input].key_of(arrival.row)))

    for arrival in history.arrivals:
        if arrival.input in by_name:
            waiting[key_of(arrival)].append(arrival)
    return varied.with_arrivals(
        waiting[key_of(arrival)].popleft() if arrival.input in by_name else arrival for arrival in varied.arrivals
    )


class ChangeLog:
    """Writes the change events of a table, in the order of its changes.

    Args:
        columns: The table's columns.
        key: The columns of the table's primary key.
        table: The table's name.
    """

    def __init__(self, columns: Sequence[pa.Field], key: Sequence[str], table: str) -> None:
        self._columns, self._key, self._table = columns, key, table
        self._rows: dict[str, Row] = {}
        self._keys: set[str] = set()
        self._sent: dict[str, list[bytes | None]] = {}

    def events(self, row: Row) -> list[bytes | None]:
        """Return the payloads of a change: an envelope, and after a delete also None, the tombstone.

        A row that arrives again has the same payloads as before, as after a redelivery. If a delete's row doesn't
        exist, `before` is the deleted row itself, as if log compaction had removed the insert.

        Args:
            row: The row, with `ts_ms` as a number.
        """
        same = repr(row)
        if same not in self._sent:
            self._sent[same] = self._new_events(row)
        return self._sent[same]

    def _new_events(self, row: Row) -> list[bytes | None]:
        key = repr([row[column] for column in self._key])
        before, is_new = self._rows.pop(key, None), key not in self._keys
        self._keys.add(key)
        number = len(self._sent) + 1
        if row[DELETED]:
            return [envelope(row, self._columns, self._table, "d", row if before is None else before, number), None]
        self._rows[key] = row
        # Choose the kind of event by the row's content without the key, because a shared query changes keys.
        content = repr({name: value for name, value in row.items() if name not in self._key})
        op = "u" if before is not None else "r" if is_new and crc32(content.encode()) % 2 else "c"
        return [envelope(row, self._columns, self._table, op, before, number)]
