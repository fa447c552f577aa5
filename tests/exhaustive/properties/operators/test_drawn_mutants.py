"""Each mutant of drawn definitions differs from the right logic on some history, played without Spark."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from shared_player import play_all
from streamproof.properties.checking.pools import pools_on_spark
from streamproof.properties.operators.mutants import drawn as package
from streamproof.properties.registration.mutants import Mutant
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.properties.witnesses.spark.shared import Play, can_share
from streamproof.reference.core.history import History

HISTORIES, AT_ONCE = 1000, 250


def mutants_of(operator: str) -> dict[str, Mutant]:
    found: dict[str, Mutant] = import_module(f"{package.__name__}.{operator}").MUTANTS_OF_DRAWN
    return found


def seen(histories: list[History], logic: Any = None) -> list[str]:
    """Return what a logic emits, labels and stores of each history; as text, for Python takes 1 and true for equal."""
    of = play_all([Play(history, logic) for history in histories], RunOptions(read_state=True))
    return [repr(one) for one in zip([each.entries for each in of.outcomes], of.labels, of.left, strict=True)]


@pytest.mark.parametrize("operator", registered())
@pytest.mark.in_ci("session_windows", "stream_table_join", "table_table_join")
def test_each_mutant_differs_from_the_right_logic(operator: str) -> None:
    pools = pools_on_spark([registration_of(operator)], HISTORIES, 0)
    drawn = [history for pool in pools for sample in pool for history in sample.histories if can_share(history)]
    same = mutants_of(operator)
    for start in range(0, len(drawn), AT_ONCE):
        if not same:
            break
        histories = drawn[start : start + AT_ONCE]
        right = seen(histories)
        same = {name: one for name, one in same.items() if seen(histories, one.logic) == right}
    assert [*same] == [], f"the same in {len(drawn)} histories: equivalent, or not drawn"


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
    assert modules - {"__init__", "common", "aggregates", "dimensions"} == {*registered()}
