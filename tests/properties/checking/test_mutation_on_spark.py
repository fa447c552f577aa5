"""Mutants in real shared queries, of one stage and of several, and those that only a schedule of messages shows."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.checking.mutation import check_mutants, chosen
from streamproof.properties.registration.registration import registered

pytestmark = pytest.mark.exhaustive

SMALLEST = ("stream_table_join", "one_to_many_join")
"""The operators of one stage and of several with the fewest mutants: those of all are played in memory."""
RARE = {"null_key_kept_by_inner"}
"""It shows in a few of thousands of histories."""


@pytest.mark.parametrize("operator", SMALLEST)
def test_mutants_are_killed_in_a_query_that_they_share(spark: SparkSession, operator: str) -> None:
    found = check_mutants(chosen(operator, []), histories=40, rounds=0)
    assert {kill.mutant.name for kill in found if not kill.killed} <= RARE


def test_mutants_that_need_a_schedule_are_killed(spark: SparkSession) -> None:
    scheduled = [mutant for name in registered() for mutant in chosen(name, []) if mutant.scheduled]
    found = check_mutants(scheduled, histories=12, rounds=0)
    assert len(found) == 5
    assert [kill.mutant.name for kill in found if not kill.killed] == []
