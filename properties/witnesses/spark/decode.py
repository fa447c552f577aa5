"""Read a query's output as changelog entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from ....reference.core.play import Entry
from ....reference.core.records import Change, Dropped, Key
from ...registration.bindings import of_key_column
from .query import StreamOutput


def entries_of(
    output: StreamOutput, decode: Callable[[Any], Any], keys: Callable[[pa.Table], list[Key | None]] = of_key_column
) -> list[Entry]:
    """Return a query's output as entries with their batches, each key's entries in order.

    Args:
        output: The query's output.
        decode: A function from a written value to the value of a change.
        keys: A function from a batch's table to the key of each row.
    """
    return [entry for batch, table in output.batches for entry in _entries(batch, table, decode, keys(table))]


def _entries(batch: int, table: pa.Table, decode: Callable[[Any], Any], keys: Sequence[Key | None]) -> Iterator[Entry]:
    if "ordinal" in table.column_names:
        # A key's changes are in one group of rows, and a sort by number restores their order.
        order = sorted(range(table.num_rows), key=table.column("ordinal").to_pylist().__getitem__)
    else:
        order = list(range(table.num_rows))
    values = table.column("value").to_pylist()
    timestamps = milliseconds_of(table.column("timestamp"))
    nothing: list[Any] = [None] * table.num_rows
    starts = ends = nothing
    if "window" in table.column_names:
        window = table.column("window").combine_chunks()
        starts, ends = (milliseconds_of(window.field(name)) for name in ("start", "end"))
    reasons = table.column("reason").to_pylist() if "reason" in table.column_names else nothing
    for row in order:
        if reasons[row] is not None:
            yield Entry(-1, batch, Dropped(keys[row], reasons[row]))
            continue
        span = None if starts[row] is None else (starts[row], ends[row])
        value = None if values[row] is None else decode(values[row])
        yield Entry(-1, batch, Change(keys[row], span, value, timestamps[row]))


def milliseconds_of(column: Any) -> list[Any]:
    """Return a column of times in ms; times that aren't whole, which none of our operators emits, become fractions."""
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    exact = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
    return [one if one is None else one / 1000 if one % 1000 else one // 1000 for one in exact]
