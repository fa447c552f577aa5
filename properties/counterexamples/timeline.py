"""A timeline in text: event time from left to right, rows in order of arrival from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence

from ..generators.columns.formatting import cell, elapsed
from ..generators.columns.forms.rows import from_microseconds
from ..generators.columns.model import JobHistory, Source
from .tables import BatchWatermarks, grid

MOST_ROWS, MOST_TIMES = 24, 10
"""The largest number of rows, and of different times, in a timeline; a larger timeline would be unreadable."""
ROW, BEHIND, WATERMARK = "●", "○", "┊"


def timeline(history: JobHistory, sources: Sequence[Source], watermarks: Sequence[BatchWatermarks]) -> list[str]:
    """Return the timeline of a history, with a legend, as lines; empty for a large history.

    Args:
        history: The history.
        sources: The job's inputs.
        watermarks: The watermarks of each batch; empty if unknown.
    """
    source_of = {source.name: source for source in sources}
    own = [time_us for name, row in history.arrivals if (time_us := source_of[name].time_us_of(row)) is not None]
    marks = {one.after_us for one in watermarks if one.after_us is not None}
    times = sorted({*own, *marks})
    if not own or len(history.arrivals) > MOST_ROWS or len(times) > MOST_TIMES:
        return []
    lines: list[list[str]] = []
    for number, batch in enumerate(history.batches):
        label = history.name_of(number)
        late_us, after_us = watermarks[number] if watermarks else (None, None)
        for name, row in batch:
            at = source_of[name].time_us_of(row)
            key = ", ".join(cell(value) for value in source_of[name].key_of(row))
            mark = BEHIND if None not in (at, late_us) and at <= late_us else ROW  # type: ignore[operator]
            lines.append([label, f"{name} {key}" if len(sources) > 1 else key, *_marked(times, at, mark)])
            label = ""
        if after_us is not None:
            lines.append([label, "watermark", *_marked(times, after_us, WATERMARK)])
    late = any(BEHIND in line for line in lines)
    legend = [f"{ROW} a row", *[f"{BEHIND} a row behind the watermark"] * late]
    legend += [f"{WATERMARK} the watermark after the batch"] * bool(marks)
    head = ["", "", *(elapsed(time_us - own[0]) for time_us in times)]
    return [f"Event time, from {cell(from_microseconds(own[0]))} ({', '.join(legend)}):", *grid(head, lines)]


def _marked(times: Sequence[int], time_us: int | None, mark: str) -> list[str]:
    return [mark if time_us == one else "" for one in times]
