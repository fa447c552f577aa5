"""Plays a history on the logic of a Spark operator without Spark: the real `KeyedProcessor`, over a state in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import types as T
from streamproof.reference.core.history import History
from streamproof.reference.core.records import Change, Dropped, Output, Record
from streamproof.spark_impl.runtime.keyed import DROPPED, KeyedProcessor, Logic

CHANGE_NAMES = ["key", "start", "end", "value", "timestamp", "change", "reason", "cause", "phase", "at"]


class Memory:
    """The state and the timers of one key."""

    def __init__(self) -> None:
        self.state: Any = None
        self.timers: set[int] = set()
        self.clock = 0

    def getValueState(self, name: str, kind: Any) -> Memory:
        return self

    def getCurrentWatermarkInMs(self) -> int:
        return self.clock

    def get(self) -> Any:
        return self.state

    def update(self, state: Any) -> None:
        self.state = state

    def clear(self) -> None:
        self.state = None

    def registerTimer(self, at: int) -> None:
        assert at > self.clock
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:
        self.timers.remove(at)


def play_logic(
    logic: Logic[Any],
    history: History,
    value: Callable[[Record], Any] = lambda record: record.value,
    sides: Sequence[str] = ("",),
    inputs: Sequence[str] = ("events",),
) -> tuple[list[tuple[int, Output]], dict[str, Any]]:
    """Return what the logic emits, each with its batch and each key's in order, and the state that is left by key."""
    processor = KeyedProcessor(logic, list(sides), 1, T.StructType(), CHANGE_NAMES, report_dropped=True, ended=False)
    keys = {record.key: Memory() for record in history.records if record.key is not None}
    emitted: list[tuple[int, Output]] = []
    clock = largest = order = 0
    batches = [*history.batches, []]
    for number, batch in enumerate(batches):
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for line in batch:
            largest = max(largest, getattr(line, "timestamp", 0))
            if isinstance(line, Record) and line.key is not None:
                side = inputs.index(line.input)
                values = [value(line) if index == side else None for index in range(len(inputs))]
                rows.setdefault(line.key, []).append((line.key, line.timestamp, order, side, *values))
                order += 1
        for key, memory in keys.items():
            memory.clock = clock
            processor.init(memory)  # type: ignore[arg-type]
            changes = []
            if key in rows:
                changes += [*processor.handleInputRows(key, iter(rows[key][::-1]), memory)]  # type: ignore[arg-type]
            for timer in sorted(timer for timer in memory.timers if timer <= clock):
                memory.timers.discard(timer)
                changes += [*processor.handleExpiredTimer(key, memory, None)]
            batch_emitted = min(number, len(batches) - 2)
            emitted += [(batch_emitted, _output(change)) for row in changes for change in row.changes]
        clock = max(clock, largest)
    return emitted, {key: memory.state for key, memory in keys.items()}


def _output(change: dict[str, Any]) -> Output:
    if change["change"] == DROPPED:
        return Dropped(change["key"], change["reason"])
    window = None if change["start"] is None else (change["start"], change["end"])
    return Change(change["key"], window, change["value"], change["timestamp"])


def by_key(emitted: Sequence[tuple[int, Output]]) -> dict[Any, list[tuple[int, Output]]]:
    """Put outputs by key."""
    keys: dict[Any, list[tuple[int, Output]]] = {}
    for batch, output in emitted:
        keys.setdefault(output.key, []).append((batch, output))
    return keys
