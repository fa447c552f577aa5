from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from streamproof.properties.counterexamples.counterexample import verdict_sentence
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.laws.base import LawResult, Verdict
from streamproof.properties.laws.metamorphic.partitions import (
    DRAWN,
    EMPTY,
    MIN_GROUPS,
    SCATTERED,
    SEVERAL,
    TWO,
    Partitions,
)
from streamproof.properties.laws.on_spark.changelog import Changelog
from streamproof.properties.laws.runs import CohortRun, Kind, Sample
from streamproof.properties.operators.mutants.table_table_join import ThirdPartitionLost
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.spark.witness import SparkWitness
from streamproof.reference.core.history import History
from streamproof.spark_impl.runtime.logic import Arrived, Key, LogicOutput
from streamproof.spark_impl.table_table_join import TableTableLogic


def drawn(operator: str, count: int) -> list[History]:
    options = next(iter(registration_of(operator).profiles.values()))
    return list(draw_histories(HistorySettings(operator, options, SCHEDULE), count, seed=1))


def sample_of(operator: str, histories: Sequence[History] = ()) -> Sample:
    registration = registration_of(operator)
    profile, options = next(iter(registration.profiles.items()))
    return Sample(registration, Kind.RANDOM, profile, options, histories, is_first=True)


@pytest.mark.parametrize("operator", registered())
def test_the_law_is_asked_of_every_operator_and_needs_one_partition_and_several(operator: str) -> None:
    sample = sample_of(operator)
    assert Partitions().is_asked_of(sample)
    assert [*Partitions().goals(sample)] == [TWO, SEVERAL]
    assert [*Partitions().goals(replace(sample, is_pooled=True))] == [SEVERAL, EMPTY]


def test_groups_of_keys_that_are_fewer_than_the_partitions_lie_in_several_of_them(spark: SparkSession) -> None:
    drawable = [(groups, count) for count in DRAWN for groups in range(MIN_GROUPS, count)]
    assert (SCATTERED.state_groups, SCATTERED.partitions) in drawable
    rows = spark.createDataFrame(
        [(count, group) for groups, count in drawable for group in range(groups)], "n int, g int"
    )
    # As a shuffle does.
    placed = rows.select("n", "g", F.pmod(F.hash("g"), "n").alias("partition")).distinct().collect()
    for groups, count in drawable:
        used = {row.partition for row in placed if row.n == count and row.g < groups}
        assert 1 < len(used) < count


def test_partitions_catches_what_depends_on_the_other_keys_of_a_partition(spark: SparkSession) -> None:
    class CountsAllKeys(TableTableLogic):
        """Every tenth row that a worker takes is lost: what is counted for a key is counted on the worker."""

        taken = 0

        def take(self, key: Key, state: dict[str, Any], row: Arrived, clock: int) -> list[LogicOutput]:
            # Of the class: each history has a logic of its own.
            type(self).taken += 1
            return [] if self.taken % 10 == 0 else super().take(key, state, row, clock)

    logics = (TableTableLogic, CountsAllKeys, ThirdPartitionLost)
    sample = sample_of("table_table_join", drawn("table_table_join", 4))
    runs = list(CohortRun(sample, [], [SparkWitness(logic) for logic in logics]).shares())
    # With two partitions the third logic shows nothing; this law alone sees it.
    changelogs = [list(Changelog().judge(run, LawResult(Changelog()))) for run in runs]
    assert [bool(violations) for violations in changelogs] == [False, True, False]
    results = [LawResult(Partitions(), goals=(TWO, SEVERAL)) for _ in runs]
    for run, result in zip(runs, results, strict=True):
        result.violations.extend(Partitions().judge(run, result))
    assert [result.verdict for result in results] == [Verdict.CONFORMS, Verdict.VIOLATED, Verdict.VIOLATED]
    assert [(result.judged, result.missing) for result in results] == [(8, [])] * 3
    said = verdict_sentence("it holds", results[2].violations[-1].comparison)
    assert "Spark in 2 partitions emits" in said
    assert "and Spark in 7 partitions" in said
