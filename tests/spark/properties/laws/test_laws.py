"""The laws that no operator mutant can break by itself: each catches a mutant of a witness, a plan or a sink."""

from __future__ import annotations

from pyspark.sql import SparkSession
from streamproof.properties.generators.cohorts import cohorts_of
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.on_spark.changelog import Changelog
from streamproof.properties.laws.on_spark.native import compared
from streamproof.properties.laws.on_spark.table_at_every_cut import TableAtEveryCut
from streamproof.properties.outcomes.outcomes import Grain, Outcome, differences
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.run_options import Crash, RunOptions
from streamproof.properties.witnesses.spark.witness import NativeSparkWitness, SparkWitness
from streamproof.reference.core.history import History, parse_history
from streamproof.reference.core.play import Entry
from streamproof.reference.core.records import Change
from streamproof.spark_impl.runtime.logic import Arrived, Emitted
from streamproof.spark_impl.session_windows import Session, SessionLogic

SESSIONS = registration_of("session_windows")
DRAWN = list(draw_histories(HistorySettings("session_windows", SESSIONS.profiles["update"], SCHEDULE), 60, 5))


def test_replay_catches_a_sink_that_appends_a_replayed_batch(spark: SparkSession) -> None:
    cohort = cohorts_of(DRAWN[:20])[0][0]
    right, output = SparkWitness().run(cohort, RunOptions(crash_in=(Crash(1),)))
    assert len(output.replayed) == 1
    appended = [
        Outcome(
            outcome.history,
            Grain.BATCH,
            [entry for entry in outcome.entries for _ in range(2 if entry.batch == 1 else 1)],
        )
        for outcome in right
    ]
    assert any(differences(outcome, twice) for outcome, twice in zip(right, appended, strict=True))


def test_native_catches_a_gap_that_is_declared_one_millisecond_too_short(spark: SparkSession) -> None:
    options = {"gap_ms": 10, "grace_ms": 5, "aggregate": "count", "emit": "close", "late": "own"}
    drawn = list(draw_histories(HistorySettings("session_windows", options, SCHEDULE), 30, 5))
    short = [History(h.operator, {**h.options, "gap_ms": 9, "grace_ms": 6}, h.lines, h.clock, h.name) for h in drawn]
    outcomes = NativeSparkWitness().evaluate(short)
    assert any(compared(*pair).differences for pair in zip(drawn, outcomes, strict=True))


def test_an_operator_that_emits_nothing_breaks_the_changelog_and_the_table(spark: SparkSession) -> None:
    class Silent(SessionLogic):
        def take(self, key: tuple[str, ...], sessions: list[Session], row: Arrived, clock: int) -> list[Emitted]:
            return []

    history = parse_history(
        '{"operator": "session_windows", "options": {"gap_ms": 10}, "clock": "batch"}\n'
        '{"input": "events", "key": "a", "value": 1, "timestamp": 5}\n'
    )
    for law in (Changelog(), TableAtEveryCut()):
        (comparison,) = law.recheck([Case(history)], SparkWitness(Silent))
        assert comparison.differences
        assert Entry(0, 0, Change("a", (5, 5), 1, 5)) in comparison.expected[1].entries
