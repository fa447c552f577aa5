"""The laws that no operator mutant can break by itself: each catches a seeded bug of a witness, a plan or a sink."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from streamproof.properties import duckdb_witness
from streamproof.properties.check import SHAPES
from streamproof.properties.cohorts import cohorts_of
from streamproof.properties.draws import draw_histories
from streamproof.properties.duckdb_relation import read_statement
from streamproof.properties.examinations import examine
from streamproof.properties.laws import (
    LAWS,
    Law,
    LawResult,
    Verdict,
    fold_is_meaning,
    one_key,
    same_entries,
    same_for_key,
    worst,
)
from streamproof.properties.outcomes import Grain, Outcome, differences
from streamproof.properties.spark_witness import Plan, answer, run_cohort
from streamproof.reference.histories import History, parse_history
from streamproof.reference.play import Entry, Played, play
from streamproof.reference.records import Change
from streamproof.spark_impl.keyed import Arrived, Told
from streamproof.spark_impl.session_windows import Session, SessionLogic

DRAWN = list(draw_histories(SHAPES["update"], 60, 5))


def at_batch_grain(history: History) -> Outcome:
    """The reference's outcome as a witness at batch grain tells it."""
    return Outcome(history.name, Grain.BATCH, play(history).entries)


def test_fold_is_meaning_holds_for_the_reference() -> None:
    assert [history.name for history in DRAWN if fold_is_meaning(history, play(history))] == []


def test_fold_is_meaning_catches_forgotten_tombstones() -> None:
    def forgetful(history: History) -> Played:
        played = play(history)
        kept = [entry for entry in played.entries if not isinstance(entry.output, Change) or entry.output.value]
        steps = [(min(entries, len(kept)), accepted, clock) for entries, accepted, clock in played.steps]
        return Played(played.definition, kept, played.accepted, played.clock, steps)

    assert any(fold_is_meaning(history, forgetful(history)) for history in DRAWN)


def test_keys_catches_a_key_that_takes_another_one_s_changes() -> None:
    history = DRAWN[0]
    whole, alone = at_batch_grain(history), at_batch_grain(one_key(history, "a").history)
    assert same_for_key("h", "a", whole, alone) == []
    leaking = [
        entry._replace(output=entry.output._replace(key="a")) if entry.output.key == "b" else entry
        for entry in whole.entries
    ]
    assert same_for_key("h", "a", Outcome("h", Grain.BATCH, leaking), alone)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("OVER before_it > $gap_ms", "OVER before_it >= $gap_ms"),
        ("WHERE session_end >= new.edge", "WHERE session_end > new.edge"),
        ("max(session_end) < edge\n", "max(session_end) <= edge\n"),
        ("positions ORDER BY is_new, session_end", "positions ORDER BY session_end"),
    ],
    ids=["exclusive gap", "closed one tick early", "late one tick early", "new record not last"],
)
def test_duckdb_catches_a_bug_in_its_own_statement(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    statement = read_statement("session_windows")
    assert statement.count(right) == 1
    monkeypatch.setattr(duckdb_witness, "read_statement", lambda name: statement.replace(right, wrong))
    pairs = zip(DRAWN, duckdb_witness.tables(DRAWN), strict=True)
    assert any(differences(Outcome.of_play(history.name, play(history)), outcome) for history, outcome in pairs)


def test_a_law_that_judged_nothing_is_inconclusive() -> None:
    assert LawResult(Law("l", "s")).verdict is Verdict.INCONCLUSIVE


def test_a_law_whose_situation_never_came_up_is_inconclusive() -> None:
    assert LawResult(LAWS["changelog"], judged=5).verdict is Verdict.INCONCLUSIVE


def test_a_violation_outweighs_a_missing_situation() -> None:
    assert LawResult(LAWS["changelog"], judged=5, violations=[(DRAWN[0], [])]).verdict is Verdict.VIOLATED


def test_the_verdict_of_nothing_is_inconclusive() -> None:
    assert worst([]) is Verdict.INCONCLUSIVE


def test_packing_catches_an_operator_that_tells_the_histories_of_a_cohort_apart(spark: SparkSession) -> None:
    class ServesTheFirstOnly(SessionLogic):
        def take(self, key: tuple[str, ...], sessions: list[Session], row: Arrived, clock: int) -> list[Told]:
            return super().take(key, sessions, row, clock) if str(key[0])[:5] in ("00000", "~cloc") else []

    plan = Plan(logic=ServesTheFirstOnly)
    packed = run_cohort(cohorts_of(DRAWN[:3])[0][0], plan)[0]
    assert same_entries(packed[1], answer([DRAWN[1]], plan)[0])


def test_replay_catches_a_sink_that_appends_a_replayed_batch(spark: SparkSession) -> None:
    cohort = cohorts_of(DRAWN[:20])[0][0]
    right, output = run_cohort(cohort, Plan(crash_in=1))
    assert len(output.replayed) == 1
    appended = [
        Outcome(
            outcome.history,
            Grain.BATCH,
            [entry for entry in outcome.entries for _ in range(2 if entry.batch == 1 else 1)],
        )
        for outcome in right
    ]
    assert any(same_entries(outcome, twice) for outcome, twice in zip(right, appended, strict=True))


def test_native_catches_a_gap_that_is_declared_one_millisecond_too_short(spark: SparkSession) -> None:
    drawn = list(draw_histories(SHAPES["native"], 30, 5))
    short = [History(h.operator, {**h.options, "gap_ms": 9, "grace_ms": 6}, h.lines, h.clock, h.name) for h in drawn]
    outcomes = answer(short, Plan(native=True))
    pairs = zip(drawn, outcomes, strict=True)
    assert any(differences(Outcome.of_play(history.name, play(history)), outcome) for history, outcome in pairs)


def test_an_examination_names_the_laws_that_a_history_breaks(spark: SparkSession) -> None:
    class Silent(SessionLogic):
        def take(self, key: tuple[str, ...], sessions: list[Session], row: Arrived, clock: int) -> list[Told]:
            return []

    history = parse_history(
        '{"operator": "session_windows", "options": {"gap_ms": 10}, "clock": "batch"}\n'
        '{"input": "events", "key": "a", "value": 1, "timestamp": 5}\n'
    )
    examination = examine(cohorts_of([history])[0][0], Plan(logic=Silent))
    assert set(examination.broken[0]) == {"changelog", "table at every cut"}
    assert Entry(0, 0, Change("a", (5, 5), 1, 5)) in examination.played[0].entries
