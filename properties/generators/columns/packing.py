"""Packing: many histories of a job in one query, each under its own key space."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ....reference.core.errors import BadInput
from .inputs import ResolvedInput
from .key_spaces import MOST, KeySpace, key_space
from .model import JobHistory, Row, Source


class UnreadableKey(BadInput):
    """A row of a shared query's result can't be handed to a history: then the histories run each in its own query."""


def pack(histories: Sequence[JobHistory], inputs: Sequence[ResolvedInput], seed: int = 0) -> list[dict[str, pa.Table]]:
    """Lay histories out as one table for each batch and input, in an order of rows that the seed mixes.

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
    tables = []
    for batch in range(len(clock)):
        rows: dict[str, list[tuple[int, Row]]] = {source.name: [] for source in sources}
        for number, history in enumerate(histories, 1):
            for name, row in history.batches[batch]:
                column = space.columns[name]
                rows[name].append((number, {**row, column: space.packed(number, row[column])}))
        tables.append({source.name: table_of(source, _mixed(rows[source.name], generator)) for source in sources})
    return tables


def _mixed(rows: Sequence[tuple[int, Row]], generator: random.Random) -> list[Row]:
    """Return the rows in a random order in which those of each history are as they arrive, as where it runs alone."""
    numbers = [number for number, _ in rows]
    generator.shuffle(numbers)
    waiting: dict[int, deque[Row]] = defaultdict(deque)
    for number, row in rows:
        waiting[number].append(row)
    return [waiting[number].popleft() for number in numbers]


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


def unpack(
    rows: Sequence[Row], histories: Sequence[JobHistory], sources: Sequence[Source], keys: Sequence[str]
) -> list[list[Row]]:
    """Hand every history its own rows of a job's output, under its own keys.

    Args:
        rows: The rows that the job has emitted.
        histories: The histories, as they were packed.
        sources: The job's inputs.
        keys: The columns of the output that have the key column which carries a history's number. Where they are
            several, as after an outer join, one that isn't null is enough.

    Raises:
        UnreadableKey: A key is none that was packed, or the row has none; the message says which.
        BadInput: A column of the key is missing.
    """
    space = key_space(sources)
    own = [{row[space.columns[name]] for batch in history.batches for name, row in batch} for history in histories]
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
                f"the job's output has a row whose key is null, {shown}; where the key is that of a side "
                "which has one, as by coalesce, hundreds share a query"
            )
        owners.append(owner)
    found: list[list[Row]] = [[] for _ in histories]
    for owner, row in zip(owners, _restored(rows, owners, own, space), strict=True):
        found[owner - 1].append(row)
    return found


def _restored(
    rows: Sequence[Row], owners: Sequence[int], own: Sequence[set[Any]], space: KeySpace
) -> list[dict[str, Any]]:
    """Return rows with their histories' own keys, wherever a job has put them: under another name, or within a struct.

    A text that begins as a packed key does is made of it. An integer may be in a history's range by chance, so that of
    integers a place in the rows has keys only where it has them in each row.
    """

    def key(owner: int, value: Any) -> Any:
        if not space.stride:
            prefix = space.packed(owner, "")
            return value.removeprefix(prefix) if isinstance(value, str) else value
        unpacked = space.unpacked(value)
        known = unpacked is not None and unpacked[0] == owner and unpacked[1] in own[owner - 1]
        return unpacked[1] if unpacked is not None and known else value

    others: set[tuple[str, ...]] = set()

    def walk(owner: int, value: Any, place: tuple[str, ...], change: bool) -> Any:
        if isinstance(value, Mapping):
            return {name: walk(owner, inner, (*place, str(name)), change) for name, inner in value.items()}
        if isinstance(value, list):
            return [walk(owner, inner, (*place, ""), change) for inner in value]
        restored = key(owner, value)
        if space.stride and restored is value and isinstance(value, int):
            others.add(place)
        return restored if change and place not in others else value

    for change in (False, True) if space.stride else (True,):
        made = [walk(owner, row, (), change) for owner, row in zip(owners, rows, strict=True)]
    return made


def _unreadable(space: KeySpace, column: str, value: Any, owner: int | None, unpacked: tuple[int, Any] | None) -> str:
    if unpacked is not None:
        return (
            f"the job's output has a row with the keys of two histories, of numbers {owner} and {unpacked[0]}, for it "
            "brings together rows of different keys"
        )
    given = space.packed(1, 1 if space.stride else "a")
    return (
        f"the job's output has the key {value!r} ({type(value).__name__}) in the column {column!r}, which is no key "
        f"that it was given (such as {given!r}), for it looks into its keys; where the key is selected as it came, "
        "neither cast nor changed, hundreds share a query"
    )
