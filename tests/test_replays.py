"""A saved counterexample is replayed by the check that found it, and by the law that it broke there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties import replays
from streamproof.properties.check import check
from streamproof.properties.laws import Verdict
from streamproof.properties.oracle import check_reference
from streamproof.properties.outcomes import Grain, Outcome, differences
from streamproof.properties.recheck import Answer, CannotAsk
from streamproof.properties.replays import Replayed, of_check, replay
from streamproof.properties.spark_witness import Plan
from streamproof.properties.store import Metadata, Subject, save_history, saved
from streamproof.reference import table_table_join
from streamproof.reference.errors import BadInput, MissingTool
from streamproof.reference.histories import History, parse_history
from streamproof.reference.records import Change

JOIN = "table_table_join"
TEXT = """\
{"operator": "table_table_join", "options": {"join": "outer"}, "clock": "batch"}
{"input": "left", "key": "a", "value": 1, "timestamp": 0}
{"input": "right", "key": "a", "value": %s, "timestamp": 0}
{"input": "right", "key": "a", "value": null, "timestamp": 0}
"""


def history(value: int = 2, clock: str = "batch") -> History:
    return replace(parse_history(TEXT % value), clock=clock)


def save(folder: Path, one: History | None = None, **changed: Any) -> Path:
    metadata = replace(Metadata(folder, "changelog", "spark", JOIN, seed=7), **changed)
    return save_history(one or history(), metadata)[0]


def laws_of(folder: Path, subject: Subject, mutant: str | None = None) -> list[str]:
    return [metadata.law for _, metadata in of_check(folder, JOIN, subject, mutant)]


def save_some(folder: Path) -> None:
    save(folder, law="changelog")
    save(folder, history(clock="stream_time"), law="table at every cut")
    save(folder, law="state", mutant="forgetful")
    save(folder, law="duckdb", subject="reference")
    save(folder, history(clock="stream_time"), law="kafka", subject="reference")
    save(folder, law="job's", subject="job")


# Which.


@pytest.mark.parametrize(
    ("subject", "mutant", "laws"),
    [
        ("spark", None, ["changelog"]),
        ("spark", "forgetful", ["changelog", "state"]),
        ("spark", "another", ["changelog"]),
        ("reference", None, ["duckdb", "kafka"]),
        ("job", None, ["job's"]),
    ],
)
def test_a_check_replays_its_own_and_of_mutants_the_one_that_is_checked(
    tmp_path: Path, subject: Subject, mutant: str | None, laws: list[str]
) -> None:
    save_some(tmp_path)
    assert laws_of(tmp_path, subject, mutant) == laws


def test_one_of_an_earlier_version_that_was_saved_anew_counts_once(tmp_path: Path) -> None:
    before = tmp_path / JOIN / "changelog-3-records"
    before.mkdir(parents=True)
    (before / "history.jsonl").write_text(history().to_text())
    save(tmp_path)
    assert len(list(saved(tmp_path, JOIN))) == 2
    assert laws_of(tmp_path, "spark") == ["changelog"]


class Stopped(Exception):
    """The check has gone as far as the test looks."""


def steps_of(run: Any, folder: Path) -> list[str]:
    """The steps of a check up to the first that replays nothing."""
    steps: list[str] = []

    def step(told: str) -> None:
        steps.append(told)
        if not told.startswith("replaying"):
            raise Stopped

    with pytest.raises(Stopped):
        run(JOIN, 4, 0, folder, step)
    return steps[:-1]


def test_what_the_reference_found_is_never_handed_to_spark(tmp_path: Path) -> None:
    save(tmp_path, history(clock="stream_time"), law="fold is meaning", subject="reference")
    save(tmp_path, law="duckdb", subject="reference")
    earlier = tmp_path / JOIN / "fold-is-meaning-3-records"
    earlier.mkdir()
    (earlier / "history.jsonl").write_text(history(5, "stream_time").to_text())
    assert steps_of(check, tmp_path) == []
    assert steps_of(check_reference, tmp_path) == [
        "replaying 1 saved counterexample of 'duckdb'",
        "replaying 2 saved counterexamples of 'fold is meaning'",
    ]


@pytest.mark.parametrize("run", [check, check_reference])
@pytest.mark.parametrize("damaged", ["history.jsonl", "counterexample.json"])
@pytest.mark.parametrize("subject", ["spark", "reference"])
def test_a_damaged_one_stops_either_check_before_its_first_step(
    tmp_path: Path, run: Any, damaged: str, subject: Subject
) -> None:
    path = save(tmp_path, subject=subject, law="duckdb")
    (path / damaged).write_text("{")
    steps: list[str] = []
    with pytest.raises(BadInput, match=rf"{damaged}: .*; or remove the folder {path}, a damaged counterexample"):
        run(JOIN, 4, 0, tmp_path, steps.append)
    assert steps == []


# By which law, and what becomes of it.


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that forgets to retract."""
    right = table_table_join.TableJoin.change

    def change(self: Any, side: str, row: Any, value: Any, timestamp: int) -> list[Change]:
        return [] if side == "right" and value is None else right(self, side, row, value, timestamp)

    monkeypatch.setattr(table_table_join.TableJoin, "change", change)


