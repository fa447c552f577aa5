"""The laws that no operator mutant can break by itself: each catches a mutant of a witness, a plan or a sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from given_answers import Given, judged, right_outcome, without_last
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.base import BrokenCase, Comparison, LawResult, Verdict, worst
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.causes import played_with_causes
from streamproof.properties.laws.metamorphic.keys import KeysLaw, concerning
from streamproof.properties.laws.of_reference.fold_is_meaning import FoldIsMeaning
from streamproof.properties.laws.on_spark.changelog import Changelog
from streamproof.properties.laws.on_spark.labels import CAUSED, expected_labels
from streamproof.properties.laws.runs import Kind, Sample
from streamproof.properties.outcomes.outcomes import Grain, Outcome, differences
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.duckdb import witness as duckdb_witness
from streamproof.properties.witnesses.run_options import Crash, RunOptions
from streamproof.properties.witnesses.spark.answers import Answers
from streamproof.reference.core.history import History
from streamproof.reference.core.play import Played, play
from streamproof.reference.core.records import Change

SESSIONS = registration_of("session_windows")
DRAWN = list(draw_histories(HistorySettings("session_windows", SESSIONS.profiles["update"], SCHEDULE), 60, 5))
NOTHING = Outcome("h", Grain.END, final={})


def at_batch_grain(history: History) -> Outcome:
    """The reference's outcome as a witness at batch grain emits it."""
    return Outcome(history.name, Grain.BATCH, play(history).entries)


def test_fold_is_meaning_catches_forgotten_tombstones() -> None:
    def forgetful(history: History) -> Played:
        played = play(history)
        without_tombstones = [
            entry for entry in played.entries if not isinstance(entry.output, Change) or entry.output.value
        ]
        steps = [(min(entries, len(without_tombstones)), accepted, clock) for entries, accepted, clock in played.steps]
        return Played(played.definition, without_tombstones, played.accepted, played.clock, steps)

    assert any(FoldIsMeaning().differences(history, forgetful(history), NOTHING) for history in DRAWN)


