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
from drawn_rows import Drawn, as_history, as_output, draw, played
from streamproof.properties.operators.mutants.decoupled_foreign_key_join import MUTANTS as SCHEDULED
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.play import play
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


class Agreement(NamedTuple):
    """How often mutants of a specification and of Spark emit the same, by the names of both.

    Attributes:
        changed: The number of histories on which either of them differs from the right logic.
        same: The number of these on which both emit the same.
    """

    changed: Counter[tuple[str, str]]
    same: Counter[tuple[str, str]]


def histories(operator: str) -> list[Drawn]:
    """Return histories as specifications have them: counts, and no record without a key."""
    drawn = (draw(operator, seed, as_text=False) for seed in range(10 * HISTORIES))
    keyed = (one for one in drawn if all(row.key is not None for batch in one.batches for row in batch.rows))
    counted = (one for one in keyed if one.options.get("aggregate", "count") == "count")
    return [one for one, _ in zip(counted, range(HISTORIES), strict=False)]


def by_key(outputs: list[Any]) -> dict[str | None, list[str]]:
    found: dict[str | None, list[str]] = {}
    for output in outputs:
        found.setdefault(output.key, []).append(repr(output))
    return found


def on_reference(operator: str, drawn: Drawn, behaviour: Any) -> dict[str | None, list[str]]:
    try:
        return by_key([entry.output for entry in play(as_history(operator, drawn), behaviour).entries])
    except TypeError:  # the mutant takes values for the numbers of records
        return {}


def on_spark(operator: str, drawn: Drawn, logic: Any) -> dict[str | None, list[str]]:
    return by_key([as_output(operator, one) for batch in played(operator, logic, drawn)[0] for one in batch])


@cache
def agreement(operator: str) -> Agreement:
    mutants = registration_of(operator).mutants
    right = next(iter(mutants.values())).right
    found = Agreement(Counter(), Counter())
    for drawn in histories(operator):
        expected = on_spark(operator, drawn, right)
        emitted = {
            name: on_spark(operator, drawn, mutant.logic) for name, mutant in mutants.items() if not mutant.scheduled
        }
        for value, behaviour in SPECIFIED[operator].items():
            specified = on_reference(operator, drawn, behaviour)
            for name, of_mutant in emitted.items():
                changed = (specified or expected) != expected or of_mutant != expected
                found.changed[value, name] += changed
                found.same[value, name] += changed and of_mutant == specified
    return found


def name_of(value: str) -> str:
    """Return the name on Spark of a value of the constant `Mutant`."""
    return value.replace(" ", "_")


@pytest.mark.exhaustive
@pytest.mark.parametrize("operator", SPECIFIED)
def test_mutants_that_emit_the_same_have_one_name(operator: str) -> None:
    found = agreement(operator)
    alike = {
        pair
        for pair, changed in found.changed.items()
        if changed >= MIN_CHANGED and found.same[pair] >= MIN_ALIKE * changed
    }
    assert {(value, name) for value, name in alike if name != name_of(value)} == set()
    assert max(found.changed.values()) >= MIN_CHANGED, "the histories show nothing"


@pytest.mark.exhaustive
@pytest.mark.parametrize("operator", SPECIFIED)
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
