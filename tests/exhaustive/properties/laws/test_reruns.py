"""The laws that run histories again, on mutants that they alone see; shared queries are played without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from shared_player import play_in_memory, play_shared
from streamproof.properties.checking.check import Check, begin_pool, judge_pool, query_threads
from streamproof.properties.checking.mutation import check_mutants, chosen, witness_of
from streamproof.properties.checking.pools import pools_on_spark
from streamproof.properties.checking.report import Report
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.generators.cohorts import one_cohort
from streamproof.properties.laws import all as laws
from streamproof.properties.laws.all import LAWS, ON_SPARK
from streamproof.properties.laws.base import OWN, CannotRecheck, LawResult, Verdict
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.metamorphic.reruns import RerunLaw, numbered
from streamproof.properties.laws.metamorphic.restart import Restart
from streamproof.properties.operators.mutants.table_table_join import ThirdPartitionLost
from streamproof.properties.outcomes.outcomes import differences
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.testing.recheck import assert_holds, recheck
from streamproof.properties.witnesses.run_options import ALONE, PLAIN, Crash, RunOptions, run_options
from streamproof.properties.witnesses.spark.shared import Play, run_shared
from streamproof.properties.witnesses.spark.witness import QueryWitness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, ClockAdvance, History
from streamproof.reference.core.records import Record

JOIN = "table_table_join"
BY_ONE_LAW = {
    "forgets_at_second_restart": "restart",
    "takes_no_row_twice": "replay",
    "third_partition_lost": "partitions",
}
RERUN_LAWS = [law for law in ON_SPARK if isinstance(law, RerunLaw)]


def in_batches(*batches: Sequence[tuple[str, str, int]]) -> History:
    """Return a history of the outer join of tables: of each batch the records, as side, key and value."""
    lines: list[Any] = []
    for number, batch in enumerate(batches):
        lines += [CUT] * bool(number) + [Record(side, key, value, 5) for side, key, value in batch] + [ClockAdvance(9)]
    return History(JOIN, {"join": "outer"}, tuple(lines), "batch")


FIVE = in_batches(*([("left" if number % 2 else "right", "a", number)] for number in range(5)))
MANY_KEYS = in_batches([("left", key, 1) for key in "abcdefghijkl"], [("right", key, 2) for key in "abcdefghijkl"])


def laws_of(operator: str, names: Sequence[str], seed: int = 0) -> dict[str, set[str]]:
    """Return by mutant the laws that kill it."""
    return {
        kill.mutant.name: set(kill.laws)
        for kill in check_mutants(chosen(operator, names), histories=40, rounds=0, seed=seed)
    }


def checked(
    operators: Sequence[str], seed: int, folder: Path, witness: QueryWitness = OWN, histories: int = 20
) -> Mapping[str, Report]:
    """Ask the laws that run histories again about the pools of a check."""
    checks = {
        name: Check(
            registration_of(name),
            Report(name, [], seed),
            RERUN_LAWS,
            "spark",
            FolderStore(folder),
            lambda step: None,
            witness,
        )
        for name in operators
    }
    for one in checks.values():
        one.begin()
    with query_threads(1) as executor:
        for pool in pools_on_spark([one.registration for one in checks.values()], histories, seed):
            judge_pool(checks, begin_pool(checks, pool, executor))
    return {name: one.report for name, one in checks.items()}


@pytest.mark.parametrize("seed", range(2))
def test_restart_replay_and_partitions_each_kill_a_mutant_that_no_other_law_kills(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    play_in_memory(monkeypatch)
    assert laws_of(JOIN, [*BY_ONE_LAW], seed) == {mutant: {law} for mutant, law in BY_ONE_LAW.items()}


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


def test_what_closes_when_a_query_starts_again_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    play_in_memory(monkeypatch)
    assert "replay" in laws_of("session_windows", ["closings_lost_at_restart"])["closings_lost_at_restart"]


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
    # Restarted, replayed and in other partitions: two of the four pools by clock, and the pool of those in stages.
    assert len(again) == 3 + 3
    assert {len(run.stop_after or run.crash_in) for run in again if run.partitions is None} == {2}


def test_a_run_without_an_empty_partition_leaves_a_goal_unmet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    play_in_memory(monkeypatch)
    report = checked([JOIN], 0, tmp_path)[JOIN]
    assert set(report.result("partitions").goals) == {
        "several partitions with keys",
        "a partition without keys",
    }
    result = LawResult(LAWS["spark"]["partitions"], goals=report.result("partitions").goals, judged=1)
    result.covered.update({"several partitions with keys": 1})
    assert (result.verdict, result.missing) == (Verdict.INCONCLUSIVE, ["a partition without keys"])


def test_a_counterexample_is_asked_again_in_the_way_in_which_it_was_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = play_in_memory(monkeypatch)
    mutant = witness_of(JOIN, "forgets_at_second_restart")
    report = checked([JOIN], 0, tmp_path, mutant, 100)[JOIN]
    ((found, folder),) = report.found
    assert (found.law, found.confirmed) == ("restart", True)
    assert found.way is not None
    assert len(found.way.stop_after) == 2
    assert "and Spark restarted after batches " in found.sentence
    asked.clear()
    (again,) = checked([JOIN], 1, tmp_path, mutant, 1)[JOIN].result("restart").violations[:1]
    assert again.case.way == found.way
    assert asked[1] == found.way
    (test,) = folder.glob("test_*.py")
    assert f"way={found.way.to_json()!r}" in test.read_text()
    names: dict[str, Any] = {}
    exec(compile(test.read_text(), str(test), "exec"), names)
    with pytest.raises(AssertionError, match=r"^violated: "):
        next(value for name, value in names.items() if name.startswith("test_"))()


def test_one_restart_does_not_show_what_the_second_one_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    play_in_memory(monkeypatch)
    ways = {RunOptions(stop_after=stops): False for stops in ((1,), (3,), (1, 1))}
    ways |= {RunOptions(stop_after=stops): True for stops in ((1, 2), (2, 3))}
    # The state of a batch that is replayed is that before it: it has lived through one restart.
    ways[RunOptions(stop_after=(1,), crash_in=(Crash(2),))] = False
    for way, seen in ways.items():
        assert bool(recheck("restart", FIVE, mutant="forgets_at_second_restart", way=way).differences) is seen
    with pytest.raises(AssertionError, match="Spark restarted after batches 1 and 2 "):
        assert_holds("restart", FIVE.to_text(), mutant="forgets_at_second_restart", way={"stop_after": [1, 2]})


@pytest.mark.parametrize(
    ("law", "mutant", "ways"),
    [
        ("restart", "forgets_at_second_restart", [RunOptions(stop_after=(0, 1, 2, 3))]),
        (
            "replay",
            "takes_no_row_twice",
            [
                RunOptions(
                    crash_in=(
                        Crash(0),
                        Crash(0),
                        Crash(1),
                        Crash(1),
                        Crash(2),
                        Crash(2),
                        Crash(3),
                        Crash(3),
                        Crash(4),
                        Crash(4),
                    )
                )
            ],
        ),
        ("partitions", "third_partition_lost", [RunOptions(partitions=2), RunOptions(partitions=7, state_groups=5)]),
    ],
)
def test_a_history_that_is_asked_alone_is_asked_at_every_batch_it_has(
    monkeypatch: pytest.MonkeyPatch, law: str, mutant: str, ways: list[RunOptions]
) -> None:
    asked = play_in_memory(monkeypatch)
    assert recheck(law, FIVE, mutant=mutant).differences
    assert asked == [ALONE if law == "partitions" else PLAIN, *ways]
    assert not recheck(law, FIVE).differences


@pytest.mark.parametrize(
    ("law", "way", "clipped"),
    [
        ("restart", RunOptions(stop_after=(4, 5)), RunOptions(stop_after=(0, 0))),
        ("replay", RunOptions(crash_in=(Crash(4), Crash(4))), RunOptions(crash_in=(Crash(1), Crash(1)))),
    ],
)
def test_a_way_is_clipped_to_the_batches_of_a_shorter_history(
    monkeypatch: pytest.MonkeyPatch, law: str, way: RunOptions, clipped: RunOptions
) -> None:
    asked = play_in_memory(monkeypatch)
    assert not recheck(law, MANY_KEYS, way=way).differences
    assert asked == [PLAIN, clipped]


def test_histories_with_different_ways_are_each_asked_in_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    play_in_memory(monkeypatch)
    witness = witness_of(JOIN, "forgets_at_second_restart")
    ways = [RunOptions(stop_after=(1, 2)), RunOptions(stop_after=(1,)), RunOptions(stop_after=(1, 2)), None]
    found = LAWS["spark"]["restart"].recheck([Case(FIVE, way=way) for way in ways], witness)
    assert [bool(comparison.differences) for comparison in found] == [True, False, True, True]


def test_a_law_that_runs_nothing_again_takes_no_way() -> None:
    with pytest.raises(CannotRecheck, match="the law 'changelog' has no run options: leave way out"):
        recheck("changelog", FIVE, way=PLAIN)


def test_a_way_is_a_value_and_is_written_as_short_as_it_is() -> None:
    way = RunOptions(stop_after=(1, 1), partitions=3)
    assert way.to_json() == {"stop_after": [1, 1], "partitions": 3}
    assert {way: 1}[run_options(way.to_json())] == 1
    assert (PLAIN.to_json(), run_options({})) == ({}, PLAIN)
    with pytest.raises(BadInput, match=r"stop_after is \[1\.5\], and must be a list of batches"):
        run_options({"stop_after": [1.5]})


def test_batches_are_shown_in_words() -> None:
    assert [numbered(batches) for batches in ((1,), (1, 2), (3, 3), (0, 1, 4))] == [
        "batch 1",
        "batches 1 and 2",
        "batch 3 (twice)",
        "batches 0, 1 and 4",
    ]


def test_the_usual_ways_fit_the_batches_of_the_histories_that_share_no_queries() -> None:
    batches = len(one_cohort([FIVE]).schedule) - 1
    for law in RERUN_LAWS:
        assert [way.clipped(batches) for way in law.usual] == list(law.usual)


class Moved(Restart):
    name = "moved"
    draw_ways = RerunLaw.draw_ways  # what a law has that doesn't say it


def test_a_new_law_s_ways_are_those_of_the_first_pool_and_leave_those_of_others_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(laws, "METAMORPHIC", (*laws.METAMORPHIC, Moved()))
    first, *others = pools_on_spark([registration_of("session_windows")], 20, 0)
    assert [{*sample.ways} for sample in first] == [{"restart", "partitions", "moved"}] * len(first)
    assert all(law.is_asked_of(sample) for law in laws.METAMORPHIC[-1:] for sample in first)
    assert not any("moved" in sample.ways for pool in others for sample in pool)
