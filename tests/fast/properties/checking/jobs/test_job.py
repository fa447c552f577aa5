"""A job is described once: each check of it in one call is the same as the method of its description."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from memory_jobs import CLICKS, MemoryRunner, copy
from streamproof import BadInput, Input, Job, Violated, check_job, invariants, replay, upgrade
from streamproof.properties.checking.jobs import arguments, job
from streamproof.properties.laws.expected.oracles import BatchOracle, JobOracle


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "Runner", MemoryRunner)


def without_the_last(batches: Any) -> Any:
    return [rows[:-1] for rows in batches]


def test_a_description_is_asked_several_things(tmp_path: Path) -> None:
    described = Job(copy, CLICKS, seconds=60)
    assert described.check(expect=BatchOracle(copy), histories=20).histories == 20
    with pytest.raises(Violated) as raised:
        Job(without_the_last, CLICKS).check(expect=BatchOracle(copy), histories=20, folder=tmp_path)
    assert raised.value.path is not None


def test_a_check_in_one_call_is_a_check_of_the_description() -> None:
    asked: dict[str, Any] = {"expect": BatchOracle(copy), "histories": 20, "seed": 3}
    assert check_job(copy, CLICKS, digits=6, **asked) == Job(copy, CLICKS, digits=6).check(**asked)
    report = invariants(copy, CLICKS, histories=10, without=["a crash"])
    assert report == Job(copy, CLICKS, without=["a crash"]).invariants(histories=10)
    assert "a crash" not in report.laws
    assert report.not_checked[0] == "a crash: without= leaves it out"
    assert "a restart" in report.laws


def test_the_earlier_version_has_its_own_mode_and_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr(job, "check_upgrade", lambda options, *arguments: called.append(arguments))
    settings = {"spark.sql.session.timeZone": "UTC"}
    upgrade(copy, copy, CLICKS, old_mode="update", old_settings=settings, histories=7)
    Job(copy, CLICKS).upgrade(from_=Job(copy, CLICKS, mode="update", settings=settings), histories=7)
    (earlier, expect, asked, *_), other = called
    assert called == [other, other]
    assert (earlier, expect, asked) == ((copy, "update", settings), None, {"histories": 7})


def test_versions_with_other_inputs_are_refused() -> None:
    with pytest.raises(BadInput, match="the earlier version has other inputs: give both versions the same Input"):
        Job(copy, CLICKS).upgrade(from_=Job(copy, Input("user string, at timestamp", key="user")))


def test_a_run_in_production_has_its_own_trigger_and_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []
    monkeypatch.setattr(job, "replay_run", lambda options, *arguments: runs.append(options))
    Job(copy, CLICKS, mode="update", trigger="default", alone=True).replay("checkpoint", output="out")
    replay("checkpoint", copy, CLICKS, output="out", seconds=5)
    assert [(one.run.trigger, one.run.mode, one.run.seconds, one.alone) for one in runs] == [
        ("available_now", "update", 600, False),
        ("available_now", "append", 5, False),
    ]


def test_the_arguments_in_one_call_are_those_of_the_description_and_of_its_methods() -> None:
    def keywords(function: Any) -> set[str]:
        parameters = inspect.signature(function).parameters.values()
        return {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}

    assert keywords(check_job) == keywords(Job) | keywords(Job.check)
    assert keywords(invariants) == keywords(Job) | keywords(Job.invariants)
    assert keywords(upgrade) - {"old_mode", "old_settings"} == keywords(Job) | keywords(Job.upgrade) - {"from_"}
    assert keywords(replay) == keywords(Job) | keywords(Job.replay)
    assert keywords(Job) == {*arguments.Described.__annotations__}


def test_an_unknown_argument_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(TypeError, match=r"Job: got an unexpected keyword argument 'modes'; it takes job, inputs,"):
        Job(copy, CLICKS, modes="append")  # type: ignore[call-arg]
    with pytest.raises(BadInput, match=r"Job: mode is 'appendix': give one of append, update, complete or None"):
        Job(copy, CLICKS, mode="appendix")  # type: ignore[arg-type]


def test_a_check_first_runs_the_examples_that_it_is_given() -> None:
    row = '{"user": "a", "at": "2024-07-15T12:00:00Z", "amount": 1}'
    example = f'{{"job": "h0", "inputs": {{"clicks": "{CLICKS.schema}"}}}}\n{{"input": "clicks", "row": {row}}}'
    with pytest.raises(Violated, match="1 of 1 histories, saved or given as examples, still differ"):
        Job(without_the_last, CLICKS).check(expect=BatchOracle(copy), histories=20, examples=[example])
    with pytest.raises(Violated, match="of 20 histories differ"):
        Job(without_the_last, CLICKS).check(expect=BatchOracle(copy), histories=20)


def test_an_upgrade_from_another_pyspark_names_it_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(job, "require_earlier", lambda version: asked.append(version))
    monkeypatch.setattr(job, "require_named", lambda earlier, version: asked.append((earlier, version)))
    monkeypatch.setattr(job, "check_upgrade", lambda *arguments: asked.append(arguments[4:]))
    Job(copy, CLICKS).upgrade(from_=Job(copy, CLICKS), from_pyspark="4.2", repartition=3)
    assert asked == ["4.2", (copy, "4.2"), ("4.2", 3)]
    asked.clear()
    Job(copy, CLICKS).upgrade(from_=Job(copy, CLICKS))
    assert asked == [(None, None)]


def test_mutants_are_checked_after_the_job_and_without_the_columns_that_each_run_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    numbers = iter(range(10_000))

    def numbered(batches: Any) -> Any:
        return [[{**row, "n": next(numbers)} for row in rows] for rows in batches]

    def check(options: Any, expect: Any, histories: int) -> str:
        asked.append((options.without, histories))
        return "the mutants"

    monkeypatch.setattr(job, "check_mutants", check)
    described = Job(numbered, CLICKS)
    oracle = JobOracle(job=numbered)
    assert described.check(expect=oracle, histories=20).mutants is None
    assert asked == []
    assert described.check(expect=oracle, histories=20, mutants=True).mutants == "the mutants"
    assert described.mutants(expect=oracle, histories=20) == "the mutants"
    assert asked == [(frozenset({"n"}), 20)] * 2
