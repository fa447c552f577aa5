"""Plays batches of rows on the logic of a Spark operator without Spark, and returns all that it emits and stores.

Each batch has a new logic, as a task of Spark has, and states go through their packed form. An operator in stages is
played as its query does: each stage takes a batch of messages in the order of their places.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from logic_player import CHANGE_NAMES, Memory
from pyspark.sql import types as T
from streamproof.spark_impl.runtime.keyed import KeyedProcessor, Logic

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


class Stored(Memory):
    """A state that is stored as bytes."""

    def update(self, state: Any) -> None:
        self.state = pickle.dumps(state)

    def get(self) -> Any:
        return None if self.state is None else _without_types(pickle.loads(self.state))


def _without_types(value: Any) -> Any:
    """Return lists for tuples: a state comes back without the types that it was made of."""
    return [_without_types(member) for member in value] if isinstance(value, tuple | list) else value


class Stage(NamedTuple):
    """A stage: its logic by name, its inputs, and the columns of a message: its key, then its value by name."""

    name: str
    sides: list[str]
    key: Callable[[tuple[Any, ...]], Any] = lambda value: value[0]
    value: Callable[[dict[str, Any]], dict[str, Any]] = lambda change: {}


def play_stateful(
    make: MakeLogic, batches: Sequence[Batch], sides: Sequence[str]
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """Return what a logic emits in each batch, and after each its state by key, as text."""
    states: dict[Any, Stored] = {}
    clock = largest = order = 0
    emitted: list[list[dict[str, Any]]] = []
    stored: list[str] = []
    for batch in [*batches, Batch([]), Batch([])]:
        rows: dict[Any, list[tuple[Any, ...]]] = {}
        for row in batch.rows:
            values = [row.value if side == row.side else None for side in range(len(sides))]
            rows.setdefault(row.key, []).append((row.key, row.timestamp, order, row.side, *values))
            order += 1
        logic = make()
        emitted.append(_batch(logic, sides, states, rows, clock))
        stored.append(_stored(states))
        moving = [row.timestamp for row in batch.rows if row.key is not None or logic.keeps_null_keys]
        largest = max([largest, batch.advance, *moving])
        clock = largest
    return emitted, stored


def play_staged(
    make: MakeLogic,
    stages: Sequence[Stage],
    batches: Sequence[Batch],
    first: Callable[[Row], dict[str, Any]],
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """Return what the last stage emits in each batch, and the states of all stages.

    Args:
        make: Makes the named tuple of all stages' logics.
        stages: The stages, first to last.
        batches: Rows of input 0 go to the first stage, those of input 1 to the second one.
        first: The value of a row of input 0 in the first stage.
    """
    states: list[dict[Any, Stored]] = [{} for _ in stages]
    emitted: list[list[dict[str, Any]]] = []
    stored: list[str] = []
    order = 0
    for batch in batches:
        logics = make()
        arriving: list[tuple[Any, ...]] = []
        rights: list[tuple[Any, ...]] = []
        for row in batch.rows:
            place = {"order": order, "at": row.timestamp}
            order += 1
            if row.side:
                rights.append((row.key, row.timestamp, {**place, "step_1": -1}, 1, None, row.value))
            else:
                arriving.append((row.key, row.timestamp, place, 0, first(row), None))
        changes: list[dict[str, Any]] = []
        for number, stage in enumerate(stages):
            taken = [*arriving, *(rights if number == 1 else [])]
            rows: dict[Any, list[tuple[Any, ...]]] = {}
            for one in taken:
                rows.setdefault(one[0], []).append(one)
            changes = _batch(getattr(logics, stage.name), stage.sides, states[number], rows, 0)
            if number + 1 < len(stages):
                following = stages[number + 1]
                step = f"step_{number + 1}"
                arriving = [
                    (
                        None if change["value"] is None else following.key(change["value"]),
                        change["timestamp"],
                        {**change["cause"], step: change["ordinal"]},
                        0,
                        {"timestamp": change["timestamp"], "reason": change["reason"], **following.value(change)},
                        None,
                    )
                    for change in changes
                ]
        emitted.append(changes)
        stored.append(" ".join(map(_stored, states)))
    return emitted, stored


def _batch(
    logic: Logic[Any],
    sides: Sequence[str],
    states: dict[Any, Stored],
    rows: dict[Any, list[tuple[Any, ...]]],
    clock: int,
) -> list[dict[str, Any]]:
    processor = KeyedProcessor(logic, list(sides), 1, T.StructType(), CHANGE_NAMES, report_dropped=True, ended=False)
    emitted: list[dict[str, Any]] = []
    for key in sorted({*states, *rows}, key=repr):
        memory = states.setdefault(key, Stored())
        memory.clock = clock
        processor.init(memory)  # type: ignore[arg-type]
        found = []
        if key in rows:
            found += [*processor.handleInputRows(key, iter(rows[key][::-1]), memory)]  # type: ignore[arg-type]
        for timer in sorted(timer for timer in memory.timers if timer <= clock):
            memory.timers.discard(timer)
            found += [*processor.handleExpiredTimer(key, memory, None)]
        emitted += [{**change, "ordinal": ordinal} for one in found for ordinal, change in enumerate(one.changes)]
    return emitted


def _stored(states: dict[Any, Stored]) -> str:
    return repr([(key, state.get()) for key, state in states.items() if state.state is not None])
