"""A job that is wrong by 1 ms, by a unit of time, or by emitting nothing is never passed; the right one always is.

The witness is the reference under another declaration: what a check asks of an implementation, without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from streamproof.properties.checking.samples import random_sample
from streamproof.properties.generators.coverage import Drawn, draw_covering, emitted, goals, neighbours
from streamproof.properties.laws.on_spark.changelog import Changelog
from streamproof.properties.laws.on_spark.judging import by_reference
from streamproof.properties.outcomes.outcomes import Grain, Outcome, differences
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.base import Witness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History
from streamproof.reference.core.operator import OPERATORS, operator_named
from streamproof.reference.core.play import Entry, play
from streamproof.reference.core.records import Change

PROFILES = {name: registration.profiles for name, registration in registered().items()}


Options = Mapping[str, Any]
MINUTES, DAY = 60_000, 86_400_000
TIMES = (1, 999, 30 * MINUTES, 30 * DAY)
"""Durations (ms) that declarations are made of; those of some 10 ms are in the profiles, which are asked, too."""
BY_CLOCK = ("a clock 1 ms behind differs", "a clock 1 ms ahead differs")
ISSUE = {"gap_ms": 30 * MINUTES - 1, "grace_ms": 10 * MINUTES, "emit": "close"}


@dataclass(frozen=True)
class Answering:
    """A witness that answers by a function."""

    evaluate: Callable[..., list[Outcome]]
    name = "the job"
    grain = Grain.BATCH

    def refuses(self, history: History) -> str | None:
        return None


def reference_under(options: Options, behaviour: Any = None) -> Witness:
    """The reference under other options, or with another behaviour, emitting what a job emits: changes by batch."""

    def answer(histories: Sequence[History]) -> list[Outcome]:
        outcomes = []
        for history in histories:
            played = play(replace(history, options=options), behaviour)
            entries = [Entry(-1, entry.batch, entry.output) for entry in played.entries if is_change(entry)]
            is_stream = played.definition.is_stream
            outcomes.append(Outcome(history.name, Grain.BATCH, entries, knows_dropped=False, is_stream=is_stream))
        return outcomes

    return Answering(answer)


def is_change(entry: Entry) -> bool:
    return isinstance(entry.output, Change)


@Answering
def silent(histories: Sequence[History]) -> list[Outcome]:
    return [Outcome(history.name, Grain.BATCH, [], knows_dropped=False) for history in histories]


def declarations(time: int) -> Iterator[tuple[str, Options]]:
    """Declarations of every operator whose durations are of that size, mixed with short and long ones."""
    for grace in {0, 1, time, 30 * MINUTES}:
        yield "session_windows", {"gap_ms": time, "grace_ms": grace, "aggregate": "list"}
        yield "session_windows", {"gap_ms": time, "grace_ms": grace, "emit": "close", "late": "own"}
    yield "session_windows", {"gap_ms": 1, "grace_ms": time, "emit": "close", "aggregate": "max"}
    yield "window_aggregate", {"size": time, "aggregate": "sum"}
    yield "window_aggregate", {"size": time, "step": max(1, time // 3), "late": "update", "retention_ms": 30 * MINUTES}
    yield "window_aggregate", {"size": 10, "late": "update", "retention_ms": time}
    yield "window_aggregate", {"size": time, "type": "session", "late": "update", "retention_ms": 1000}
    yield "window_aggregate", {"size": time, "early": {"every_tuples": 2}}
    yield "range_aggregate", {"preceding_ms": time, "aggregate": "list"}
    for join, emit in (("inner", "eager"), ("left", "arrival"), ("left", "close"), ("outer", "close")):
        for before, after, grace in ((time, time, 0), (1, time, 30 * MINUTES), (time, 0, 1), (1, 1, time)):
            bounds = {"before_ms": before, "after_ms": after, "grace_ms": grace}
            yield "stream_stream_join", {**bounds, "join": join, "emit": emit}
    for emit in ("update", "close"):
        for grace in (0, 1, time, 30 * MINUTES):
            yield "windowed_table", {"size_ms": time, "grace_ms": grace, "emit": emit}
        yield "windowed_table", {"size_ms": 10, "grace_ms": time, "emit": emit, "aggregate": "max"}
        yield "windowed_table", {"size_ms": time, "step_ms": max(1, time // 4), "grace_ms": 5, "emit": emit}
        yield "windowed_table", {"size_ms": time, "grace_ms": 5, "with": "windowed_table", "emit": emit}
    yield "windowed_table", {"size_ms": time, "grace_ms": 1, "with": "table_lookup", "window_start": "start"}
    yield "windowed_table", {"size_ms": time, "with": "windowed_table", "join": "outer", "shift_ms": -time}


DECLARED: Sequence[tuple[str, Options]] = [
    *(one for time in TIMES for one in declarations(time)),
    *((operator, options) for operator, profiles in PROFILES.items() for options in profiles.values()),
]
ONE_IN_FOUR = pytest.mark.weekly("240 declarations: CI asks about each fourth")


@cache
def drawn_for(index: int) -> Drawn:
    operator, options = DECLARED[index]
    return draw_covering(operator, options, 100, 0, 6)  # what shows in so many shows in the 300 of a check


def wrong_by_a_unit(operator: str, options: Options) -> Iterator[Options]:
    """Seconds for milliseconds, and milliseconds for seconds, of each number and of all."""
    numbers = list(registered()[operator].domain.numbers(operator_named(operator).declare(options)))
    for unit in (1000, 0.001):
        others = [(number, int(number.value * unit)) for number in numbers]
        changed = [number.changed(value) for number, value in others if value != number.value]
        for more in [*changed, {name: value for one in changed for name, value in one.items()}]:
            try:
                definition = operator_named(operator).declare({**options, **more})
            except BadInput:
                continue
            sizes = [(definition.size_ms, definition.step_ms)] if operator == "windowed_table" else []
            sizes += [(definition.size, definition.step)] if operator == "window_aggregate" else []
            if any(size > 100 * step for size, step in sizes):
                continue  # a record lies in hundreds of windows, and takes seconds
            yield {**options, **more}


def shown(one: tuple[str, Options]) -> str:
    return f"{one[0]} {' '.join(f'{name}={value}' for name, value in one[1].items())}"


def differs(witness: Witness, histories: Sequence[History]) -> bool:
    """Whether a witness is violated by some of the histories; a few are asked at a time."""
    return any(map(_differs, histories, witness.evaluate(histories)))


def _differs(history: History, outcome: Outcome) -> bool:
    return bool(differences(by_reference(history)[1], outcome))


def never_passed(operator: str, options: Options, drawn: Drawn) -> None:
    assert drawn.missing == ()
    assert not differs(reference_under(options), drawn.histories)
    assert differs(silent, drawn.histories)
    own = operator_named(operator).declare(options)
    for neighbour in neighbours(operator, options):
        wrong = reference_under(neighbour.options, neighbour.behaviour)
        assert differs(wrong, drawn.histories), neighbour.goal
    for changed in wrong_by_a_unit(operator, options):
        if operator_named(operator).declare(changed) != own:
            assert differs(reference_under(changed), drawn.histories), changed


@pytest.mark.parametrize(
    "index",
    [pytest.param(index, marks=[ONE_IN_FOUR] * (index % 4 > 0), id=shown(one)) for index, one in enumerate(DECLARED)],
)
def test_under_declarations_from_1_ms_to_30_days_nothing_wrong_is_passed(index: int) -> None:
    never_passed(*DECLARED[index], drawn_for(index))


def test_every_operator_is_declared() -> None:
    assert {operator for operator, _ in DECLARED} == set(OPERATORS)


def test_a_retention_that_is_declared_hides_no_neighbour() -> None:
    found = neighbours("session_windows", {"gap_ms": 10, "grace_ms": 5, "retention_ms": 15})
    assert [neighbour.goal for neighbour in found] == [
        *("gap_ms 10 and 9 differ", "gap_ms 10 and 11 differ"),
        *("grace_ms 5 and 4 differ", "grace_ms 5 and 6 differ"),
        *BY_CLOCK,
    ]


@pytest.mark.parametrize("operator", PROFILES)
def test_every_number_of_a_declaration_has_neighbours_or_a_reason_to_have_none(operator: str) -> None:
    domain = registered()[operator].domain
    for options in PROFILES[operator].values():
        definition = operator_named(operator).declare(options)
        known = {number.option for number in domain.numbers(definition)} | {*domain.silent}
        numbers = {name for name, value in vars(definition).items() if type(value) is int}
        joined = getattr(definition, "with_", None) == "windowed_table"
        assert numbers - known <= ({"step"} if operator == "window_aggregate" else set() if joined else {"shift_ms"})


def test_a_silent_number_changes_nothing_that_is_emitted() -> None:
    options = {"gap_ms": 10, "grace_ms": 5}
    for history in draw_covering("session_windows", options, 50, 0).histories:
        longer = replace(history, options={**options, "retention_ms": 100})
        assert emitted(play(longer)) == emitted(play(history))


def test_sessions_emitted_when_closed_must_have_been_closed() -> None:
    assert "session closed and emitted" in goals("session_windows", ISSUE)


def test_the_gate_asks_that_the_neighbours_of_each_definition_show() -> None:
    def goals_of(operator: str) -> set[str]:
        sample = random_sample(registration_of(operator), "close", 1, 0)
        return {*Changelog().goals(sample)}

    assert {"grace_ms 5 and 4 differ (close)", "grace_ms 5 and 6 differ (close)"} <= goals_of("windowed_table")
    assert {"gap_ms 10 and 11 differ (close)", "session closed and emitted (close)"} <= goals_of("session_windows")


@pytest.mark.parametrize("operator", PROFILES)
def test_the_cohorts_of_a_gate_of_its_default_size_cover_all_goals(operator: str) -> None:
    for options in PROFILES[operator].values():
        assert draw_covering(operator, options, 2000 // len(PROFILES[operator]), 3).missing == ()
