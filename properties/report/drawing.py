"""Draw a history as SVG: event time to the right, arrival downwards, with the clock, the cuts and dropped records.

Shapes and texts distinguish the marks without colour. Only parts of a long history are drawn, with a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

from markupsafe import Markup

from .content import DrawnArrival, Timeline, Unit
from .rendering import rendered

MOST_LINES = 72
"""The largest number of drawn lines."""
FIRST, AROUND, LAST = 26, 26, 10
"""Of a longer history, this many lines are drawn from its beginning, around its first difference, and from its end."""
MOST_CHARACTERS = 30
"""The largest number of characters of a record beside its mark; the mark's title contains the whole record."""
LEFT, RIGHT, TOP = 132, 780, 46
"""The left end, right end and vertical position of the axis of event time, in pixels."""
PLOT = RIGHT - LEFT - 190
"""The width of the axis, with room for a text at its right end, in pixels."""
ROW, CUT = 26, 24
"""The height of an arrival, and of a cut, in pixels."""
CHARACTER = 7.0
APART = 16
"""The smallest distance of two times in pixels; if they would be closer, times are drawn in order and not to scale."""


@dataclass
class _Line:
    """A line of the drawing: an arrival, the beginning of a batch, or a gap."""

    step: DrawnArrival | None = None
    batch: int | None = None
    left_out: int = 0
    y: float = TOP
    marks: dict[str, Any] = field(default_factory=dict)

    @property
    def height(self) -> int:
        return ROW if self.batch is None else CUT


def drawn(timeline: Timeline, name: str, title: str) -> Markup:
    """Return a history as a self-contained SVG element.

    Args:
        timeline: The history.
        name: The prefix of the element's ids, unique in the page.
        title: The title of the drawing, for screen readers.
    """
    lines = _laid_out(timeline)
    scale = _Scale(_times(timeline, lines), timeline.unit)
    bottom = lines[-1].y + lines[-1].height if lines else TOP
    for line in lines:
        if line.step is not None:
            line.marks = _marks(line.step, scale, line.y + line.height / 2, timeline)
    clock = _clock(timeline, lines, scale, bottom)
    return Markup(
        rendered(
            "drawing.svg.jinja",
            name=name,
            title=title,
            spoken=spoken(timeline, lines),
            timeline=timeline,
            lines=lines,
            bands=_bands(lines),
            scale=scale,
            clock=clock,
            left=LEFT,
            right=RIGHT,
            top=TOP,
            bottom=bottom,
            kinds={line.marks["kind"] for line in lines if line.step is not None},
        )
    )


def spoken(timeline: Timeline, lines: Sequence[_Line]) -> str:
    """Return the drawing as text, for screen readers."""
    said = []
    for line in lines:
        if line.left_out:
            said.append(f"{line.left_out:,} lines are not drawn")
        elif line.batch is not None:
            differs = ", where the outcomes first differ" if line.batch == timeline.marked_batch else ""
            said.append(f"{timeline.name_of(line.batch)}{differs}")
        elif line.step is not None:
            said.append(_in_words(line.step, timeline.unit))
    if timeline.last_clock is not None:
        said.append(f"at the end the {timeline.clock} is at {time_text(timeline.last_clock, timeline.unit)}")
    return "; ".join(said)


def _in_words(step: DrawnArrival, unit: Unit) -> str:
    at = "" if step.time is None else f" at {time_text(step.time, unit)}"
    return f"{step.text}{at}, {step.remark}" if step.remark else f"{step.text}{at}"


def time_text(time: int, unit: Unit) -> str:
    """Return a time as text: milliseconds as a number, microseconds since 1970 as a date."""
    if unit == "ms":
        return str(time)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
    text = moment.replace(tzinfo=None).isoformat(" ", "microseconds" if time % 1000 else "milliseconds")
    return text.removesuffix(".000")


