"""The same bug has one name: as a value of the constant `Mutant` of a specification, and as a mutant on Spark."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import streamproof.specs as specs
from shared_player import play_all
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.generators.schedules import draw_schedule
from streamproof.properties.operators.mutants.decoupled_foreign_key_join import MUTANTS as SCHEDULED
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.spark.shared import Play
from streamproof.reference.core.history import History
from streamproof.reference.core.play import Entry, play
from streamproof.specs.replays import (
    foreign_key_mutants,
    session_windows_mutants,
    stream_stream_join_mutants,
    table_table_join_mutants,
)

SPECIFIED: Mapping[str, Mapping[str, Any]] = {
    "session_windows": session_windows_mutants.MUTANTS,
    "stream_stream_join": stream_stream_join_mutants.MUTANTS,
    "table_table_join": table_table_join_mutants.MUTANTS,
    "foreign_key_join": foreign_key_mutants.MUTANTS,
}
"""By operator: the mutants of its specification, as mutants of the reference."""
SAME: Mapping[str, set[str]] = {
    "session_windows": {
        "gap exclusive",
        "merges one",
        "no tombstone",
        "closes early",
        "gap forgotten",
        "late kept",
        "rescue forgotten",
        "forgets early",
    },
    "stream_stream_join": {"bounds swapped", "late records join"},
    "table_table_join": {"right silent"},
    "foreign_key_join": {"move silent", "delete silent", "right tombstone silent"},
}
"""By operator: the specification's mutants that Spark has too, where no message waits."""
HISTORIES = 150
MIN_ALIKE = 0.7
"""Two mutants are the same bug if they emit the same on this share of the histories that either of them changes."""
MIN_CHANGED = 5
"""Two mutants that change fewer histories are not compared."""


def name_of(value: str) -> str:
    """Return the name on Spark of a value of the constant `Mutant`."""
    return value.replace(" ", "_")


class Agreement(NamedTuple):
    """How often mutants of a specification and of Spark emit the same, by the names of both.

    Attributes:
        changed: The number of histories on which either of them differs from the right logic.
        same: The number of these on which both emit the same.
    """

    changed: Counter[tuple[str, str]]
    same: Counter[tuple[str, str]]


def histories(operator: str) -> list[History]:
    """Return small histories as specifications have them: counts, and no record without a key."""
    drawn = draw_definitions(registration_of(operator), 0, 0)
    counting = [options for options in drawn if options.get("aggregate", "count") == "count"]
    return [
        history
        for number, options in enumerate(counting)
        for history in draw_histories(
            HistorySettings(operator, options, draw_schedule(operator, options, number), arrivals=(8, 24)[number % 2]),
            1 + HISTORIES // len(counting),
            number,
            mixed=True,
        )
    ]


def by_key(entries: list[Entry]) -> dict[str | None, list[str]]:
    found: dict[str | None, list[str]] = {}
    for entry in entries:
        found.setdefault(entry.output.key, []).append(repr(entry.output))
    return found


def on_reference(history: History, behaviour: Any) -> dict[str | None, list[str]]:
    try:
        return by_key(play(history, behaviour).entries)
    except TypeError:  # the mutant takes values for the numbers of records
        return {}


def on_spark(drawn: list[History], logic: Any) -> list[dict[str | None, list[str]]]:
    return [by_key(outcome.entries) for outcome in play_all([Play(history, logic) for history in drawn]).outcomes]


@cache
def agreement(operator: str) -> Agreement:
    drawn = histories(operator)
    right = on_spark(drawn, None)
    mutants = {name: one for name, one in registration_of(operator).mutants.items() if not one.scheduled}
    emitted = {name: on_spark(drawn, mutant.logic) for name, mutant in mutants.items()}
    found = Agreement(Counter(), Counter())
    for value, behaviour in SPECIFIED[operator].items():
        specified = [on_reference(history, behaviour) for history in drawn]
        for name, of_mutant in emitted.items():
            for expected, ours, theirs in zip(right, specified, of_mutant, strict=True):
                changed = (ours or expected) != expected or theirs != expected
                found.changed[value, name] += changed
                found.same[value, name] += changed and theirs == ours
    return found


@pytest.mark.parametrize("operator", SPECIFIED)
@pytest.mark.in_ci("stream_stream_join", "table_table_join")
def test_mutants_that_emit_the_same_have_one_name(operator: str) -> None:
    found = agreement(operator)
    alike = {
        pair
        for pair, changed in found.changed.items()
        if changed >= MIN_CHANGED and found.same[pair] >= MIN_ALIKE * changed
    }
    assert {(value, name) for value, name in alike if name != name_of(value)} == set()
    assert max(found.changed.values()) >= MIN_CHANGED, "the histories show nothing"


@pytest.mark.parametrize("operator", SPECIFIED)
@pytest.mark.in_ci("table_table_join")
def test_mutants_of_one_name_emit_the_same_of_some_history(operator: str) -> None:
    found = agreement(operator)
    assert {value for value in SAME[operator] if not found.same[value, name_of(value)]} == set()


@pytest.mark.parametrize("operator", SPECIFIED)
def test_the_names_that_both_have_are_those_of_the_table(operator: str) -> None:
    on_both = {value for value in SPECIFIED[operator] if name_of(value) in registration_of(operator).mutants}
    waiting = {value for value in SPECIFIED[operator] if name_of(value) in SCHEDULED}
    assert on_both - waiting == SAME[operator]
    assert waiting == ({"no hash check", "asks the old key", "unsubscribe not sent"} & {*SPECIFIED[operator]})


def test_each_logic_that_spark_replays_a_specification_with_is_the_mutant_of_that_name() -> None:
    registration = registration_of("foreign_key_join")
    assert registration.protocol is not None
    logics, join = registration.protocol.specified(), registration.declare(registration.profiles["left"])
    assert {*logics} <= {*foreign_key_mutants.MUTANTS}
    shared = {value for value in logics if name_of(value) in registration.mutants}
    assert shared == {*SAME["foreign_key_join"], "no hash check", "asks the old key", "unsubscribe not sent"}
    for value in shared:
        ours, replayed = registration.mutants[name_of(value)].logic(join), logics[value](join)
        assert [type(stage) for stage in ours] == [type(stage) for stage in replayed], value


def test_the_one_to_many_join_has_three_mutants_of_its_specification() -> None:
    module = (Path(specs.__file__).parent / "OneToManyJoin" / "OneToManyJoin.tla").read_text(encoding="utf-8")
    (listed,) = re.findall(r"Mutants ==\s*\{([^}]*)\}", module)
    values = {*re.findall(r'"([^"]*)"', listed)}
    on_both = {value for value in values if name_of(value) in registration_of("one_to_many_join").mutants}
    assert on_both == {"old key kept", "first row only", "right tombstone silent"}
