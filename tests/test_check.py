"""The gate on real Spark: it conforms, and a finding is told, shrunk, kept and replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.check import Report, check
from streamproof.properties.laws import LAWS, Verdict
from streamproof.properties.mutants.session_windows import MUTANTS
from streamproof.properties.situations import SESSION_SITUATIONS
from streamproof.properties.spark_witness import Plan


@pytest.fixture(scope="module")
def report(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return check(histories=400, seed=1, folder=tmp_path_factory.mktemp("findings"))


@pytest.mark.parametrize("law", LAWS)
def test_the_operator_conforms_to_the_law(report: Report, law: str) -> None:
    result = next(result for result in report.results if result.law.name == law)
    assert (result.verdict, result.missing) == (Verdict.CONFORMS, [])


def test_every_situation_came_up(report: Report) -> None:
    assert [name for name in SESSION_SITUATIONS if not report.situations[name]] == []


def test_the_verdict_is_that_of_all_laws(report: Report) -> None:
    assert report.verdict is Verdict.CONFORMS


@pytest.fixture(scope="module")
def seeded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    folder = tmp_path_factory.mktemp("findings")
    plan = Plan(logic=MUTANTS["one_neighbour"].logic, mutant="one_neighbour")
    return check(histories=100, seed=1, folder=folder, plan=plan), folder


def test_a_seeded_bug_makes_the_verdict_violated(seeded: tuple[Report, Path]) -> None:
    assert seeded[0].verdict is Verdict.VIOLATED


def test_the_finding_is_shrunk_to_the_merge_of_three(seeded: tuple[Report, Path]) -> None:
    finding, _ = seeded[0].found[0]
    assert (finding.law, finding.confirmed, len(finding.history.records)) == ("changelog", True, 3)


def test_the_finding_is_on_disk_with_its_account_and_a_test(seeded: tuple[Report, Path]) -> None:
    finding, folder = seeded[0].found[0]
    assert folder == seeded[1] / "session_windows" / finding.name
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "the larger one is gone"
    assert sorted(path.name for path in folder.iterdir()) == [
        "counterexample.json",
        "finding.txt",
        "history.jsonl",
        f"test_{finding.name.replace('-', '_')}.py",
    ]


def test_the_test_on_disk_fails_with_the_mutant_that_it_names_and_passes_without_it(
    seeded: tuple[Report, Path],
) -> None:
    (path,) = seeded[0].found[0][1].glob("test_*.py")
    code = path.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(code, str(path), "exec"), names)
    (name,) = [name for name in names if name.startswith("test_")]
    with pytest.raises(AssertionError) as failed:
        names[name]()
    assert str(failed.value).startswith(seeded[0].found[0][0].sentence)
    exec(compile(code.replace(", mutant='one_neighbour'", ""), str(path), "exec"), names)
    names[name]()


def test_a_saved_finding_is_replayed_first_and_is_enough_to_violate(seeded: tuple[Report, Path]) -> None:
    steps: list[str] = []
    plan = Plan(logic=MUTANTS["one_neighbour"].logic, mutant="one_neighbour")

    def stop_at_the_second(step: str) -> None:
        steps.append(step)
        if len(steps) > 1:
            raise KeyboardInterrupt

    interrupted = Report("session_windows", [], 2)
    with pytest.raises(KeyboardInterrupt):
        check(histories=10, seed=2, folder=seeded[1], progress=stop_at_the_second, plan=plan, report=interrupted)
    assert steps[0] == "replaying 1 saved counterexample of 'changelog'"
    assert interrupted.verdict is Verdict.VIOLATED


def test_laws_whose_situations_never_came_up_are_inconclusive() -> None:
    interrupted = Report("session_windows", [], 0)

    def stop(step: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(histories=10, folder=Path("nowhere"), progress=stop, report=interrupted)
    assert {result.verdict for result in interrupted.results} == {Verdict.INCONCLUSIVE}
