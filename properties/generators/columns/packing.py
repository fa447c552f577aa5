"""Packing: many histories of a job in one query, each with its own key space."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ....reference.core.errors import BadInput
from .forms.rows import Row
from .inputs import ResolvedInput
from .key_spaces import MOST, KeySpace, identity_column, key_space
from .model import Arrival, JobHistory, Source
from .wire import Encoder

MOST_ROWS = 300_000
"""The largest number of rows of a static table, after a copy of its rows for each history."""


class UnreadableKey(BadInput):
    """Raised if keys can't be packed or unpacked in a shared query, so that each history must run in its own query."""


def pack(histories: Sequence[JobHistory], inputs: Sequence[ResolvedInput], seed: int = 0) -> list[dict[str, pa.Table]]:
    """Convert histories to a table for each batch and input; the seed shuffles the rows of different histories.

    Args:
        histories: The histories, with the same number of batches, and with the same clock schedule or all without a
            schedule.
        inputs: The job's inputs.
        seed: The seed of the order of rows.

    Raises:
        BadInput: There are too many histories, the histories can't share a query, or a value doesn't fit its column.
        ValueError: There are no histories, or the histories have different clock schedules or numbers of batches.
    """
    schedules = {(history.clock, len(history.batches)) for history in histories}
    if len(schedules) != 1:
        raise ValueError(f"{len(histories)} histories have no one clock schedule")
    if len(histories) > MOST:
        raise BadInput(f"{len(histories)} histories don't fit into one query: check {MOST} or fewer at once")
    sources = [given.source for given in inputs]
    space = key_space(sources)
    identities = {given.name: column for given in inputs if (column := identity_column(given, space)) is not None}
    return _laid_out(with_own_keys(histories, sources, identities), sources, random.Random(f"{seed} of the order"))


def tables_alone(history: JobHistory, sources: Sequence[Source]) -> list[dict[str, pa.Table]]:
    """Convert a single history to a table for each batch and input, with the history's own keys."""
    return _laid_out([history], sources, random.Random(0))


def _laid_out(
    histories: Sequence[JobHistory], sources: Sequence[Source], generator: random.Random
) -> list[dict[str, pa.Table]]:
    clock, encoders = histories[0].clock, {source.name: Encoder(source) for source in sources}
    tables = []
    for batch in range(len(histories[0].batches)):
        rows: dict[str, list[tuple[int, Row]]] = {source.name: [] for source in sources}
        unreadable: dict[str, list[tuple[Row, str]]] = {source.name: [] for source in sources}
        for number, history in enumerate(histories):
            for name, row in history.batches[batch]:
                rows[name].append((number, row))
            for one in history.unreadable_in(batch):
                unreadable[one.input].append((one.row, one.fault))
        tables.append(
            {
                name: encoder.table(_mixed(rows[name], generator), unreadable[name], clock[batch] if clock else None)
                for name, encoder in encoders.items()
            }
        )
    return tables


def pack_tables(
    tables: Mapping[str, pa.Table], keyed: Mapping[str, str], count: int, sources: Sequence[Source]
) -> dict[str, pa.Table]:
    """Return the static tables; a table whose rows belong to keys gets a copy of its rows, with packed keys, for each
    history.

    Args:
        tables: The tables, by name.
        keyed: The tables whose rows belong to keys of histories: the name of each table, and of its key column.
        count: The number of histories.
        sources: The job's inputs.

    Raises:
        UnreadableKey: A table is too large for the number of histories, or contains a key that can't be packed.
    """
    found = dict(tables)
    for name, column in keyed.items():
        table = tables[name]
        if table.num_rows * count > MOST_ROWS:
            raise UnreadableKey(f"{count} histories would have a table {name} of {table.num_rows} rows each")
        space, keys = key_space(sources), table[column].to_pylist()
        try:
            packed = pa.array([space.packed(of, key) for of in range(1, count + 1) for key in keys], table[column].type)
        except (BadInput, pa.ArrowException, TypeError, OverflowError) as error:
            raise UnreadableKey(f"the keys of the table {name} can't be kept apart: {error}") from None
        repeated = pa.concat_tables([table] * count)
        found[name] = repeated.set_column(repeated.column_names.index(column), table.schema.field(column), packed)
    return found


def with_own_keys(
    histories: Sequence[JobHistory], sources: Sequence[Source], identities: Mapping[str, str] = {}
) -> list[JobHistory]:
    """Return histories with the packed keys, and packed event identities, of a shared query.

    Args:
        histories: The histories.
        sources: The job's inputs.
        identities: The identity column that, like the key, gets the history's number as a prefix, by input.
    """
    space, found = key_space(sources), []

    def packed(number: int, name: str, row: Row) -> Row:
        column, identity = space.columns[name], identities.get(name)
        own = {} if identity is None or row[identity] is None else {identity: space.packed(number, row[identity])}
        return {**row, **own, column: space.packed(number, row[column])}

    for number, history in enumerate(histories, 1):
        arrivals = [Arrival(name, packed(number, name, row)) for name, row in history.arrivals]
        unreadable = tuple(one._replace(row=packed(number, one.input, one.row)) for one in history.unreadable)
        found.append(replace(history.with_arrivals(arrivals), unreadable=unreadable))
    return found


