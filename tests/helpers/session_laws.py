"""The laws of session windows, each a question that a history answers with yes or no, for any behaviour."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.metamorphic.keys import Keys
from streamproof.properties.laws.metamorphic.variants import VariantLaw
from streamproof.properties.outcomes.outcomes import Grain, Outcome, canonical
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.clocks import Clock, make_clock
from streamproof.reference.core.history import ClockAdvance, History, Line
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Accepted, Change, Dropped, Key, Output, Record, fold
from streamproof.reference.definitions.windows import SessionWindows
from streamproof.reference.session_windows import Behaviour, meaning

Machine: TypeAlias = Callable[[SessionWindows, Clock], Behaviour]


class Step(NamedTuple):
    """What has been emitted and taken after one line, and where the clock then stands."""

    line: Line | None
    emitted: list[Output]
    changes: list[Output]
    accepted: list[Accepted]
    before: int
    clock: int


def walk(history: History, machine: Machine = Behaviour) -> Iterator[Step]:
    """Play a history line by line; the end is one more cut."""
    clock = make_clock(history.clock)
    behaviour = machine(declaration(history), clock)
    changes: list[Output] = []
    taken: list[Accepted] = []
    for line in [*history.lines, None]:
        before = clock.now
        match line:
            case Record():
                emitted = behaviour.arrive(line)
                if not any(isinstance(output, Dropped) for output in emitted):
                    taken.append(Accepted(line, clock.now))
            case ClockAdvance(timestamp):
                clock.observe(timestamp)
                emitted = behaviour.advance()
            case _:
                clock.cut()
                emitted = behaviour.advance()
        changes += emitted
        yield Step(line, emitted, changes, taken, before, clock.now)


def declaration(history: History) -> SessionWindows:
    windows: SessionWindows = operator_named(history.operator).declare(history.options)
    return windows


def folds_to_the_meaning(history: History, machine: Machine = Behaviour) -> bool:
    windows = declaration(history)
    bag = windows.aggregate.ordered
    return all(
        canonical(fold(step.changes), bag) == canonical(meaning(windows, step.accepted, step.clock), bag)
        for step in walk(history, machine)
    )


def drops_exactly_what_is_late(history: History, machine: Machine = Behaviour) -> bool:
    windows = declaration(history)
    watched = SessionWindows(windows.gap_ms, windows.grace_ms)
    taken: list[Accepted] = []
    for step in walk(history, machine):
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


def final(history: History, machine: Machine = Behaviour) -> Outcome:
    return Outcome.of_play(history.name, play(history, machine))


def keeps(law_name: str, history: History, machine: Machine) -> bool:
    """Whether what comes of a history and of a variant of it is related as a law says."""
    law = LAWS["spark"][law_name]
    assert isinstance(law, VariantLaw)
    variant = next(law.vary(history, random.Random(len(history.lines))))
    outcomes = final(history, machine), final(variant, machine)
    return not law.differences(registration_of(history.operator), Case(variant, history), *outcomes)


def order_plays_no_part(history: History, machine: Machine = Behaviour) -> bool:
    return keeps("order", history, machine)


def cuts_play_no_part(history: History, machine: Machine = Behaviour) -> bool:
    return keeps("cuts", history, machine)


def repeats_count_again(history: History, machine: Machine = Behaviour) -> bool:
    return keeps("repeats", history, machine)


def keys_are_independent(history: History, machine: Machine = Behaviour) -> bool:
    def by_batch(one: History) -> Outcome:
        return Outcome("h", Grain.BATCH, play(one, machine).entries)

    law, registration, whole = Keys(), registration_of(history.operator), by_batch(history)
    return not any(law.differences(registration, case, whole, by_batch(case.history)) for case in law.cases_of(history))


def closed_is_final(history: History, machine: Machine = Behaviour) -> bool:
    """Under update nothing is emitted for a closed session, under close nothing for an open one, and nothing twice."""
    windows = declaration(history)
    times: Counter[tuple[Key, Any]] = Counter()
    for step in walk(history, machine):
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


def closing_is_in_order(history: History, machine: Machine = Behaviour) -> bool:
    """Under close, what one step emits comes by end and then by key."""
    for step in walk(history, machine):
        order = [(change.timestamp, change.key) for change in step.emitted if isinstance(change, Change)]
        if order != sorted(order):
            return False
    return True


def closed_is_emitted_at_once(history: History, machine: Machine = Behaviour) -> bool:
    """Under close, what a step emits was open before it, or the clock would have emitted it earlier."""
    windows = declaration(history)
    return all(
        change.timestamp >= windows.close_edge(step.before)
        for step in walk(history, machine)
        for change in step.emitted
        if isinstance(change, Change)
    )


def open_sessions_lie_apart(history: History, machine: Machine = Behaviour) -> bool:
    windows = declaration(history)
    for step in walk(history, machine):
        open_sessions = sorted(
            (key, window)
            for key, window in fold(step.changes)
            if window is not None and window[1] >= windows.close_edge(step.clock)
        )
        for (key, one), (next_key, two) in pairwise(open_sessions):
            if key == next_key and two[0] - one[1] <= windows.gap_ms:
                return False
    return True


def every_accepted_record_counts_once(history: History, machine: Machine = Behaviour) -> bool:
    return all(
        sum(count for count, _ in fold(step.changes).values()) == len(step.accepted) for step in walk(history, machine)
    )


SCHEDULE = (20, 45, 45, 90, 140)
KEYS = ("a", "ab", "b")