def shortened(text: str, longest: int = MOST_CHARACTERS) -> str:
    """Return a text, shortened if it is long."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _laid_out(timeline: Timeline) -> list[_Line]:
    """Return the lines from top to bottom, without the middle of a long history."""
    by_batch: list[list[DrawnArrival]] = [[] for _ in range(timeline.batches)]
    for step in timeline.steps:
        by_batch[step.batch].append(step)
    all_lines: list[_Line] = []
    marked = 0
    for batch, steps in enumerate(by_batch):
        marked = len(all_lines) if batch == timeline.marked_batch else marked
        all_lines.append(_Line(batch=batch))
        for step in steps:
            marked = len(all_lines) if step.number == timeline.marked_step else marked
            all_lines.append(_Line(step))
    wanted = set(range(len(all_lines)))
    if len(all_lines) > MOST_LINES:
        around = range(max(0, marked - AROUND // 2), min(len(all_lines), marked + AROUND // 2))
        wanted = {*range(FIRST), *around, *range(len(all_lines) - LAST, len(all_lines))}
    lines: list[_Line] = []
    for is_drawn, group in groupby(enumerate(all_lines), lambda numbered: numbered[0] in wanted):
        some = [line for _, line in group]
        lines += some if is_drawn else [_Line(left_out=len(some))]
    for above, line in pairwise(lines):
        line.y = above.y + above.height
    return lines


def _bands(lines: Sequence[_Line]) -> list[dict[str, Any]]:
    """Return the top and the height of each drawn batch."""
    bands: list[dict[str, Any]] = []
    for line in lines:
        if line.batch is not None:
            bands.append({"batch": line.batch, "y": line.y, "height": line.height})
        elif bands and line.step is not None and line.step.batch == bands[-1]["batch"]:
            bands[-1]["height"] = line.y + line.height - bands[-1]["y"]
    return bands


def _times(timeline: Timeline, lines: Sequence[_Line]) -> list[int]:
    """Return the times that are drawn, in order."""
    times = {time for line in lines if line.step is not None for time in (line.step.time, line.step.clock)}
    return sorted({time for time in (*times, timeline.last_clock) if time is not None})


class _Scale:
    """The horizontal position of each time: to scale if readable, otherwise at equal distances."""

    def __init__(self, times: Sequence[int], unit: Unit) -> None:
        self.times, self.unit = times, unit
        first, last = (times[0], times[-1]) if times else (0, 0)
        span = max(1, last - first)
        to_scale = {time: LEFT + 14 + (PLOT - 28) * (time - first) / span for time in times}
        nearest = min((b - a for a, b in pairwise(times)), default=span) / span * (PLOT - 28)
        self.is_to_scale = nearest >= APART or len(times) < 2
        step = (PLOT - 28) / max(1, len(times) - 1)
        in_order = {time: LEFT + 14 + step * number for number, time in enumerate(times)}
        self.at = to_scale if self.is_to_scale else in_order

    def ticks(self) -> list[dict[str, Any]]:
        """Return the times whose texts don't overlap, always including the last time."""
        kept: list[dict[str, Any]] = []
        for time in reversed(self.times):
            text = time_text(time, self.unit)
            x = self.at[time]
            if not kept or x + CHARACTER * len(text) / 2 + 8 < kept[-1]["x"] - CHARACTER * len(kept[-1]["text"]) / 2:
                kept.append({"x": x, "text": text})
        return kept


def _marks(step: DrawnArrival, scale: _Scale, y: float, timeline: Timeline) -> dict[str, Any]:
    """Return the position of an arrival's mark, and its text with the side that has room for the text."""
    at = step.time if step.time is not None else step.clock
    x = LEFT + 14 if at is None else scale.at[at]
    text = shortened(step.text)
    said = f"{text}, {step.remark}" if step.remark else text
    forward = x + 14 + CHARACTER * len(said) < RIGHT or x - LEFT < RIGHT - x
    return {
        "x": x,
        "y": y,
        "text": said,
        "forward": forward,
        "kind": "dropped" if step.remark else step.kind,
        "differs": step.number == timeline.marked_step,
        "whole": f"arrival {step.number}: {_in_words(step, timeline.unit)}",
    }


def _clock(timeline: Timeline, lines: Sequence[_Line], scale: _Scale, bottom: float) -> list[tuple[float, float]]:
    """Return the corners of the clock's line, from top to bottom."""
    corners: list[tuple[float, float]] = []
    for line in lines:
        if line.step is not None and line.step.clock is not None:
            x = scale.at[line.step.clock]
            if corners:
                corners.append((corners[-1][0], line.y))
            begins = TOP if line.step.number == 0 else line.y
            corners += [(x, begins), (x, line.y + line.height)]
    if corners and timeline.last_clock is not None:
        corners += [(corners[-1][0], bottom), (scale.at[timeline.last_clock], bottom)]
        corners.append((scale.at[timeline.last_clock], bottom + 12))
    return corners
