from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties.checking import findings
from streamproof.properties.checking.check import check_reference
from streamproof.properties.checking.report import Report
from streamproof.properties.checking.rounds import Round
from streamproof.properties.checking.samples import drawn_under, plan_of_reference
from streamproof.properties.counterexamples.counterexample import NOT_RECHECKED
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.generators.coverage import AHEAD, MOVED, count_goals_met, coverage_goals, goals_met
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.generators.options import met_by, option_goals
from streamproof.properties.laws.base import Verdict
from streamproof.properties.laws.scheduling import scheduled
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.reference import foreign_key_protocol, table_table_join
from streamproof.reference.core.clocks import BatchClock
from streamproof.reference.core.errors import MissingTool
from streamproof.reference.core.history import Delivery, History
from streamproof.reference.core.operator import OPERATORS, Operator
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change
from streamproof.reference.definitions.aggregates import AGGREGATES, reduce
from streamproof.reference.definitions.joins import OneToManyJoin

PROFILES = {name: registration.profiles for name, registration in registered().items()}
BY_CLOCK = {name: any(map(one.by_clock, map(one.declare, one.profiles.values()))) for name, one in registered().items()}
EVERY_PROFILE = [(operator, name) for operator, profiles in PROFILES.items() for name in profiles]


@pytest.fixture
def no_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(witness: object, histories: object, strict: bool = True) -> None:
        raise MissingTool("no jars: make some")

    for name in ("evaluate", "stage"):
        monkeypatch.setattr(f"streamproof.properties.witnesses.kafka.witness.KafkaWitness.{name}", missing)


def checked(operator: str, folder: Path, histories: int = 120) -> Report:
    return check_reference(operator, FolderStore(folder), histories)


def by_law(report: Report) -> dict[str, Verdict]:
    return {result.law.name: result.verdict for result in report.results}


def test_every_operator_has_profiles() -> None:
    assert set(PROFILES) == set(OPERATORS)


@pytest.mark.parametrize(("operator", "name"), EVERY_PROFILE)
def test_every_coverage_goal_is_met_under_every_profile(operator: str, name: str) -> None:
    registration, options = registration_of(operator), PROFILES[operator][name]
    drawn = drawn_under(registration, options, 20, seed=3)
    met = {goal for history in drawn for goal in goals_met(registration, history, play(history))}
    missing = [goal for goal in coverage_goals(registration, registration.declare(options)) if goal not in met]
    # A quarter of a hundred histories is little for what is rare; a whole check draws more.
    assert len(missing) <= 1, missing


def test_a_drawn_half_is_under_the_batch_clock_and_a_half_has_null_keys() -> None:
    drawn = list(drawn_under(registration_of("table_table_join"), {}, 10, seed=1))
    assert [history.clock for history in drawn].count("batch") == 20
    assert sum(any(record.key is None for record in history.records) for history in drawn) in range(10, 21)


def test_a_witness_that_is_missing_is_asked_once_and_not_for_every_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def missing(witness: object, histories: object) -> None:
        asked.append(witness)
        raise MissingTool("no jars: make some")

    monkeypatch.setattr("streamproof.properties.witnesses.kafka.witness.KafkaWitness.evaluate", missing)
    assert checked("table_table_join", tmp_path, histories=12).result("kafka").skipped
    assert len(asked) == 1


def test_a_law_that_is_broken_stays_so_when_its_tool_is_gone_before_it_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def silent_then_gone(witness: object, histories: Sequence[History]) -> list[Outcome]:
        asked.append(witness)
        if len(asked) > 1:
            raise MissingTool("the JVM doesn't start again: give it memory")
        return [Outcome(one.name, Grain.ARRIVAL, [], knows_dropped=False) for one in histories]

    monkeypatch.setattr("streamproof.properties.witnesses.kafka.witness.KafkaWitness.evaluate", silent_then_gone)
    report = checked("table_table_join", tmp_path, histories=12)
    assert (report.verdict, report.result("kafka").skipped) == (Verdict.VIOLATED, "")
    assert [one.law for one, _ in report.found] == ["kafka"]