def _mixed(rows: Sequence[tuple[int, Row]], generator: random.Random) -> list[Row]:
    """Mix the rows of different histories randomly, and keep the order of arrival within each history."""
    numbers = [number for number, _ in rows]
    generator.shuffle(numbers)
    waiting: dict[int, deque[Row]] = defaultdict(deque)
    for number, row in rows:
        waiting[number].append(row)
    return [waiting[number].popleft() for number in numbers]


def unpack(
    rows: Sequence[Row],
    histories: Sequence[JobHistory],
    sources: Sequence[Source],
    keys: Sequence[str],
    of_tables: Collection[Any] = (),
) -> list[list[Row]]:
    """Return the rows of a job's output by history, with each history's own keys.

    Args:
        rows: The job's emitted rows.
        histories: The packed histories.
        sources: The job's inputs.
        keys: The output columns that contain the key with the history's number. If there are several such columns, as
            after an outer join, a row needs a non-null value in only one of them.
        of_tables: The keys of each history in static tables.

    Raises:
        UnreadableKey: A row has no key, or a key that isn't a packed key of a history; the message names the key.
        BadInput: A key column is missing.
    """
    space = key_space(sources)
    own = [{*of_tables, *(row[space.columns[name]] for name, row in _rows_of(history))} for history in histories]
    owners: list[int] = []
    for row in rows:
        owner = None
        for column in keys:
            if column not in row:
                raise BadInput(
                    f"the job's output has no column {column!r}: it has {', '.join(row)}; select the key too"
                )
            value = row[column]
            if value is None:
                continue
            unpacked = space.unpacked(value)
            known = unpacked is not None and unpacked[0] <= len(own) and unpacked[1] in own[unpacked[0] - 1]
            if unpacked is None or not known or owner not in (None, unpacked[0]):
                raise UnreadableKey(_unreadable(space, column, value, owner, unpacked if known else None))
            owner = unpacked[0]
        if owner is None:
            shown = ", ".join(f"{column} {value!r}" for column, value in row.items())
            raise UnreadableKey(
                f"the job's output has a row whose key is null, {shown}; if each row has the key of "
                "either side, as by coalesce, hundreds of histories share a query"
            )
        owners.append(owner)
    found: list[list[Row]] = [[] for _ in histories]
    for owner, row in zip(owners, _restored(rows, owners, own, space), strict=True):
        found[owner - 1].append(row)
    return found


def _rows_of(history: JobHistory) -> list[tuple[str, Row]]:
    """Return the rows of a history with their inputs, including the rows of its unreadable records."""
    return [*history.arrivals, *((one.input, one.row) for one in history.unreadable)]


def _restored(
    rows: Sequence[Row], owners: Sequence[int], own: Sequence[set[Any]], space: KeySpace
) -> list[dict[str, Any]]:
    """Replace packed keys by the histories' own keys, in all columns and nested fields of a job's output.

    A text with a history's prefix counts as a key. Other integers may be in a history's range by chance, so a column's
    integers count as keys only if all rows have keys there.
    """

    def key(owner: int, value: Any) -> Any:
        if not space.stride:
            prefix = space.packed(owner, "")
            if isinstance(value, bytes):
                return value.removeprefix(prefix.encode())
            return value.removeprefix(prefix) if isinstance(value, str) else value
        unpacked = space.unpacked(value)
        known = unpacked is not None and unpacked[0] == owner and unpacked[1] in own[owner - 1]
        return unpacked[1] if unpacked is not None and known else value

    others: set[tuple[str, ...]] = set()

    def walk(owner: int, value: Any, place: tuple[str, ...]) -> Any:
        if isinstance(value, Mapping):
            return {name: walk(owner, inner, (*place, str(name))) for name, inner in value.items()}
        if isinstance(value, list):
            return [walk(owner, inner, (*place, "")) for inner in value]
        restored = key(owner, value)
        if space.stride and restored is value and isinstance(value, int):
            others.add(place)
        return value if place in others else restored

    for _ in range(2 if space.stride else 1):  # the first walk finds all places of other numbers
        made = [walk(owner, row, ()) for owner, row in zip(owners, rows, strict=True)]
    return made


def _unreadable(space: KeySpace, column: str, value: Any, owner: int | None, unpacked: tuple[int, Any] | None) -> str:
    if unpacked is not None:
        return (
            f"the job's output has a row with the keys of two histories, numbers {owner} and {unpacked[0]}, because "
            "the job combines rows of different keys"
        )
    given = space.packed(1, 1 if space.stride else "a")
    return (
        f"the job's output has the key {value!r} ({type(value).__name__}) in the column {column!r}, which isn't a key "
        f"that it was given (such as {given!r}), because the job changes keys; if it selects the key without a cast "
        "or change, hundreds of histories share a query"
    )
