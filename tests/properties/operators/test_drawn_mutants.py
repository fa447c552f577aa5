"""Each mutant of drawn definitions differs from the right logic on some history, played without Spark."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from drawn_rows import Drawn, draw, played
from streamproof.properties.operators.mutants import drawn as package
from streamproof.properties.registration.mutants import Mutant
from streamproof.properties.registration.registration import registered, registration_of

HISTORIES = 2000
LEAKS = {
    "session_windows": {"last_is_forgotten_late"},
    "stream_table_join": {"deleted_row_stored"},
    "table_table_join": {"deleted_rows_stored"},
    "table_aggregate": {"rows_without_group_stored"},
    "windowed_table": {"empty_state_stored"},
    "foreign_key_join": {"rows_without_foreign_key_stored", "empty_right_stored", "deleted_rows_stored"},
    "one_to_many_join": {"rows_without_foreign_key_stored", "empty_right_stored"},
}
"""The mutants that emit what is right, and differ in what they store."""


def mutants_of(operator: str) -> dict[str, Mutant]:
    found: dict[str, Mutant] = import_module(f"{package.__name__}.{operator}").MUTANTS_OF_DRAWN
    return found


MUTANTS = [mutant for operator in registered() for mutant in mutants_of(operator).values()]


def outcome(mutant: Mutant, drawn: Drawn, right: bool = False) -> str:
    """Return what is emitted or, of a leak, stored, as text: 1 and true are equal otherwise."""
    emitted, stored = played(mutant.operator, mutant.right if right else mutant.logic, drawn)
    return repr(stored if mutant.name in LEAKS.get(mutant.operator, ()) else emitted)


@cache
def history(operator: str, seed: int, as_text: bool) -> Drawn:
    return draw(operator, seed, as_text)


@pytest.mark.parametrize("as_text", [False, True], ids=["values", "texts"])
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.operator}-{mutant.name}")
def test_the_mutant_differs_on_some_history(mutant: Mutant, as_text: bool) -> None:
    for seed in range(HISTORIES):
        drawn = history(mutant.operator, seed, as_text)
        if outcome(mutant, drawn) != outcome(mutant, drawn, right=True):
            return
    pytest.fail(f"{mutant.name} emits and stores the same in {HISTORIES} histories: it is equivalent, or not drawn")


@pytest.mark.parametrize("operator", registered())
def test_mutants_have_names_and_sentences_of_their_own(operator: str) -> None:
    mutants, known = mutants_of(operator), registration_of(operator).mutants
    sentences = [mutant.sentence for mutant in (*mutants.values(), *known.values())]
    assert len(mutants) >= 10
    assert all(name not in known or known[name] is mutants[name] for name in mutants)
    assert len({*sentences}) == len({**known, **mutants})
    assert {mutant.profile for mutant in mutants.values()} <= registration_of(operator).profiles.keys()


def test_every_operator_has_a_module_of_drawn_mutants() -> None:
    modules = {path.stem for folder in package.__path__ for path in Path(folder).glob("*.py")}
    assert modules - {"__init__", "common", "aggregates"} == {*registered()}
