from __future__ import annotations

import pytest
from shrinking_setup import (
    Asked,
    Planted,
    failing,
    has_five_records_of_key_b,
    merges_three,
)
from streamproof.properties.checking.shrinking import shrink


@pytest.mark.parametrize(("planted", "most"), [(has_five_records_of_key_b, 9), (merges_three, 6)])
def test_a_round_takes_two_steps_for_each_costs_a_query(planted: Planted, most: int) -> None:
    for seed in range(1, 4):
        asked = Asked(planted)
        shrink(failing(planted, seed=seed), asked, rounds=60)
        assert len(asked.rounds) <= most
        assert all(len(candidates) < 3000 for candidates in asked.rounds)