def replayed_by_the_reference(folder: Path) -> list[Replayed]:
    return list(replay(of_check(folder, JOIN, "reference"), (), lambda step: None, "reference"))


def test_the_reference_asks_the_law_that_was_broken(tmp_path: Path) -> None:
    for law in ("fold is meaning", "duckdb"):
        save(tmp_path, law=law, subject="reference")
    assert [(one.law, one.answer.differences) for one in replayed_by_the_reference(tmp_path)] == [
        ("duckdb", []),
        ("fold is meaning", []),
    ]


@pytest.mark.usefixtures("forgetful")
def test_one_that_still_fails_is_a_violation_that_is_shown_and_not_shrunk(tmp_path: Path) -> None:
    # Two more records than it takes.
    longer = history().with_lines([*history(3).lines, *history(4).lines])
    paths = [
        save(tmp_path, longer, law="fold is meaning", subject="reference"),
        save(tmp_path, law="duckdb", subject="reference"),
    ]
    steps: list[str] = []
    from streamproof.properties.check import Report

    def until_drawn(step: str) -> None:
        steps.append(step)
        if not step.startswith("replaying"):
            raise KeyboardInterrupt

    report = Report(JOIN, [], 1)
    with pytest.raises(KeyboardInterrupt):
        check_reference(JOIN, 4, 1, tmp_path, until_drawn, report)
    assert report.verdict is Verdict.VIOLATED
    assert {path for _, path in report.found} == set(paths)
    assert {len(finding.history.records) for finding, _ in report.found} == {3, 6}
    assert {finding.seed for finding, _ in report.found} == {7}
    assert len(list(saved(tmp_path, JOIN))) == 2


@pytest.mark.exhaustive
def test_one_that_holds_by_now_is_no_violation_and_covers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(histories: object) -> None:
        raise MissingTool("no jars: make some")

    monkeypatch.setattr("streamproof.properties.kafka_witness.answer", missing)
    save(tmp_path, law="duckdb", subject="reference")
    save(tmp_path, history(clock="stream_time"), law="kafka", subject="reference")
    steps: list[str] = []
    report = check_reference(JOIN, 120, 0, tmp_path, steps.append)
    assert "not replayed: no jars: make some" in steps
    assert (report.verdict, report.found) == (Verdict.CONFORMS, [])
    assert report.results[0].judged == 1 + report.results[1].judged


def test_a_law_that_the_reference_has_not_is_passed_over_by_name(tmp_path: Path) -> None:
    path = save(tmp_path, law="replay Clock", subject="reference")
    steps: list[str] = []
    assert list(replay(of_check(tmp_path, JOIN, "reference"), (), steps.append, "reference")) == []
    assert steps[-1].startswith(f"not replayed: {path}: there is no law 'replay Clock' of the reference")


@pytest.mark.parametrize(
    ("law", "asked"),
    [
        ("changelog", ["changelog"]),
        ("state", ["state"]),
        ("unheard of", ["changelog"]),
        ("order", ["changelog"]),
        ("partitions", ["partitions", "partitions", "changelog"]),
    ],
)
def test_on_spark_one_whose_law_cannot_be_asked_again_is_held_to_the_changelog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, law: str, asked: list[str]
) -> None:
    calls: list[str] = []
    outcome = Outcome("h", Grain.BATCH)
    answer = Answer(("reference", outcome), ("Spark", outcome), differences(outcome, outcome))

    def answers_again(law: str, histories: Sequence[History], plan: Plan, subject: Subject) -> list[Answer]:
        calls.append(law)
        if law == "partitions":
            raise CannotAsk("too large")
        return [answer] * len(histories)

    monkeypatch.setattr(replays, "answers_again", answers_again)
    monkeypatch.setattr(
        replays,
        "answer_again",
        lambda law, one, plan, subject="spark", original=None: answers_again(law, [one], plan, subject)[0],
    )
    save(tmp_path, law=law)
    known = ("changelog", "state", "order", "partitions")
    (one,) = replay(of_check(tmp_path, JOIN, "spark"), known, lambda step: None)
    assert (calls, one.law) == (asked, asked[-1])


def test_the_metadata_say_which_check_a_replay_is_of(tmp_path: Path) -> None:
    content = json.loads((save(tmp_path, subject="reference") / "counterexample.json").read_text())
    assert content["subject"] == "reference"
