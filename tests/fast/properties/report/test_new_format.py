"""A new format of reports is one function over `Content`, and one line in `FORMATS`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from report_contents import counterexample_of, history_of
from streamproof.properties.checking.report import Report
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.base import LawResult
from streamproof.properties.report import writing
from streamproof.properties.report.content import Content
from streamproof.properties.report.making import content
from streamproof.properties.report.writing import FORMATS, ReportFormat, write_content


def laws_as_csv(content: Content) -> str:
    """Return a line for each law of each check, and for each counterexample."""
    file = io.StringIO()
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(["checked", "law", "verdict", "histories"])
    lines.writerows([check.name, law.law, law.verdict, law.histories] for check in content.checks for law in check.laws)
    lines.writerows([one.subject, one.law, "differs", one.where] for one in content.found)
    return file.getvalue()


@pytest.fixture(autouse=True)
def with_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FORMATS", {**FORMATS, "laws.csv": ReportFormat(laws_as_csv, "checked,law,verdict,")})


def test_a_report_of_the_gate_is_written_in_the_new_format_too(tmp_path: Path) -> None:
    report = Report("session_windows", [LawResult(LAWS["spark"]["changelog"], judged=9)], 0, is_whole=True)
    report.found.append((counterexample_of(history_of()), Path("found")))
    write_content(tmp_path, content([report]))
    lines = (tmp_path / "laws.csv").read_text().splitlines()
    subject = '"session_windows, on Spark",changelog'
    assert lines[1:] == [f"{subject},conforms,9", f'{subject},differs,"key a, batch 1"']
