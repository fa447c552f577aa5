from __future__ import annotations

import pytest
from plan_mutants import MUTANTS, pairs
from plan_mutants.making import Mutant

PAIRS = 10


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.says)
def test_drawn_plans_and_histories_show_a_planted_bug(mutant: Mutant) -> None:
    left = PAIRS
    for number in pairs(mutant, range(10_000), histories=30):
        left -= number
        if left <= 0:
            return
    pytest.fail(f"{PAIRS - left} pairs show it")


def test_a_mutant_leaves_the_reference_as_it_was() -> None:
    before = [vars(mutant.owner).get(mutant.method) for mutant in MUTANTS]
    for mutant, right in zip(MUTANTS, before, strict=True):
        with mutant.planted():
            assert vars(mutant.owner)[mutant.method] is not right
    assert [vars(mutant.owner).get(mutant.method) for mutant in MUTANTS] == before


def test_each_bug_has_a_sentence_of_its_own() -> None:
    assert len({mutant.says for mutant in MUTANTS}) == len(MUTANTS)
