"""Laws of session windows alone; those of every operator are in test_laws.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from history_strategies import declarations, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from notation import broken_prefix, history_of
from streamproof.properties.generators.draws import HistorySettings
from streamproof.reference.core.clocks import make_clock
from streamproof.reference.core.history import ClockAdvance, History, Line
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Accepted, Change, Dropped, Key, Output, Record
from streamproof.reference.definitions.windows import SessionWindows
from streamproof.reference.session_windows import Behaviour, meaning

SESSIONS = "session_windows"
QUIET = settings(deadline=None, max_examples=25, derandomize=True, database=None)


class Step(NamedTuple):
    """The outputs that a line sets off, and the clock after it."""

    line: Line | None
    emitted: list[Output]
    clock: int


def walk(history: History) -> Iterator[Step]:
    """Play a history line by line; the end is one more cut."""
    clock = make_clock(history.clock)
    behaviour = Behaviour(declaration(history), clock)
    for line in [*history.lines, None]:
        if isinstance(line, Record):
            emitted = behaviour.arrive(line)
        else:
            if isinstance(line, ClockAdvance):
                clock.observe(line.timestamp)
            else:
                clock.cut()
            emitted = behaviour.advance()
        yield Step(line, emitted, clock.now)


def declaration(history: History) -> SessionWindows:
    windows: SessionWindows = operator_named(history.operator).declare(history.options)
    return windows


# The laws, each a question that a history answers with yes or no.


def folds_to_the_meaning(history: History) -> bool:
    return not broken_prefix(history)


def drops_exactly_what_is_late(history: History) -> bool:
    windows = declaration(history)
    watched = SessionWindows(windows.gap_ms, windows.grace_ms)
    taken: list[Accepted] = []
    for step in walk(history):
        if isinstance(step.line, Record) and step.line.key is not None:
            record, edge = step.line, windows.close_edge(step.clock)
            end = record.timestamp
            if windows.late == "merged":
                for key, window in meaning(watched, taken, step.clock):
                    assert window is not None
                    start, last = window
                    within = start - windows.gap_ms <= record.timestamp <= last + windows.gap_ms
                    if key == record.key and last >= edge and within:
                        end = max(end, last)
            if (end < edge) != (Dropped(record.key, "late") in step.emitted):
                return False
            if end >= edge:
                taken.append(Accepted(record, step.clock))
    return True


def closed_is_final(history: History) -> bool:
    """Under update nothing is emitted for a closed session, under close nothing for an open one, and nothing twice."""
    windows = declaration(history)
    times: Counter[tuple[Key, Any]] = Counter()
    for step in walk(history):
        for change in step.emitted:
            if isinstance(change, Dropped):
                continue
            closed = change.timestamp < windows.close_edge(step.clock)
            if closed != (windows.emit == "close"):
                return False
            times[change.key, change.window] += windows.emit == "close"
            if times[change.key, change.window] > 1 or (closed and change.value is None):
                return False
    return True


def closing_is_in_order(history: History) -> bool:
    """Under close, what one step emits comes by end and then by key."""
    for step in walk(history):
        order = [(change.timestamp, change.key) for change in step.emitted if isinstance(change, Change)]
        if declaration(history).emit == "close" and order != sorted(order):
            return False
    return True


@settings(QUIET, max_examples=100)
@given(declarations(), st.sampled_from([0, 1, 1000]), st.data())
def test_every_law_holds_whatever_the_options(options: dict[str, Any], longer: int, data: st.DataObject) -> None:
    """That the retention is no part of the answer is asked too."""
    history = data.draw(histories(HistorySettings(SESSIONS, options, (20, 45, 45, 90, 140), 16, ("a", "ab", "b"))))
    for law in (folds_to_the_meaning, drops_exactly_what_is_late, closed_is_final, closing_is_in_order):
        assert law(history)
    kept = {**options, "retention_ms": options["gap_ms"] + options["grace_ms"] + longer}
    assert play(History(SESSIONS, kept, history.lines, history.clock)).entries == play(history).entries


def connected(timestamps: Sequence[int], gap: int) -> set[tuple[int, int]]:
    """The windows of the connected components of `no more than a gap apart`, found by spreading."""
    left, windows = set(timestamps), set()
    while left:
        component, frontier = set(), {left.pop()}
        while frontier:
            component |= frontier
            frontier = {other for other in left if any(abs(other - one) <= gap for one in frontier)}
            left -= frontier
        windows.add((min(component), max(component)))
    return windows


@QUIET
@given(st.lists(st.integers(0, 100)), st.integers(1, 12))
def test_when_nothing_is_late_sessions_are_the_connected_components(timestamps: list[int], gap: int) -> None:
    text = " ".join(f"k@{timestamp}" for timestamp in timestamps)
    result = play(history_of(text, SESSIONS, gap_ms=gap, grace_ms=1000)).result
    assert {window for _, window in result} == connected(timestamps, gap)


@QUIET
@given(st.lists(st.integers(0, 60), min_size=1), st.integers(0, 1000))
def test_the_answer_moves_with_the_origin_of_time(timestamps: list[int], shift: int) -> None:
    def emitted(by: int) -> list[Output]:
        text = " ".join(f"k@{at + by}" for at in timestamps)
        return [entry.output for entry in play(history_of(text, SESSIONS)).entries]

    def moved(output: Output) -> Output:
        if isinstance(output, Dropped) or output.window is None:
            return output
        start, end = output.window
        return output._replace(window=(start + shift, end + shift), timestamp=output.timestamp + shift)

    assert emitted(shift) == [moved(output) for output in emitted(0)]
