"""A saved counterexample is replayed by the check that found it, and by the law that it broke there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties.checking import check as check_module
from streamproof.properties.checking.check import check_operators, check_reference
from streamproof.properties.checking.replays import Replayed, replay
from streamproof.properties.checking.report import Report
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.of_operators import FolderStore, saved
from streamproof.properties.laws.all import LAWS, Subject
from streamproof.properties.laws.base import OWN, CannotRecheck, Comparison, Law, Verdict
from streamproof.properties.laws.case import Case
from streamproof.properties.outcomes.outcomes import Grain, Outcome, differences
from streamproof.reference import table_table_join
from streamproof.reference.core.errors import BadInput, MissingTool
from streamproof.reference.core.history import History, parse_history
from streamproof.reference.core.records import Change

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
    known = replace(Counterexample(law="changelog", history=one or history(), seed=7), **changed)
    return FolderStore(folder).write_history(known, {})


def laws_of(folder: Path, subject: Subject, mutant: str | None = None) -> list[str]:
    return [one.law for one in FolderStore(folder).saved(JOIN, subject, mutant)]


def save_some(folder: Path) -> None:
    save(folder, law="changelog")
    save(folder, history(clock="stream_time"), law="table at every cut")
    save(folder, law="state", mutant="forgetful")
    save(folder, law="duckdb", subject="reference")
    save(folder, history(clock="stream_time"), law="kafka", subject="reference")


# Which.


@pytest.mark.parametrize(
    ("subject", "mutant", "laws"),
    [
        ("spark", None, ["changelog"]),
        ("spark", "forgetful", ["changelog", "state"]),
        ("spark", "another", ["changelog"]),
        ("reference", None, ["duckdb", "kafka"]),
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


def check(operator: str, *arguments: Any) -> None:
    check_operators([operator], *arguments)


class Stopped(Exception):
    """The check has gone as far as the test looks."""


def steps_of(run: Any, folder: Path) -> list[str]:
    """The steps of a check up to the first that replays nothing."""
    steps: list[str] = []

    def step(shown: str) -> None:
        steps.append(shown)
        if not shown.startswith("replaying"):
            raise Stopped

    with pytest.raises(Stopped):
        run(JOIN, FolderStore(folder), 4, 0, step)
    return steps[:-1]


def test_what_the_reference_found_is_never_handed_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "spark_session", lambda: None)  # the first step of a query is where it ends
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
        run(JOIN, FolderStore(tmp_path), 4, 0, steps.append)
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
    saved_ones = FolderStore(folder).saved(JOIN, "reference")
    return list(replay(saved_ones, LAWS["reference"], "reference", lambda step: None))


def test_the_reference_asks_the_law_that_was_broken(tmp_path: Path) -> None:
    for law in ("fold is meaning", "duckdb"):
        save(tmp_path, law=law, subject="reference")
    assert [(one.law, comparison.differences) for one, comparison in replayed_by_the_reference(tmp_path)] == [
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

    def until_drawn(step: str) -> None:
        steps.append(step)
        if not step.startswith("replaying"):
            raise KeyboardInterrupt

    report = Report(JOIN, [], 1)
    with pytest.raises(KeyboardInterrupt):
        check_reference(JOIN, FolderStore(tmp_path), 4, 1, until_drawn, report)
    assert report.verdict is Verdict.VIOLATED
    assert {path for _, path in report.found} == set(paths)
    assert {len(one.history.records) for one, _ in report.found} == {3, 6}
    assert {one.seed for one, _ in report.found} == {7}
    assert len(list(saved(tmp_path, JOIN))) == 2


def test_one_that_holds_by_now_is_no_violation_and_covers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(witness: object, histories: object) -> None:
        raise MissingTool("no jars: make some")

    monkeypatch.setattr("streamproof.properties.witnesses.kafka.witness.KafkaWitness.evaluate", missing)
    save(tmp_path, law="duckdb", subject="reference")
    save(tmp_path, history(clock="stream_time"), law="kafka", subject="reference")
    steps: list[str] = []
    report = check_reference(JOIN, FolderStore(tmp_path), 120, 0, steps.append)
    assert "not replayed: no jars: make some" in steps
    assert (report.verdict, report.found) == (Verdict.CONFORMS, [])
    assert report.result("duckdb").judged == 1 + report.result("fold is meaning").judged


def test_a_law_that_the_reference_has_not_is_passed_over_by_name(tmp_path: Path) -> None:
    path = save(tmp_path, law="replay Clock", subject="reference")
    steps: list[str] = []
    saved_ones = FolderStore(tmp_path).saved(JOIN, "reference")
    assert list(replay(saved_ones, LAWS["reference"], "reference", steps.append)) == []
    assert steps[-1] == f"not replayed: {path}: this check doesn't include the law 'replay Clock'"


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
def test_on_spark_one_whose_law_cannot_be_asked_again_is_asked_of_the_changelog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, law: str, asked: list[str]
) -> None:
    calls: list[str] = []
    outcome = Outcome("h", Grain.BATCH)
    comparison = Comparison(("reference", outcome), ("Spark", outcome), differences(outcome, outcome))

    def recheck(law: Law, cases: Sequence[Case], witness: object = OWN) -> list[Comparison]:
        calls.append(law.name)
        if law.name == "partitions":
            raise CannotRecheck("too large")
        return [comparison] * len(cases)

    known = {name: LAWS["spark"][name] for name in ("changelog", "state", "order", "partitions")}
    for one_law in known.values():
        monkeypatch.setattr(type(one_law), "recheck", recheck)
    save(tmp_path, law=law)
    ((one, _),) = replay(FolderStore(tmp_path).saved(JOIN, "spark"), known, "spark", lambda step: None)
    assert (calls, one.law) == (asked, asked[-1])


def test_the_metadata_say_which_check_a_replay_is_of(tmp_path: Path) -> None:
    content = json.loads((save(tmp_path, subject="reference") / "counterexample.json").read_text())
    assert content["subject"] == "reference"
