"""Plays a history on the logic of a Spark operator without Spark: the real processor, over a state in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memory_runtime import Came, Groups, Row, came, stage_of
from streamproof.reference.core.history import History
from streamproof.reference.core.records import Change, Dropped, Output, Record
from streamproof.spark_impl.runtime.logic import DROPPED, Logic


def play_logic(
    logic: Logic[Any],
    history: History,
    value: Callable[[Record], Any] = lambda record: record.value,
    sides: Sequence[str] = ("",),
    inputs: Sequence[str] = ("events",),
) -> tuple[list[tuple[int, Output]], dict[str, Any]]:
    """Play a history; give what the logic emits, with its batch and each key's in order, and the state left by key."""
    stage, groups = stage_of(logic, sides), Groups()
    emitted: list[tuple[int, Output]] = []
    clock = largest = order = 0
    batches = [*history.batches, []]
    for number, batch in enumerate(batches):
        rows = []
        for line in batch:
            largest = max(largest, getattr(line, "timestamp", 0))
            if isinstance(line, Record) and line.key is not None:
                rows.append(Row((line.key,), line.timestamp, order, value(line), inputs.index(line.input)))
                order += 1
        found = came(groups.batch(stage, rows, clock))
        emitted += [(min(number, len(batches) - 2), _output(change)) for change in found]
        clock = max(clock, largest)
    return emitted, {key[0]: fields for key, (_, fields) in groups.stored().items()}


def _output(change: Came) -> Output:
    key, emitted = change.key[0], change.emitted
    if emitted.change == DROPPED:
        return Dropped(key, emitted.reason or "")
    window = None if emitted.start is None else (emitted.start, emitted.end)
    return Change(key, window, emitted.value, emitted.timestamp)  # type: ignore[arg-type]


def by_key(emitted: Sequence[tuple[int, Output]]) -> dict[Any, list[tuple[int, Output]]]:
    """Put outputs by key."""
    keys: dict[Any, list[tuple[int, Output]]] = {}
    for batch, output in emitted:
        keys.setdefault(output.key, []).append((batch, output))
    return keys
