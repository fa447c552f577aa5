"""The laws that run histories again, on mutants that they alone see; shared queries are played without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from reruns_setup import BY_ONE_LAW, FIVE, JOIN, MANY_KEYS, RERUN_LAWS, checked
from shared_player import play_in_memory, play_shared
from streamproof.properties.checking.mutation import chosen
from streamproof.properties.laws.base import Verdict
from streamproof.properties.operators.mutants.table_table_join import ThirdPartitionLost
from streamproof.properties.outcomes.outcomes import differences
from streamproof.properties.registration.registration import registered
from streamproof.properties.witnesses.run_options import Crash, RunOptions
from streamproof.properties.witnesses.spark.shared import Play, run_shared


@pytest.mark.parametrize(
    "way",
    [
        RunOptions(stop_after=(1, 1, 2), partitions=5, state_groups=3),
        RunOptions(crash_in=(Crash(1), Crash(1), Crash(3))),
    ],
    ids=["stops", "crashes"],
)
def test_spark_stops_and_crashes_as_is_played_without_it(spark: SparkSession, way: RunOptions) -> None:
    logics = [None, *(mutant.logic for mutant in chosen(JOIN, [*BY_ONE_LAW]))]
    plays = [Play(history, logic) for history in (FIVE, MANY_KEYS) for logic in logics]
    on_spark, played = run_shared(plays, way), play_shared(plays, way)
    assert on_spark.rewritten == played.rewritten
    assert on_spark.replayed == played.replayed == len(way.crash_in)
    assert (on_spark.partitions, on_spark.without_keys) == (played.partitions, played.without_keys)
    assert 1 < on_spark.emitting <= (way.state_groups or 2)
    for play, one, other in zip(plays, on_spark.outcomes, played.outcomes, strict=True):
        # Which partition a group falls in isn't played.
        if play.logic is not ThirdPartitionLost:
            assert not differences(one, other)


def test_every_definition_of_every_operator_is_asked_and_conforms(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = play_in_memory(monkeypatch)
    reports = checked(registered(), 0, tmp_path)
    for report in reports.values():
        assert {result.law.name: result.verdict for result in report.results} == {
            law.name: Verdict.CONFORMS for law in RERUN_LAWS
        }
        assert not any(result.missing for result in report.results)
    again = [run for run in asked if run.is_rerun]
    # Of the four pools by clock, of both stages of two others, and of the two of one operator alone; of the first ones
    # in other partitions twice.
    assert len(again) == 4 + 2 * 2 + 2 + 2 * 4
    assert {len(run.stop_after or run.crash_in) for run in again if run.partitions is None} == {2}
