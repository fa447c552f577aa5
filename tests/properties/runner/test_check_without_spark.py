"""The gate's loop over operators, with stand-ins for what runs: what is reported when, and what a failure leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamproof.properties.laws.runs import Sample
from streamproof.properties.report.counterexamples import FolderStore
from streamproof.properties.runner import check as check_module
from streamproof.properties.runner.check import Check, check_operators, check_reference
from streamproof.properties.runner.report import Report

NAMES = ["session_windows", "range_aggregate"]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the run of samples: returns the operators' names, one for each sample that was judged."""
    names: list[str] = []

    def judge(self: Check, sample: Sample) -> None:
        names.append(sample.registration.name)

    monkeypatch.setattr(check_module, "judge_pools", lambda *arguments: None)
    monkeypatch.setattr(Check, "judge", judge)
    return names


def test_each_report_is_ready_as_soon_as_the_last_sample_of_its_operator_is_judged(
    judged: list[str], tmp_path: Path
) -> None:
    seen: list[tuple[str, bool, list[str]]] = []
    check_operators(
        NAMES,
        FolderStore(tmp_path),
        10,
        ready=lambda report: seen.append((report.operator, report.is_whole, sorted(set(judged)))),
    )
    assert seen == [("session_windows", True, NAMES[:1]), ("range_aggregate", True, sorted(NAMES))]


def test_what_ends_a_check_leaves_those_whole_that_were_done(judged: list[str], tmp_path: Path) -> None:
    reports: dict[str, Report] = {}

    def fail(report: Report) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_operators(NAMES, FolderStore(tmp_path), 10, reports=reports, ready=fail)
    for name, whole in zip(NAMES, (True, False), strict=True):
        assert reports[name].results
        assert [result.unfinished for result in reports[name].results] == [not whole] * len(reports[name].results)


def test_the_report_of_a_reference_is_whole_when_its_last_sample_is_judged(judged: list[str], tmp_path: Path) -> None:
    assert check_reference("session_windows", FolderStore(tmp_path), 10).is_whole
    assert set(judged) == {"session_windows"}
