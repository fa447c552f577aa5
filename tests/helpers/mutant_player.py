"""Plays batches of rows on the logic of a Spark operator without Spark, and gives all that it emits and stores.

Each batch has a new logic, as a task of Spark has, and states go through their packed form. An operator in stages is
played as its query does: each stage takes a batch of messages in the order of their places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import memory_runtime
from memory_runtime import Groups, came, sent, stage_of
from streamproof.spark_impl.runtime.processor import Hop

MakeLogic = Callable[[], Any]


class Row(NamedTuple):
    """A row of a batch: its key (null where there is none), its time (ms), its input by number, and its value."""

    key: str | None
    timestamp: int
    side: int
    value: Any


class Batch(NamedTuple):
    """The rows of a batch, and the time (ms) up to which it moves the clock beside them."""

    rows: list[Row]
    advance: int = 0


class Stage(NamedTuple):
    """A stage: its logic by name, its inputs, and what sends its messages."""

    name: str
    sides: list[str]
    hop: Hop | None = None


def play_stateful(
    make: MakeLogic, batches: Sequence[Batch], sides: Sequence[str]
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """Play a logic; give what it emits in each batch, and after each its state by key, as text."""
    groups = Groups()
    clock = largest = order = 0
    emitted: list[list[dict[str, Any]]] = []
    stored: list[str] = []
    for batch in [*batches, Batch([]), Batch([])]:
        rows = []
        for row in batch.rows:
            rows.append(memory_runtime.Row((row.key,), row.timestamp, order, row.value, row.side))
            order += 1
        logic = make()
        emitted.append(_changes(groups.batch(stage_of(logic, sides), rows, clock)))
        stored.append(_stored(groups))
        moving = [row.timestamp for row in batch.rows if row.key is not None or logic.keeps_null_keys]
        largest = max([largest, batch.advance, *moving])
        clock = largest
    return emitted, stored


def play_staged(
    make: MakeLogic,
    stages: Sequence[Stage],
    batches: Sequence[Batch],
    first: Callable[[Row], tuple[Any, ...]],
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """Play an operator in stages; give what the last one emits in each batch, and the states of all.

    Args:
        make: Makes the named tuple of all stages' logics.
        stages: The stages, first to last.
        batches: Rows of input 0 go to the first stage, those of input 1 to the second one.
        first: The value of a row of input 0 in the first stage.
    """
    groups = [Groups() for _ in stages]
    emitted: list[list[dict[str, Any]]] = []
    stored: list[str] = []
    order = 0
    for batch in batches:
        logics = make()
        arriving: list[memory_runtime.Row] = []
        rights: list[memory_runtime.Row] = []
        for row in batch.rows:
            place = [order, row.timestamp]
            order += 1
            if row.side:
                rights.append(memory_runtime.Row((row.key,), row.timestamp, [*place, -1], row.value, 1))
            else:
                arriving.append(memory_runtime.Row((row.key,), row.timestamp, place, first(row)))
        binaries: list[bytes] = []
        for number, stage in enumerate(stages):
            taken = [*arriving, *(rights if number == 1 else [])]
            run = stage_of(getattr(logics, stage.name), stage.sides, stage.hop)
            binaries = groups[number].batch(run, taken, 0)
            if stage.hop is not None:
                arriving = [memory_runtime.Row(*message) for message in sent(binaries)]
        emitted.append(_changes(binaries))
        stored.append(" ".join(map(_stored, groups)))
    return emitted, stored


def _changes(binaries: Sequence[bytes]) -> list[dict[str, Any]]:
    names = ("start", "end", "value", "timestamp", "change", "reason", "cause")
    return [
        {"key": one.key[0], **dict(zip(names, one.emitted, strict=True)), "ordinal": one.ordinal}
        for one in came(binaries)
    ]


def _stored(groups: Groups) -> str:
    return repr(sorted((repr(key), fields) for key, (_, fields) in groups.stored().items()))