@pytest.mark.usefixtures("no_kafka")
def test_without_kafka_its_law_is_skipped_by_name_and_the_others_judge(tmp_path: Path) -> None:
    report = checked("table_table_join", tmp_path)
    kafka = report.results[-1]
    assert (kafka.law.name, kafka.skipped) == ("kafka", "skipped: no jars: make some")
    assert report.verdict is Verdict.CONFORMS
    assert by_law(report)["fold is meaning"] is by_law(report)["duckdb"] is Verdict.CONFORMS


@pytest.mark.usefixtures("no_kafka")
@pytest.mark.parametrize("operator", [name for name, by_clock in BY_CLOCK.items() if by_clock])
def test_a_batch_clock_that_forgets_its_largest_timestamp_is_found(
    operator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(self: BatchClock, timestamp: int) -> None:
        self.largest = timestamp

    monkeypatch.setattr(BatchClock, "observe", forgetful)
    report = checked(operator, tmp_path, 400)
    assert by_law(report)["duckdb"] is Verdict.VIOLATED
    assert len(report.found[-1][0].history.records) <= 4


@pytest.mark.usefixtures("no_kafka")
def test_without_a_history_whose_records_move_the_clock_nothing_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamproof.properties.checking.samples.moved_by_records", lambda history: history)
    result = checked("stream_stream_join", tmp_path, 400).result("duckdb")
    assert {goal.split(" (")[0] for goal in result.missing} >= {MOVED}


@pytest.mark.usefixtures("no_kafka")
@pytest.mark.parametrize(
    ("operator", "verdict"),
    [("foreign_key_join", Verdict.VIOLATED), ("one_to_many_join", Verdict.INCONCLUSIVE)],
)
def test_a_definition_that_ignores_the_answering_protocol_excuses_no_law(
    operator: str, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OneToManyJoin, "answers_all", property(lambda join: join.join == "left"))
    report = checked(operator, tmp_path, 2000)
    assert report.verdict is verdict
    assert "answered without a right row (inner, answer)" in report.result("duckdb").missing


def added(add: Callable[[Any, Any], Any]) -> Callable[[str, Any, Any], Any]:
    return lambda key, value, aggregate: add(aggregate, value)


MISREAD = {
    "min is max": replace(AGGREGATES["max"], name="min"),
    "max from zero": replace(reduce(lambda one, two: two if one < two else one), name="max", initializer=lambda: 0),
    "count skips null": replace(
        AGGREGATES["count"], aggregator=added(lambda total, value: total + (value is not None))
    ),
    "list drops null": replace(
        AGGREGATES["list"], aggregator=added(lambda members, value: members if value is None else [*members, value])
    ),
    "sum of 32 bits": replace(AGGREGATES["sum"], aggregator=added(lambda total, value: (total + value) % 2**32)),
    "sum of whole numbers": replace(AGGREGATES["sum"], aggregator=added(lambda total, value: total + int(value))),
}


@pytest.mark.usefixtures("no_kafka")
@pytest.mark.parametrize("misread", MISREAD)
def test_an_aggregate_that_is_read_wrongly_is_found_by_drawn_definitions_and_values(
    misread: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    option_goals(registration_of("session_windows"))  # it keeps the aggregates that it was first asked with
    wrong = replace(MISREAD[misread], refuses=AGGREGATES[MISREAD[misread].name].refuses)
    monkeypatch.setitem(AGGREGATES, wrong.name, wrong)
    monkeypatch.setattr(findings, "confirmed", lambda law, violation, witness, asked: (violation, ""))
    assert checked("session_windows", tmp_path, 800).result("duckdb").verdict is Verdict.VIOLATED


@pytest.mark.usefixtures("no_kafka")
def test_another_default_is_found_though_every_profile_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Operator.declare
    monkeypatch.setattr(Operator, "declare", lambda self, given: right(self, {"aggregate": "sum", **given}))
    assert all("aggregate" in options for options in PROFILES["range_aggregate"].values())
    assert checked("range_aggregate", tmp_path).result("duckdb").verdict is Verdict.VIOLATED


def test_a_quarter_of_the_histories_is_of_drawn_definitions_under_every_clock() -> None:
    *of_profiles, drawn, _ = (draw() for draw in plan_of_reference(registration_of("session_windows"), 2000, 0))
    assert [sample.profile for sample in of_profiles] == [*PROFILES["session_windows"]]
    assert len(drawn.histories) in range(450, 550)
    assert {history.clock for history in drawn.histories} == {"batch", "stream_time"}
    met = count_goals_met(drawn.histories)
    assert met[MOVED] > 50
    assert met[AHEAD] > 5
    assert {goal for one in drawn.histories for goal in met_by(drawn.registration, one.options)} == {
        *option_goals(drawn.registration)
    }


@pytest.mark.usefixtures("no_kafka")
def test_too_few_histories_are_inconclusive(tmp_path: Path) -> None:
    assert checked("stream_stream_join", tmp_path, histories=7).verdict is Verdict.INCONCLUSIVE


@pytest.mark.usefixtures("no_kafka")
def test_a_counterexample_is_told_as_it_is_found_and_once_it_is_shrunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = table_table_join.TableJoin.change

    def silent(self: Any, side: str, row: Any, value: Any, timestamp: int) -> list[Change]:
        return [] if side == "right" else right(self, side, row, value, timestamp)

    monkeypatch.setattr(table_table_join.TableJoin, "change", silent)
    told: list[tuple[list[str], bool]] = []

    def found(report: Report) -> None:
        assert not report.is_whole
        *before, (last, path) = report.found
        assert path.exists()
        assert all(one.confirmed and len(one.history.records) < 4 for one, _ in before)
        assert last.confirmed == (len(last.history.records) < 4) == (last.unconfirmed != NOT_RECHECKED)
        told.append(([one.law for one, _ in report.found], last.confirmed))

    report = check_reference("table_table_join", FolderStore(tmp_path), turn=Round(found=found))
    laws = [one.law for one, _ in report.found]
    assert len(laws) > 1
    assert told == [(laws[:count], shrunk) for count in range(1, len(laws) + 1) for shrunk in (False, True)]
    again: list[Report] = []
    report = check_reference("table_table_join", FolderStore(tmp_path), 8, turn=Round(found=again.append))
    assert len(again) >= len(report.found) > 1  # a saved counterexample that is still wrong is told, too


def test_a_schedule_leaves_no_message_waiting_and_every_record_arrives_in_order() -> None:
    options = PROFILES["foreign_key_join"]["left"]
    for number, history in enumerate(
        draw_histories(HistorySettings("foreign_key_join", options, SCHEDULE), 10, seed=1)
    ):
        by_schedule = scheduled(history, random.Random(number))
        assert by_schedule.records == history.records
        assert any(isinstance(line, Delivery) for line in by_schedule.lines)
        waiting: list[Any] = []

        def watched(join: Any, clock: Any, waiting: list[Any] = waiting) -> foreign_key_protocol.Protocol:
            waiting.append(foreign_key_protocol.Protocol(join, clock))
            return waiting[-1]  # type: ignore[no-any-return]

        play(by_schedule, watched)
        assert not waiting[0].waiting


def test_null_keys_are_a_goal_where_the_definition_keeps_them() -> None:
    registration = registration_of("stream_table_join")
    assert "null key kept" in coverage_goals(registration, registration.declare({"null_key": "keep"}))
    assert "dropped: null key" in coverage_goals(registration, registration.declare({}))


def test_of_a_witness_alone_its_laws_alone_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def right(witness: object, histories: Any) -> list[Outcome]:
        return [Outcome.of_play(history.name, play(history)) for history in histories]

    monkeypatch.setattr("streamproof.properties.witnesses.kafka.witness.KafkaWitness.evaluate", right)
    report = check_reference("table_table_join", FolderStore(tmp_path), 120, on="kafka")
    assert by_law(report) == {"kafka": Verdict.CONFORMS}
    assert set(report.not_checked) == {"schedules on kafka"}
