"""The same bug has one name: as a value of the constant `Mutant` of a specification, and as a mutant on Spark."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import pytest
from drawn_rows import Drawn, as_history, as_output, draw, played
from specified_mutants_setup import SAME, SPECIFIED, name_of
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.play import play

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
