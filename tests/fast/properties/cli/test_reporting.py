"""The option `--report`, and what a check says on GitHub: refused before anything runs, and valid however it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from report_contents import counterexample_of, history_of
from streamproof.properties.checking import check as check_module
from streamproof.properties.checking.report import Report
from streamproof.properties.cli import app, reporting
from streamproof.properties.cli.commands.check import _print_report
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.base import BrokenCase, Comparison, LawResult
from streamproof.properties.laws.case import Case
from streamproof.properties.system import signals
from streamproof.reference.core.errors import StreamproofError

Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `check --only reference` in which each operator is checked by the given function."""
    for name in reporting.GITHUB:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(signals, "leave", lambda: None)

    def call(checked: Callable[[Report, Any], None], *arguments: object) -> int:
        def check_reference(name: str, store: Any, histories: int, seed: int, progress: Any, report: Report, turn: Any):
            report.rounds += 1
            report.results = [LawResult(LAWS["reference"]["fold is meaning"], "it folds", judged=9)]
            checked(report, store)
            report.is_whole = True
            return report

        monkeypatch.setattr(check_module, "check_reference", check_reference)
        given = ("check", "session_windows", "range_aggregate", "--only", "reference", "--findings", tmp_path / "found")
        monkeypatch.setattr(sys, "argv", ["streamproof", *map(str, (*given, *arguments))])
        with pytest.raises(SystemExit) as ended:
            app.main()
        return int(str(ended.value.code))

    return call


def conforming(report: Report, store: Any) -> None:
    pass


def violating(report: Report, store: Any) -> None:
    if report.operator == "session_windows":
        found = counterexample_of(history_of())
        comparison = Comparison(found.expected, found.actual, found.differences)
        report.results[0].violations.append(BrokenCase(Case(found.history), comparison))
        report.found.append((found, store.save(found)))


def interrupted(by: BaseException) -> Callable[[Report, Any], None]:
    def checked(report: Report, store: Any) -> None:
        violating(report, store)
        if report.operator == "session_windows":
            report.results[0].unfinished = True
            raise by

    return checked


def read(folder: Path) -> dict[str, Any]:
    """Return what `report.json` says; the other files are read, so that one which isn't whole fails."""
    HTMLParser().feed((folder / "report.html").read_text())
    assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    JUnitXml.fromstring((folder / "junit.xml").read_text())
    assert (folder / "report.txt").read_text().endswith(".\n")
    content: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return content


def test_a_report_says_what_the_check_says(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(conforming, "--report", tmp_path / "r", "--seed", 7) == 0
    said = read(tmp_path / "r")
    assert said["verdict"] == "conforms"
    assert [check["name"] for check in said["checks"]] == [
        "session_windows, the reference",
        "range_aggregate, the reference",
    ]
    assert said["missing"] == []
    assert said["command"].startswith("streamproof check session_windows range_aggregate --histories 2000 --seed 7")
    assert f"report: {tmp_path / 'r' / 'report.html'}\n" in capsys.readouterr().err


def test_a_report_of_a_violation_has_the_counterexample(run: Run, tmp_path: Path) -> None:
    assert run(violating, "--report", tmp_path / "r") == 1
    (found,) = read(tmp_path / "r")["found"]
    assert found["where"] == "key a, batch 1"
    assert (Path(found["path"]) / "history.jsonl").read_text() == found["history"]


@pytest.mark.parametrize(
    ("by", "why"),
    [(KeyboardInterrupt(), "interrupted"), (StreamproofError("the JVM was killed"), "the JVM was killed")],
)
def test_an_interrupted_check_writes_a_report_that_says_what_is_missing(
    run: Run, tmp_path: Path, by: BaseException, why: str
) -> None:
    assert run(interrupted(by), "--report", tmp_path / "r") == 3
    said = read(tmp_path / "r")
    assert said["missing"] == [
        why,
        "session_windows, the reference: not finished",
        "range_aggregate, the reference: not begun",
    ]
    assert said["verdict"] == "violated"
    assert len(said["found"]) == 1


def test_a_check_that_is_killed_leaves_a_report_that_says_so(run: Run, tmp_path: Path) -> None:
    seen = []

    def looking(report: Report, store: Any) -> None:
        seen.append(read(tmp_path / "r"))

    assert run(looking, "--report", tmp_path / "r") == 0
    assert seen[0]["verdict"] == "inconclusive"
    assert seen[0]["missing"][0] == reporting.RUNNING
    assert seen[0]["missing"][1:] == [
        "session_windows, the reference: not begun",
        "range_aggregate, the reference: not begun",
    ]


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "r"
    (folder / "report.json").mkdir(parents=True)

    def never(report: Report, store: Any) -> None:
        raise AssertionError

    assert run(never, "--report", folder) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: --report")
    assert "name a" in said.err
    assert "Traceback" not in said.err


def test_on_github_a_check_appends_a_summary_and_prints_an_annotation(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert run(violating) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    assert len(lines) == 1
    assert lines[0].startswith(f"::error file={tmp_path}/found/session_windows/changelog-")
    assert summary.read_text().startswith("before\n## ✗ streamproof: violated: 2 checks, 1 violated, 1 conforms\n")


def test_a_summary_that_cannot_be_written_changes_no_verdict(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/proc/none")
    assert run(conforming) == 0
    assert "GITHUB_STEP_SUMMARY: can't be written" in capsys.readouterr().err


def test_the_table_of_laws_says_why_one_is_inconclusive_or_was_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    law = LAWS["spark"]["packing"]
    unmet = LawResult(law, "it holds", ("run alone",), 1)
    results = [unmet, LawResult(law, "it holds"), LawResult(law, "it holds", skipped="skipped: no Java")]
    _print_report(Report("session_windows", results, 0), ())
    said = " ".join(capsys.readouterr().out.split())
    for why in ("it holds (coverage goals not met: run alone)", "it holds (no history judged)", "skipped: no Java"):
        assert why in said
