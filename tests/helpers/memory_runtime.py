"""Serves keys without Spark: the real processor, over groups of keys in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from pyspark.sql import types as T
from streamproof.spark_impl.runtime.codec import Anything, encode
from streamproof.spark_impl.runtime.logic import Key, Logic, LogicOutput
from streamproof.spark_impl.runtime.pages import Stored, unpacked
from streamproof.spark_impl.runtime.processor import Hop, KeyedProcessor, Stage, StageInput

decode = msgspec.msgpack.Decoder().decode


class Memory:
    """The state and the timers of a group."""

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


class Row(NamedTuple):
    """A row of a key; `side`: the number of its input."""

    key: Key
    timestamp: int | None
    order: Any
    value: Any = None
    side: int = 0


class Came(NamedTuple):
    """What was emitted of a key, with its ordinal within its group."""

    key: Key
    emitted: LogicOutput
    ordinal: int


class Message(NamedTuple):
    """A message to a key of the next stage."""

    key: Key
    timestamp: int
    place: list[Any]
    value: list[Any]


def stage_of(logic: Logic[Any], sides: Sequence[str] = ("",), hop: Hop | None = None) -> Stage:
    """Declare a stage whose keys and values are of any type."""
    return Stage(logic, [StageInput(name, Anything(), Anything()) for name in sides], [], T.StructType(), hop)


class Groups:
    """The groups of a stage.

    Args:
        count: How many there are.
        processor: What serves them.
    """

    def __init__(self, count: int = 4, processor: type[KeyedProcessor] = KeyedProcessor) -> None:
        self.memories = {group: Memory() for group in range(count)}
        self.processor = processor

    def batch(self, stage: Stage, rows: Sequence[Row], clock: int) -> list[bytes]:
        """Serve all groups as restarted workers do, their rows in reverse, then their timers; give the binaries."""
        emitted: list[bytes] = []
        for group, own in by_group(rows, len(self.memories)).items():
            emitted += self.serve(group, stage, own, clock)
        return emitted

    def serve(self, group: int, stage: Stage, rows: Sequence[Row], clock: int) -> list[bytes]:
        """Serve a group; give its binaries."""
        memory = self.memories[group]
        memory.clock = clock
        if not rows and not any(timer <= clock for timer in memory.timers):
            return []  # as in Spark, which asks no processor of such a group
        processor = self.processor(stage)
        processor.init(memory)  # type: ignore[arg-type]
        found: list[Any] = []
        if rows:
            packed = [(side, _packed([row for row in rows if row.side == side]), group) for side in {*_sides(rows)}]
            found += processor.handleInputRows((group,), iter(packed), memory)  # type: ignore[arg-type]
        for timer in sorted(timer for timer in memory.timers if timer <= clock):
            memory.timers.discard(timer)
            found += processor.handleExpiredTimer((group,), memory, None)
        return [row.packed for row in found]

    def stored(self) -> dict[Key, tuple[Stored, Any]]:
        """Read what is stored, by key, and its fields."""
        return {
            tuple(decode(key)): (stored, decode(stored.fields))
            for memory in self.memories.values()
            if memory.state is not None
            for key, stored in unpacked(memory.state[0])
        }


def by_group(rows: Sequence[Row], count: int) -> dict[int, list[Row]]:
    """Give each group its rows, the last one first."""
    found: dict[int, list[Row]] = {group: [] for group in range(count)}
    for row in reversed(rows):
        found[crc32(encode(row.key)) % count].append(row)
    return found


def came(binaries: Sequence[bytes]) -> list[Came]:
    """Read what a last stage emits."""
    found = []
    for packed in binaries:
        keys, *columns, _, _ = decode(packed)
        rows = zip(keys, *columns, strict=True)
        found += [Came(tuple(decode(key)), LogicOutput(*row), at) for at, (key, *row) in enumerate(rows)]
    return found


def sent(binaries: Sequence[bytes]) -> list[Message]:
    """Read the messages that a stage sends."""
    return [
        Message(tuple(decode(key)), *rest) for packed in binaries for _, key, *rest in zip(*decode(packed), strict=True)
    ]


def _sides(rows: Sequence[Row]) -> list[int]:
    return [row.side for row in rows]


def _packed(rows: Sequence[Row]) -> bytes:
    return encode(
        (
            [encode(row.key) for row in rows],
            [row.timestamp for row in rows],
            [row.order for row in rows],
            [row.value for row in rows],
        )
    )
