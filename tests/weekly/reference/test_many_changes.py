"""Dimensions of type 1 and 2 over 100,000 histories each: meaning, behaviour and DuckDB agree on all of them."""

from __future__ import annotations

import random

import pytest
from change_events import by_duckdb, drawn, is_consistent, played, profiles_of, reference

HISTORIES, TOGETHER = 100_000, 2_500


@pytest.mark.weekly("100,000 histories of each take minutes: tests/fast plays some thousand")
@pytest.mark.parametrize("name", ["scd1", "scd2"])
def test_meaning_behaviour_and_duckdb_agree_on_many_histories(name: str) -> None:
    operator = reference(name)
    profiles = {profile: of for profile, of in profiles_of(name).items() if "tombstones" not in profile}
    rounds = -(-HISTORIES // (TOGETHER * len(profiles)))
    for profile, options in profiles.items():
        for number in range(rounds):
            many = [drawn(random.Random(f"{profile} {number} {one}"), options) for one in range(TOGETHER)]
            outcomes = [played(operator, options, one) for one in many]
            assert all(map(is_consistent, outcomes))
            assert by_duckdb(name, options, many) == [table for _, table in outcomes]
