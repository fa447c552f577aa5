"""`transformWithState` of a fixed processor: it counts the rows of a key until a timer removes the count.

Sources: `TransformWithStateExec` (late rows are dropped if the input has an event time; a batch processes its rows
before its timers; a timer at or before the watermark fires, even in the batch that registers it) and
`StatefulProcessor`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .aggregates import Row


@dataclass(frozen=True)
class Processor:
    """A processor with a count and a timer for each key.

    The first batch with rows of a key registers a timer for the key. Each batch with rows of a key emits the key's new
    count. The timer emits the negative count, and forgets the count.

    Attributes:
        keys: The columns of the key; nulls are equal.
        time: The column that decides which rows are late, in microseconds since 1970; if None, no row is late.
        count: The output column of the count; the other columns are the keys.
        wait_ms: The timer's delay after the watermark of the batch that registers it.
    """

    keys: tuple[str, ...]
    time: str | None
    count: str
    wait_ms: int


class ProcessorState:
    """The count and the timer (ms since 1970) of each key."""

    def __init__(self, processor: Processor) -> None:
        self.processor = processor
        self.counts: dict[tuple[Any, ...], int] = {}
        self.timers_ms: dict[tuple[Any, ...], int] = {}

    def batch(self, rows: Iterable[Row], late_ms: int, eviction_ms: int) -> list[Row]:
        """Process the rows of a micro-batch, and return the emitted rows: key and count."""
        keys = [tuple(row[one] for one in self.processor.keys) for row in rows if not self.is_late(row, late_ms)]
        for key in keys:
            self.counts[key] = self.counts.get(key, 0) + 1
            self.timers_ms.setdefault(key, eviction_ms + self.processor.wait_ms)
        emitted = [self.row(key, self.counts[key]) for key in dict.fromkeys(keys)]
        for key in [key for key, timer_ms in self.timers_ms.items() if timer_ms <= eviction_ms]:
            emitted.append(self.row(key, -self.counts.pop(key)))
            del self.timers_ms[key]
        return emitted

    def is_late(self, row: Row, late_ms: int) -> bool:
        """Return whether a row's event time is at or before the watermark."""
        time_us = row[self.processor.time] if self.processor.time else None
        return time_us is not None and time_us <= late_ms * 1_000

    def row(self, key: tuple[Any, ...], count: int) -> Row:
        """Return an output row."""
        return dict(zip(self.processor.keys, key, strict=True)) | {self.processor.count: count}
