"""Packing: many histories of a job in one query, each under its own key space, and rows that drive the watermark.

One column of the key carries the number of the history: text by a prefix (`00042|a`), integers by a range of their own.
Rows under a reserved number have the clock's time in every batch, on every input. They differ in everything else, so
that a job's filters let some of them through.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ...reference.core.errors import BadInput
from .drawing import time_of, value_columns
from .inputs import ResolvedInput
from .key_spaces import DRIVER, MOST, KeySpace, key_space
from .model import JobHistory, Row, Source, from_microseconds
from .values import key_kinds

DRIVER_ROWS = 8
DRIVER_ROWS_MOST = 32


def pack(histories: Sequence[JobHistory], inputs: Sequence[ResolvedInput], seed: int = 0) -> list[dict[str, pa.Table]]:
    """Lay histories out as one table for each batch and input, in an order of rows that the seed shuffles.

    Args:
        histories: The histories, all of one clock schedule.
        inputs: The job's inputs.
        seed: The seed of the order of rows.

    Raises:
        BadInput: The histories are too many, or can't share a query; or a value doesn't fit its column.
        ValueError: They have different clock schedules, or none.
    """
    clock = histories[0].clock if histories else ()
    if any(history.clock != clock for history in histories) or not clock:
        raise ValueError(f"{len(histories)} histories have no one clock schedule")
    if len(histories) > MOST:
        raise BadInput(f"{len(histories)} histories don't fit into one query: check {MOST} or fewer at once")
    sources = [given.source for given in inputs]
    space = key_space(sources)
    generator = random.Random(f"{seed} of the order")
    drivers = {given.name: _driver_rows(given, space) for given in inputs}
    tables = []
    for batch, time_us in enumerate(clock):
        rows: dict[str, list[Row]] = {}
        for source in sources:
            time = time_of(source, time_us)
            rows[source.name] = [{**row, source.time: time} for row in drivers[source.name]]
        for number, history in enumerate(histories, 1):
            for name, row in history.batches[batch]:
                column = space.columns[name]
                rows[name].append({**row, column: space.packed(number, row[column])})
        for found in rows.values():
            generator.shuffle(found)
        tables.append({source.name: table_of(source, rows[source.name]) for source in sources})
    return tables


def tables_alone(history: JobHistory, sources: Sequence[Source]) -> list[dict[str, pa.Table]]:
    """Lay one history out as one table for each batch and input, its keys as they are and no rows but its own."""
    return [
        {source.name: table_of(source, [row for name, row in batch if name == source.name]) for source in sources}
        for batch in history.batches
    ]


def table_of(source: Source, rows: Sequence[Row]) -> pa.Table:
    """Return rows as an Arrow table.

    Raises:
        BadInput: A value doesn't fit its column.
    """
    columns = []
    for column in source.schema:
        try:
            columns.append(pa.array([row[column.name] for row in rows], column.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise BadInput(
                f"input {source.name}: a value of the column {column.name!r} doesn't fit {column.type}: "
                f"{str(error).splitlines()[0]}; give values of that type"
            ) from None
    return pa.table(columns, schema=source.schema)


def _driver_rows(given: ResolvedInput, space: KeySpace) -> list[dict[str, Any]]:
    """Return the watermark driver's rows on an input, but for their time: the same in every batch.

    A filter that lets one through in one batch lets it through in all, and the watermark moves without gaps.
    """
    source = given.source
    columns = value_columns(given, from_microseconds(0).replace(year=2024))
    longest = max([DRIVER_ROWS, *(len(pool) for pool in given.pools.values())])
    generator = random.Random(0)
    rows = []
    for number in range(min(longest, DRIVER_ROWS_MOST)):
        row = dict(generator.choice(given.sample)) if given.sample else {}
        for shift, column in enumerate(columns):
            kind = column.kinds[number // 2 % len(column.kinds)]
            # Nulls are never in all columns of a row, nor in the first rows.
            null = column.nullable and number % 4 == 3 and (number // 4 + shift) % 2
            row[column.name] = None if null else kind[(number + shift * (number // 4)) % len(kind)]
        for column_name in source.key:
            pool = (
                given.pools.get(column_name)
                or key_kinds(source.schema.field(column_name).type, from_microseconds(0))[0]
            )
            row[column_name] = pool[number % len(pool)]
        carrier = space.columns[source.name]
        row[carrier] = space.packed(DRIVER, number if space.stride else f"{row[carrier]}{number}")
        rows.append({column: row.get(column) for column in source.schema.names})
    return rows


def unpack(
    rows: Sequence[Row], histories: Sequence[JobHistory], sources: Sequence[Source], keys: Sequence[str]
) -> list[list[Row]]:
    """Hand every history its own rows of a job's output, under its own keys; the watermark driver's are left out.

    Args:
        rows: The rows that the job has emitted.
        histories: The histories, as they were packed.
        sources: The job's inputs.
        keys: The columns of the output that have the key column which carries a history's number. Where they are
            several, as after an outer join, one that isn't null is enough.

    Raises:
        BadInput: A key is none that was packed; the message says which.
    """
    space = key_space(sources)
    own = [{row[space.columns[name]] for batch in history.batches for name, row in batch} for history in histories]
    found: list[list[Row]] = [[] for _ in histories]
    for row in rows:
        owner = None
        restored = dict(row)
        for column in keys:
            if column not in row:
                raise BadInput(
                    f"the job's output has no column {column!r}: it has {', '.join(row)}; select the key too"
                )
            value = row[column]
            if value is None:
                continue
            unpacked = space.unpacked(value)
            known = unpacked is not None and (
                unpacked[0] == DRIVER or (unpacked[0] <= len(own) and unpacked[1] in own[unpacked[0] - 1])
            )
            if unpacked is None or not known or owner not in (None, unpacked[0]):
                raise BadInput(_unreadable(space, column, value, owner, unpacked if known else None))
            owner, restored[column] = unpacked
        if owner is None:
            raise BadInput(
                f"the job's output has a row whose key is null, {_shown(row)}: select the key of a side that has one, "
                f"as by coalesce, or run each history in a query of its own"
            )
        if owner != DRIVER:
            found[owner - 1].append(restored)
    return found


def _unreadable(space: KeySpace, column: str, value: Any, owner: int | None, unpacked: tuple[int, Any] | None) -> str:
    if unpacked is not None:
        return (
            f"the job's output has a row with the keys of two histories, of numbers {owner} and {unpacked[0]}: the job "
            f"brings together rows of different keys; run each history in a query of its own"
        )
    given = space.packed(1, 1 if space.stride else "a")
    return (
        f"the job's output has the key {value!r} ({type(value).__name__}) in the column {column!r}, which is no key "
        f"that it was given (such as {given!r}): select the key as it came, neither cast nor changed, or run each "
        f"history in a query of its own"
    )


def _shown(row: Row) -> str:
    return ", ".join(f"{column} {value!r}" for column, value in row.items())
