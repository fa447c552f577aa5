"""Mutants in real shared queries, of one stage and of several, and those that only a schedule of messages shows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession
from shared_player import play_in_memory
from streamproof.properties.checking import mutation
from streamproof.properties.checking.mutation import check_mutants, chosen
from streamproof.properties.registration.mutants import Mutant
from streamproof.properties.registration.registration import registered, registration_of

SMALLEST = ("stream_table_join", "one_to_many_join")
"""The operators of one stage and of several with the fewest mutants: those of all are played in memory."""
HISTORIES = 40


@pytest.mark.in_ci("one_to_many_join")
@pytest.mark.parametrize("operator", SMALLEST)
def test_mutants_are_killed_in_a_query_that_they_share(
    spark: SparkSession, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In its last pool most are killed, and a crash costs one query more; how often all are is asked in memory.
    *_, pool = mutation.pools_on_spark([registration_of(operator)], HISTORIES, 0)
    monkeypatch.setattr(mutation, "pools_on_spark", lambda *_, **__: [pool])
    mutants = chosen(operator, [])
    on_spark = killed(mutants)
    play_in_memory(monkeypatch)
    assert on_spark == killed(mutants)
    assert len(on_spark) > 0.8 * len(mutants)


def killed(mutants: Sequence[Mutant]) -> set[str]:
    return {kill.mutant.name for kill in check_mutants(mutants, HISTORIES, rounds=0) if kill.killed}


def test_mutants_that_need_a_schedule_are_killed(spark: SparkSession) -> None:
    scheduled = [mutant for name in registered() for mutant in chosen(name, []) if mutant.scheduled]
    found = check_mutants(scheduled, histories=60, rounds=0)
    assert len(found) == 5
    assert [kill.mutant.name for kill in found if not kill.killed] == []