def test_keys_catches_a_key_that_takes_another_one_s_changes() -> None:
    history = DRAWN[0]
    case = Case(concerning(history, "a"), history)
    whole, alone = at_batch_grain(history), at_batch_grain(case.history)
    assert KeysLaw().differences(SESSIONS, case, whole, alone) == []
    leaking = [
        entry._replace(output=entry.output._replace(key="a")) if entry.output.key == "b" else entry
        for entry in whole.entries
    ]
    assert KeysLaw().differences(SESSIONS, case, Outcome("h", Grain.BATCH, leaking), alone)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("OVER before_it > gap_ms", "OVER before_it >= gap_ms"),
        ("WHERE session_end >= new.edge", "WHERE session_end > new.edge"),
        ("max(session_end) < edge\n", "max(session_end) <= edge\n"),
        ("positions ORDER BY is_new, session_end", "positions ORDER BY session_end"),
    ],
    ids=["exclusive gap", "closed one tick early", "late one tick early", "new record not last"],
)
def test_duckdb_catches_a_bug_in_its_own_statement(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    sql = SESSIONS.sql
    assert sql is not None
    assert sql.statement.count(right) == 1
    wrong_sql = replace(SESSIONS, sql=replace(sql, statement=sql.statement.replace(right, wrong)))
    monkeypatch.setattr(duckdb_witness, "registration_of", lambda name: wrong_sql)
    pairs = zip(DRAWN, duckdb_witness.DuckDBWitness().evaluate(DRAWN), strict=True)
    assert any(differences(Outcome.of_play(history.name, play(history)), outcome) for history, outcome in pairs)


@pytest.mark.parametrize("name", ["changelog", "table at every cut", "duckdb"])
def test_a_history_with_another_outcome_breaks_the_law_and_no_other_history(name: str) -> None:
    sample = Sample(SESSIONS, Kind.RANDOM, "update", SESSIONS.profiles["update"], DRAWN[:10])
    right = {history.name: right_outcome(history) for history in sample.histories}
    assert judged(LAWS["spark"][name], sample, Given(right)) == (10, [])
    wrong = {**right, "h3": without_last(right["h3"]), "h7": without_last(right["h7"])}
    assert judged(LAWS["spark"][name], sample, Given(wrong)) == (10, ["h3", "h7"])


@dataclass
class Again(Given):
    """Answers in each way but the first with the outcomes of others, as far as they have the history."""

    others: Mapping[str, Outcome] = field(default_factory=dict)
    first: RunOptions | None = None

    def answers(self, histories: Sequence[History], options: RunOptions) -> Answers:
        self.first = options if self.first is None else self.first
        given = super().answers(histories, options)
        others = {} if options == self.first else self.others
        named = zip(histories, given.outcomes, strict=True)
        return replace(given, outcomes=[others.get(history.name, one) for history, one in named])


@pytest.mark.parametrize(("name", "ways"), [("restart", 1), ("replay", 1), ("partitions", 2)])
def test_a_history_that_emits_otherwise_when_it_runs_again_breaks_the_law_and_no_other_history(
    name: str, ways: int
) -> None:
    sample = Sample(SESSIONS, Kind.RANDOM, "update", SESSIONS.profiles["update"], DRAWN[:10], is_first=True)
    law, right = LAWS["spark"][name], {history.name: right_outcome(history) for history in DRAWN[:10]}
    assert judged(law, sample, Again(right)) == (2 * ways, [])
    wrong = Again(right, others={"h1": without_last(right["h1"])})
    assert judged(law, sample, wrong) == (2 * ways, ["h1"] * ways)


def test_labels_are_compared_in_each_drawn_history() -> None:
    histories, labels = DRAWN[:10], [expected_labels(history) for history in DRAWN[:10]]
    played, causes = zip(*map(played_with_causes, histories), strict=True)
    run: Any = SimpleNamespace(histories=histories, played=played, causes=causes, drawn=9)
    run.outcomes = [*map(right_outcome, histories)]
    for wrong in range(10):
        given = [own[:-1] if number == wrong else own for number, own in enumerate(labels)]
        run.answers = SimpleNamespace(labels=given)
        result = LawResult(LAWS["spark"]["labels"])
        broken = [one.case.history.name for one in LAWS["spark"]["labels"].judge(run, result)]  # type: ignore[arg-type]
        assert (result.judged, broken) == (9, [f"h{wrong}"] * (wrong < 9))
        assert result.covered.keys() == {CAUSED}


@pytest.mark.parametrize("lacks", [{"judged": 0}, {"goals": ("two keys", "unmet")}, {"unfinished": True}])
def test_a_law_that_judged_nothing_lacks_a_goal_or_was_not_done_is_inconclusive(lacks: Any) -> None:
    whole: Any = {"goals": ("two keys",), "covered": Counter({"two keys": 1}), "judged": 5}
    assert LawResult(Changelog(), **whole).verdict is Verdict.CONFORMS
    assert LawResult(Changelog(), **whole | lacks).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("null_key", [False, True])
def test_a_replayed_batch_may_differ_in_itself_or_in_what_comes_of_it(null_key: bool) -> None:
    right = [right_outcome(history) for history in DRAWN[:4]]
    way = RunOptions(crash_in=(Crash(1), Crash(1)))
    again = Answers([right[0], without_last(right[1]), right[2], without_last(right[3])], [], [set() for _ in right], 2)
    again.rewritten[2:] = [{"a"}, {None if null_key else "b"}]
    found = LAWS["spark"]["replay"].compare(Answers(right, [], []), again, way)
    assert [bool(one.differences) for one in found] == [False, True, True, True]
    assert [(one.key, one.when) for one in found[2].differences] == [("a", 1)]


def test_a_violation_outweighs_an_unmet_goal() -> None:
    violation = BrokenCase(Case(DRAWN[0]), Comparison(("reference", NOTHING), ("Spark", NOTHING), []))
    result = LawResult(Changelog(), goals=("two keys",), judged=5, violations=[violation])
    assert result.verdict is Verdict.VIOLATED


def test_the_verdict_of_nothing_is_inconclusive() -> None:
    assert worst([]) is Verdict.INCONCLUSIVE
