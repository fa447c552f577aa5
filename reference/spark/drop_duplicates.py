"""Deduplication: `dropDuplicates(columns)` and `dropDuplicatesWithinWatermark(columns)`.

Sources: `StreamingDeduplicateExec` (Spark forgets an emitted row at its event time if that is among the columns,
otherwise never), `StreamingDeduplicateWithinWatermarkExec` (Spark forgets an emitted row one watermark delay after its
event time), `BaseStreamingDeduplicateExec` (Spark drops late rows if the input has a watermark).

Spark emits any one of several duplicates in a batch; this model emits the first to arrive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .aggregates import Row


@dataclass(frozen=True)
class DropDuplicates:
    """The columns and watermark of a deduplication.

    Attributes:
        columns: The columns that identify duplicates; nulls are equal.
        time: The column of the event time, in microseconds since 1970.
        delay_us: The watermark's delay in microseconds; None without a watermark.
        within_watermark: Whether Spark forgets an emitted row one watermark delay after its event time.
    """

    columns: tuple[str, ...]
    time: str
    delay_us: int | None = None
    within_watermark: bool = False

    def expires_us(self, row: Row) -> int | None:
        """Return the watermark (microseconds) at which an emitted row is forgotten; None if Spark never forgets the
        row.
        """
        time_us: int | None = row[self.time]
        if self.delay_us is None:
            return None
        if self.within_watermark:
            # Like Spark, treat a null time as 1970, and floor the delay to milliseconds.
            return (time_us or 0) + self.delay_us // 1_000 * 1_000
        return time_us if self.time in self.columns else None


class DuplicatesState:
    """The key columns of the rows emitted so far, each with the watermark at which they are forgotten."""

    def __init__(self, duplicates: DropDuplicates) -> None:
        self.duplicates = duplicates
        self.seen: dict[tuple[Any, ...], int | None] = {}

    def batch(self, rows: Iterable[Row], late_ms: int, eviction_ms: int) -> list[Row]:
        """Process the rows of a micro-batch, and return the emitted rows."""
        duplicates, emitted = self.duplicates, []
        for row in rows:
            time_us = row[duplicates.time]
            if duplicates.delay_us is not None and time_us is not None and time_us <= late_ms * 1_000:
                continue
            key = tuple(row[column] for column in duplicates.columns)
            if key not in self.seen:
                self.seen[key] = duplicates.expires_us(row)
                emitted.append(row)
        self.seen = {key: at for key, at in self.seen.items() if at is None or at > eviction_ms * 1_000}
        return emitted
