from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties import oracle
from streamproof.properties.check import Report
from streamproof.properties.coverage import situations_needed
from streamproof.properties.draws import Shape, draw_histories
from streamproof.properties.laws import Verdict
from streamproof.properties.operator_situations import needed
from streamproof.properties.oracle import (
    answer_of_protocol,
    check_reference,
    drawn_under,
    scheduled_history,
)
from streamproof.properties.shapes import SCHEDULE, SHAPES
from streamproof.properties.situations import situations_of
from streamproof.reference import foreign_key_protocol, table_table_join
from streamproof.reference.errors import BadInput, MissingTool
from streamproof.reference.histories import Delivery
from streamproof.reference.operators import OPERATORS, operator_named
from streamproof.reference.play import play
from streamproof.reference.records import Change, Output, Record

pytestmark = pytest.mark.exhaustive

EVERY_SHAPE = [(operator, name) for operator, shapes in SHAPES.items() for name in shapes]


@pytest.fixture
def no_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(histories: object) -> None:
        raise MissingTool("no jars: make some")

    monkeypatch.setattr("streamproof.properties.kafka_witness.answer", missing)


def checked(operator: str, folder: Path, histories: int = 120) -> Report:
    return check_reference(operator, histories, 0, folder)


def by_law(report: Report) -> dict[str, Verdict]:
    return {result.law.name: result.verdict for result in report.results}


def test_every_operator_has_shapes() -> None:
    assert set(SHAPES) == set(OPERATORS)


@pytest.mark.parametrize(("operator", "name"), EVERY_SHAPE)
def test_every_situation_comes_up_under_every_definition(operator: str, name: str) -> None:
    options = SHAPES[operator][name]
    met = situations_of(drawn_under(operator, options, 20, seed=3))
    missing = [situation for situation in situations_needed(operator, options) if not met[situation]]
    # A quarter of a hundred histories is little for what is rare; a whole check draws more.
    assert len(missing) <= 1, missing


def test_a_drawn_half_is_under_the_batch_clock_and_a_half_has_null_keys() -> None:
    drawn = list(drawn_under("table_table_join", {}, 10, seed=1))
    assert [history.clock for history in drawn].count("batch") == 20
    assert sum(any(record.key is None for record in history.records) for history in drawn) in range(10, 21)


@pytest.mark.usefixtures("no_kafka")
def test_without_kafka_its_law_is_skipped_by_name_and_the_others_judge(tmp_path: Path) -> None:
    report = checked("table_table_join", tmp_path)
    kafka = report.results[-1]
    assert (kafka.law.name, kafka.skipped) == ("kafka", "skipped: no jars: make some")
    assert report.verdict is Verdict.CONFORMS
    assert by_law(report)["fold is meaning"] is by_law(report)["duckdb"] is Verdict.CONFORMS


@pytest.mark.usefixtures("no_kafka")
def test_the_foreign_key_join_is_held_to_its_protocol_and_to_schedules(tmp_path: Path) -> None:
    report = checked("foreign_key_join", tmp_path, histories=200)
    assert by_law(report)["protocol"] is by_law(report)["schedules"] is Verdict.CONFORMS


@pytest.mark.usefixtures("no_kafka")
def test_too_few_histories_are_inconclusive(tmp_path: Path) -> None:
    assert checked("stream_stream_join", tmp_path, histories=7).verdict is Verdict.INCONCLUSIVE


@pytest.mark.usefixtures("no_kafka")
def test_a_behaviour_that_parts_from_its_meaning_is_found_shrunk_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = table_table_join.TableJoin.change

    def forgetful(self: Any, side: str, row: Any, value: Any, timestamp: int) -> list[Change]:
        return [] if side == "right" and value is None else right(self, side, row, value, timestamp)

    monkeypatch.setattr(table_table_join.TableJoin, "change", forgetful)
    report = checked("table_table_join", tmp_path)
    assert by_law(report)["fold is meaning"] is by_law(report)["duckdb"] is Verdict.VIOLATED
    finding, path = report.found[0]
    assert len(finding.history.records) == 3
    assert (path / "history.jsonl").read_text() == finding.history.to_text()


@pytest.mark.usefixtures("no_kafka")
def test_a_protocol_without_the_hash_check_is_found_by_schedules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unchecked(self: Any, response: foreign_key_protocol.Response) -> list[Change]:
        return self._tell(response.key, response.value, response.timestamp)  # type: ignore[no-any-return]

    monkeypatch.setattr(foreign_key_protocol.Left, "receive", unchecked)
    report = checked("foreign_key_join", tmp_path, histories=200)
    assert by_law(report)["protocol"] is Verdict.CONFORMS
    assert by_law(report)["schedules"] is Verdict.VIOLATED


@pytest.mark.usefixtures("no_kafka")
def test_a_protocol_that_answers_from_the_wrong_row_is_found_when_messages_go_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_key_protocol, "prefix_of", lambda foreign_key: foreign_key.encode())
    report = checked("foreign_key_join", tmp_path, histories=200)
    assert by_law(report)["protocol"] is Verdict.VIOLATED


def test_a_kafka_that_answers_otherwise_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(histories: Any) -> list[Any]:
        outcomes = [oracle.Outcome.of_play(history.name, play(history)) for history in histories]
        for outcome in outcomes:
            outcome.entries = outcome.entries[:-1]
        return outcomes

    monkeypatch.setattr("streamproof.properties.kafka_witness.answer", silent)
    assert by_law(checked("table_aggregate", tmp_path))["kafka"] is Verdict.VIOLATED


def test_an_interrupted_check_is_inconclusive_and_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(histories: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(oracle, "tables", interrupted)
    report = Report("table_table_join", [], 0)
    with pytest.raises(KeyboardInterrupt):
        check_reference("table_table_join", 40, 0, tmp_path, report=report)
    assert report.verdict is Verdict.INCONCLUSIVE


def test_a_schedule_leaves_no_message_waiting_and_every_record_arrives_in_order() -> None:
    options = SHAPES["foreign_key_join"]["left"]
    for number, history in enumerate(draw_histories(Shape(options, SCHEDULE, operator="foreign_key_join"), 10, seed=1)):
        scheduled = scheduled_history(history, random.Random(number))
        assert scheduled.records == history.records
        assert any(isinstance(line, Delivery) for line in scheduled.lines)
        waiting: list[Any] = []

        def watched(join: Any, clock: Any, waiting: list[Any] = waiting) -> foreign_key_protocol.Protocol:
            waiting.append(foreign_key_protocol.Protocol(join, clock))
            return waiting[-1]  # type: ignore[no-any-return]

        play(scheduled, watched)
        assert not waiting[0].waiting


def test_protocol_refuses_an_operator_without_messages() -> None:
    (history,) = draw_histories(Shape({}, SCHEDULE, operator="table_table_join"), 1, seed=1)
    with pytest.raises(BadInput, match="h0: protocol plays the messages of foreign_key_join, and table_table_join has"):
        answer_of_protocol([history])


def test_kept_null_keys_are_needed_where_they_are_kept() -> None:
    kept = operator_named("stream_table_join").declare({"null_key": "keep"})
    assert "null key kept" in needed("stream_table_join", kept)
    assert "dropped: null key" in needed("stream_table_join", operator_named("stream_table_join").declare({}))


def test_outputs_of_the_play_are_records_of_the_history() -> None:
    (history,) = draw_histories(Shape({}, SCHEDULE, operator="table_table_join"), 1, seed=1)
    outputs: list[Output] = [entry.output for entry in play(history).entries]
    assert {output.key for output in outputs} <= {line.key for line in history.lines if isinstance(line, Record)}
