"""The goals of the draws themselves: draws that are poor meet fewer of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from streamproof.properties.checking.samples import definitions_sample
from streamproof.properties.generators.variety import (
    DIFFERENT,
    FRACTION,
    REPEATED,
    UNORDERED,
    WIDE,
    kind_goals,
    variety_goals,
    variety_met,
)
from streamproof.properties.registration.registration import Registration, registered, registration_of
from streamproof.reference.core.history import CUT, History, Line
from streamproof.reference.core.records import Record

LISTS = {"gap_ms": 10, "aggregate": "list"}


def met(*lines: Line, operator: str = "session_windows", options: Any = LISTS) -> set[str]:
    registration = registration_of(operator)
    history = History(operator, options, lines, "batch")
    return {*variety_met(registration.domain, registration.declare(options), history)}


def event(value: Any, timestamp: int = 0, key: str | None = "a") -> Record:
    return Record("events", key, value, timestamp)


@pytest.mark.parametrize(
    ("lines", "goals"),
    [
        ((event(1),), set()),
        ((event(1), event(1)), {REPEATED}),
        ((event(1), event(True, key="b")), {DIFFERENT}),
        ((event(1), event(2, key=None)), set()),
        ((event(1, 9), event(1, 5)), {UNORDERED}),
        ((event(1, 9), CUT, event(1, 5)), set()),
        ((event(-(2**31)),), {WIDE}),
        ((event(2**31 - 1),), set()),
        ((event(0.5),), {FRACTION}),
        ((event(1.0),), set()),
    ],
)
def test_what_a_history_has_met(lines: tuple[Line, ...], goals: set[str]) -> None:
    assert met(*lines) == goals


def test_a_field_that_names_a_key_makes_no_different_values() -> None:
    rows = [Record("left", "a", {"artist": name, "value": 1}, 0) for name in ("r1", "r2")]
    rights = [Record("right", "r1", value, 0) for value in (1, 2)]
    options = {"foreign_key": "artist"}
    assert met(*rows, *rights, operator="foreign_key_join", options=options) == set()
    rows[1] = rows[1]._replace(value={"artist": "r1", "value": 2})
    assert met(*rows, *rights, operator="foreign_key_join", options=options) == {DIFFERENT}


def test_a_count_of_groups_asks_for_no_different_values() -> None:
    groups = registration_of("table_aggregate")
    always = {UNORDERED, REPEATED}
    assert {*variety_goals(groups.domain, groups.declare({"group_by": "group"}))} == always
    assert {*variety_goals(groups.domain, groups.declare(groups.profiles["sum"]))} == always | {DIFFERENT}


def test_numbers_are_asked_of_what_takes_them() -> None:
    for registration in registered().values():
        for options in registration.profiles.values():
            has_field = registration.name != "table_aggregate" or "field" in options
            expected = [WIDE, FRACTION] if has_field else []
            assert [*kind_goals(registration.domain, registration.declare(options))] == expected


def missing(registration: Registration) -> set[str]:
    """What no history of drawn definitions has met."""
    found: Counter[str] = Counter()
    asked: set[str] = set()
    for history in definitions_sample(registration, 300, seed=0).histories:
        definition = registration.declare(history.options)
        found.update(variety_met(registration.domain, definition, history))
        asked.update(variety_goals(registration.domain, definition), kind_goals(registration.domain, definition))
    return {goal for goal in asked if not found[goal]}


@pytest.mark.parametrize("operator", registered())
def test_drawn_definitions_meet_every_goal(operator: str) -> None:
    assert missing(registration_of(operator)) == set()
