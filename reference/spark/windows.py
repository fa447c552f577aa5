"""Aggregation by tumbling or hopping windows: `groupBy(keys, window(time, size, slide, start))`.

Sources: `TimeWindowing` (the windows of a row), `StateStoreSaveExec` (lateness, eviction, and the output of each mode),
`WatermarkSupport.watermarkExpression` (a window's end, which is exclusive, is compared with the watermark).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .aggregates import AggregateFunction, Mode, Row

Group: TypeAlias = tuple[tuple[Any, ...], int]


@dataclass(frozen=True)
class Windows:
    """An aggregation by windows; all times are microseconds since 1970.

    Attributes:
        time: The column of the event time.
        keys: The columns of the key.
        size_us: The length of a window.
        slide_us: The time between the starts of consecutive windows; at most the size.
        start_us: The start of one window; all other starts differ by multiples of the slide.
        aggregates: The aggregates, by the name of their output column.
        mode: The output mode.
    """

    time: str
    keys: tuple[str, ...]
    size_us: int
    slide_us: int
    start_us: int
    aggregates: Mapping[str, AggregateFunction]
    mode: Mode = "append"

    def starts(self, time_us: int) -> list[int]:
        """Return the starts of the windows that contain a time, latest first."""
        last = time_us - (time_us - self.start_us) % self.slide_us
        return [*range(last, time_us - self.size_us, -self.slide_us)]


class WindowsState:
    """The open windows."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.rows: dict[Group, list[Row]] = {}

    def batch(self, rows: Iterable[Row], late_ms: int, eviction_ms: int) -> list[Row]:
        """Process a micro-batch's rows; return the emitted rows: key, `start`, `end` (exclusive) and aggregates."""
        windows, updated = self.windows, dict[Group, None]()
        for row in rows:
            if row[windows.time] is None:
                continue
            for start in windows.starts(row[windows.time]):
                late = start + windows.size_us <= late_ms * 1_000
                if not late or windows.mode == "complete":
                    group = (tuple(row[key] for key in windows.keys), start)
                    self.rows.setdefault(group, []).append(row)
                    updated[group] = None
        if windows.mode == "complete":
            return [self.result(group) for group in self.rows]
        closed = [group for group in self.rows if group[1] + windows.size_us <= eviction_ms * 1_000]
        emitted = [self.result(group) for group in (closed if windows.mode == "append" else updated)]
        for group in closed:
            del self.rows[group]
        return emitted

    def result(self, group: Group) -> Row:
        """Return the output row of a window."""
        windows, (key, start) = self.windows, group
        aggregates = {name: aggregate.of(self.rows[group]) for name, aggregate in windows.aggregates.items()}
        return dict(zip(windows.keys, key, strict=True)) | {"start": start, "end": start + windows.size_us} | aggregates
