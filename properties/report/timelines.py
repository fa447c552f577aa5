"""Histories, ready for drawing: arrivals and their times, the clock, dropped records, and the first difference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from ...reference.core.clocks import make_clock
from ...reference.core.errors import StreamproofError
from ...reference.core.history import ClockAdvance, Cut, Delivery, History, Line
from ...reference.core.play import Entry, play
from ...reference.core.records import Dropped, Record
from ..counterexamples.counterexample import Counterexample
from ..generators.columns.formatting import shown_row
from ..generators.columns.forms.rows import microseconds
from ..generators.columns.model import JobHistory
from ..outcomes.outcomes import Grain, Outcome
from .content import DrawnArrival, StepKind, Timeline

MOST_LINES = 200
"""The largest number of lines of a history that a report runs on a witness; DuckDB needs seconds for more lines."""


def timeline_of(history: History, when: int | None, by_arrival: bool, expected: Outcome | None = None) -> Timeline:
    """Return a history, ready for drawing.

    Args:
        history: The history.
        when: The first batch or arrival at which the outcomes differ; None for the end.
        by_arrival: Whether `when` is an arrival.
        expected: The expected outcome, by arrival, with dropped records; by default the reference's outcome.
    """
    dropped = {
        arrival: f"dropped: {output.reason}"
        for arrival, _, output in _by_arrival(history, expected)
        if isinstance(output, Dropped)
    }
    clock = make_clock(history.clock)
    steps: list[DrawnArrival] = []
    batch = 0
    for line in history.lines:
        if isinstance(line, Cut):
            batch += 1
            clock.cut()
            continue
        remark = dropped.get(len(steps), "")
        if isinstance(line, ClockAdvance | Record) and _moves(line, history, remark):
            clock.observe(line.timestamp)
        kind, text = _drawn(line)
        time = None if isinstance(line, Delivery) else line.timestamp
        steps.append(DrawnArrival(batch, kind, text, time, clock.now, remark, len(steps)))
    clock.cut()
    marked = steps[when].batch if by_arrival and when is not None and when < len(steps) else when
    name = "watermark" if history.clock == "batch" else "stream time"
    return Timeline(steps, batch + 1, name, clock.now, marked, when if by_arrival else None)


def _by_arrival(history: History, expected: Outcome | None) -> Sequence[Entry]:
    """Return the reference's outcome of a history by arrival, if it is known or can be computed quickly."""
    if expected is not None and expected.grain is Grain.ARRIVAL and expected.knows_dropped:
        return expected.entries
    if len(history.lines) <= MOST_LINES:
        with suppress(StreamproofError):  # if this fails, draw without dropped records
            return play(history).entries
    return ()


def _moves(line: ClockAdvance | Record, history: History, remark: str) -> bool:
    """Return whether a line moves the clock; a record that is dropped for a null key or by a filter doesn't."""
    if isinstance(line, ClockAdvance):
        return True
    return remark != "dropped: filtered" and (line.key is not None or history.options.get("null_key") == "keep")


def _drawn(line: Line) -> tuple[StepKind, str]:
    """Return the kind of a line, and the text beside the line's mark."""
    match line:
        case Record():
            of = "" if line.input == "events" else f"{line.input}: "
            key = "no key" if line.key is None else line.key
            if line.value is None:
                return "tombstone", f"{of}∅ {key}"
            return "record", f"{of}{key}={json.dumps(line.value, ensure_ascii=False)}"
        case ClockAdvance():
            return "advance", "clock advance"
        case Delivery():
            return "delivery", f"delivers a {line.channel}, {', '.join(map(str, filter(None, line[1:])))}"
    raise AssertionError(line)


def timeline_of_job(counterexample: Counterexample[JobHistory]) -> Timeline:
    """Return a job's history, ready for drawing: with the watermarks, or else the largest event time so far."""
    watermarks, history = counterexample.watermarks, counterexample.history
    sources = {source.name: source for source in counterexample.sources}
    steps: list[DrawnArrival] = []
    reached: int | None = None
    for number, batch in enumerate(history.batches):
        before = watermarks[number].late_us if watermarks else reached
        for name, row in batch:
            at = row.get(sources[name].time)
            time = None if at is None else microseconds(at)
            text = shown_row({column: value for column, value in row.items() if column != sources[name].time})
            text = f"{name}: {text}" if len(sources) > 1 else text
            late = watermarks and time is not None and before is not None and time <= before
            steps.append(
                DrawnArrival(number, "record", text, time, before, "behind the watermark" if late else "", len(steps))
            )
            reached = time if reached is None else max(reached, time or reached)
        for record in history.unreadable_in(number):
            steps.append(
                DrawnArrival(number, "record", f"{record.input}: no row", None, before, record.fault, len(steps))
            )
        reached = history.clock[number] if history.clock else reached
    last = watermarks[-1].after_us if watermarks else reached
    marked = None if counterexample.difference is None else counterexample.difference.when
    clock = "watermark" if watermarks else "event time reached"
    names = [*map(history.name_of, range(len(history.batches)))]
    return Timeline(steps, len(history.batches), clock, last, marked, unit="us", names=names)
