"""Each mutant of drawn definitions differs from the right logic on some history, played without Spark."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from drawn_rows import Drawn, as_history, as_output, draw, played
from shared_player import play_shared
from streamproof.properties.checking.pools import pools_on_spark
from streamproof.properties.operators.mutants import drawn as package
from streamproof.properties.registration.mutants import Mutant
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.spark.shared import Play
from streamproof.reference.core.play import play

HISTORIES = 2000
LEAKS = {
    "session_windows": {"last_never_forgotten"},
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


@cache
def history(operator: str, seed: int, as_text: bool) -> Drawn:
    return draw(operator, seed, as_text)


@cache
def of_right_logic(operator: str, seed: int, as_text: bool, stored: bool) -> str:
    right = next(iter(mutants_of(operator).values())).right
    return repr(played(operator, right, history(operator, seed, as_text))[stored])


@pytest.mark.parametrize("as_text", [False, True], ids=["values", "texts"])
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.operator}-{mutant.name}")
def test_the_mutant_differs_on_some_history(mutant: Mutant, as_text: bool) -> None:
    is_leak = mutant.name in LEAKS.get(mutant.operator, ())
    for seed in range(HISTORIES):
        drawn = history(mutant.operator, seed, as_text)
        # As text, for Python takes 1 and true for equal.
        found = repr(played(mutant.operator, mutant.logic, drawn)[is_leak])
        if found != of_right_logic(mutant.operator, seed, as_text, is_leak):
            return
    pytest.fail(f"{mutant.name} emits and stores the same in {HISTORIES} histories: it is equivalent, or not drawn")


@pytest.mark.parametrize("operator", registered())
def test_what_the_mutants_are_compared_with_emits_what_the_reference_emits(operator: str) -> None:
    right = next(iter(mutants_of(operator).values())).right
    for seed in range(100):
        drawn = history(operator, seed, as_text=False)
        outputs: dict[str | None, list[str]] = {}
        for _, _, output in play(as_history(operator, drawn)).entries:
            outputs.setdefault(output.key, []).append(repr(output))
        emitted: dict[str | None, list[str]] = {}
        for change in (change for batch in played(operator, right, drawn)[0] for change in batch):
            output = as_output(operator, change)
            emitted.setdefault(output.key, []).append(repr(output))
        assert emitted == outputs, f"{operator}, seed {seed}"


@pytest.mark.parametrize("operator", registered())
def test_no_mutant_fails_whatever_is_drawn(operator: str) -> None:
    # A mutant that fails takes all that shares its query with it.
    mutants = {**registration_of(operator).mutants, **mutants_of(operator)}
    for mutant in mutants.values():
        for seed in range(25):
            if not mutant.scheduled:
                played(operator, mutant.logic, history(operator, seed, as_text=seed % 2 == 0))


@pytest.mark.parametrize("operator", registered())
def test_no_mutant_emits_what_a_shared_query_fails_to_read(operator: str) -> None:
    registration = registration_of(operator)
    logics = [one.logic for one in registration.mutants.values() if not one.scheduled]
    for pool in pools_on_spark([registration], 1, 0):
        histories = [history for sample in pool for history in sample.histories]
        # Each history has one of the mutants in turn, and each mutant has many.
        plays = [Play(history, logics[number % len(logics)]) for number, history in enumerate(histories)]
        assert len(play_shared(plays).outcomes) == len(plays)


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
