from __future__ import annotations

import json
from pathlib import Path

import pytest
from paths import GOLDEN
from streamproof.properties.outcomes.outcomes import Outcome
from streamproof.properties.report.recordings import compare_recorded, drawn, record, recorded, recording, refuse_others
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History, parse_history
from streamproof.reference.core.play import play

OF_KAFKA = ("session_windows", "stream_stream_join", "stream_table_join", "table_table_join", "table_aggregate")
OF_KAFKA += ("windowed_table", "foreign_key_join")


def reference(histories: object) -> list[Outcome]:
    return [Outcome.of_play(history.name, play(history)) for history in histories]  # type: ignore[attr-defined]


def text_of(histories: list[History], seed: int | None = None) -> str:
    """A recording of what the reference answers."""
    return recording("reference", histories, reference(histories), seed)


def some(operator: str = "table_table_join", count: int = 6) -> list[History]:
    profiles = drawn(operator, count, 1, "stream_time", lambda history: None)
    return [history for histories in profiles.values() for history in histories]


def test_the_reference_gives_the_recorded_answers_of_the_real_kafka() -> None:
    comparison = compare_recorded(sorted(GOLDEN.glob("*.jsonl")), reference)
    assert comparison.mismatches == []
    assert comparison.histories >= 700
    assert set(comparison.divergences) <= {
        "late-records-join",
        "null-within-grace",
        "null-emitted-late",
        "zero-window",
        "closed-pair-emitted-twice",
        "closed-session-revised",
    }


@pytest.mark.parametrize("operator", OF_KAFKA)
def test_at_least_a_hundred_answers_of_kafka_are_recorded_for_each_operator_that_it_has(operator: str) -> None:
    of_operator = [entry for path in GOLDEN.glob(f"{operator}-*.jsonl") for entry in recorded(path)]
    assert len(of_operator) >= 100
    assert {on for on, _, _ in of_operator} == {"kafka"}


def test_a_divergence_excuses_a_recorded_kafka_alone(tmp_path: Path) -> None:
    path = GOLDEN / "stream_stream_join-inner.jsonl"
    assert compare_recorded([path], reference).divergences
    claimed = tmp_path / "claimed.jsonl"
    claimed.write_text(path.read_text().replace('"on": "kafka"', '"on": "spark"'))
    assert compare_recorded([claimed], reference).mismatches


def test_histories_that_a_witness_refuses_are_not_recorded() -> None:
    profiles = drawn("table_table_join", 6, 1, "batch", lambda history: "no" if history.name == "h0" else None)
    assert all(
        history.name != "h0" and history.clock == "batch" for of_profile in profiles.values() for history in of_profile
    )
    assert drawn("table_table_join", 6, 1, "batch", lambda history: "no") == {}


def test_a_recording_says_its_seed(tmp_path: Path) -> None:
    histories = some()
    record(tmp_path / "r.jsonl", text_of(histories, 5))
    assert {json.loads(line)["seed"] for line in (tmp_path / "r.jsonl").read_text().splitlines()} == {5}


def test_a_recording_of_an_earlier_version_without_a_seed_is_equal_to_the_same_with_one(tmp_path: Path) -> None:
    histories, path = some(), tmp_path / "r.jsonl"
    path.write_text(text_of(histories))
    assert refuse_others({path: text_of(histories, 5)}, 5) == [path]
    with pytest.raises(BadInput, match="with an unknown seed"):
        refuse_others({path: text_of(histories[1:], 5)}, 5)


def test_line_separators_of_other_alphabets_end_no_line(tmp_path: Path) -> None:
    text = '{"operator": "table_table_join", "options": {}}\n' + json.dumps(
        {"input": "left", "key": "a\u2028\x85b", "value": "\u2028", "timestamp": 0}
    )
    histories = [parse_history(text)]
    record(tmp_path / "r.jsonl", text_of(histories))
    assert compare_recorded([tmp_path / "r.jsonl"], reference).mismatches == []
