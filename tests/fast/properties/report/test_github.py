"""What a check says on GitHub: nothing that users wrote is markup or a workflow command of its own."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from report_contents import HOSTILE, content_of, found_of, history_of
from streamproof.properties.checking.checked import Checked
from streamproof.properties.report.content import Content
from streamproof.properties.report.github import announce, commands, summary


@pytest.mark.parametrize("key", HOSTILE)
def test_nothing_that_users_wrote_is_markup_in_a_summary(key: str) -> None:
    found = replace(found_of(history_of()), sentence=key, actual_by=key)
    hostile = summary(content_of(found, name=key))
    plain = summary(content_of(replace(found, sentence="x", actual_by="x"), name="x"))
    for mark in "<>`*[]&":
        bare = hostile.replace("&#", "")
        assert bare.count(mark) == plain.replace("&#", "").count(mark), mark
    assert len(hostile.splitlines()) == len(plain.splitlines())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", hostile)
    rows = [line.count("|") for line in hostile.splitlines() if line.startswith("|")]
    assert rows == [line.count("|") for line in plain.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("key", HOSTILE)
def test_a_command_is_one_line_whatever_users_wrote(key: str) -> None:
    found = replace(found_of(history_of()), sentence=key, law=key, path=key)
    said = list(commands(content_of(found)))
    assert all(line.startswith(("::error ", "::warning ")) for line in said)
    assert not any(re.search("[\x00-\x1f\x7f-\x9f]", line) for line in said)
    properties = said[0].removeprefix("::error ").partition("::")[0].split(",")
    assert [one.partition("=")[0] for one in properties] == ["file", "title"]


def test_a_command_is_escaped_as_github_demands() -> None:
    found = replace(found_of(history_of()), sentence="100%\r\nof: a, b", path="a,b:c%", law="l")
    (line,) = commands(content_of(found))
    subject = "streamproof%3A session_windows%2C on Spark breaks l"
    assert line == f"::error file=a%2Cb%3Ac%25,title={subject}::100%25\\r%0Aof: a, b"


def test_the_annotation_of_a_job_is_at_its_line() -> None:
    (line,) = commands(content_of(replace(found_of(history_of()), file="jobs/visits.py", line=9)))
    assert line.startswith("::error file=jobs/visits.py,line=9,title=")


def test_an_inconclusive_check_is_a_warning() -> None:
    said = Content("inconclusive", [Checked("x", "inconclusive", [], unfinished="not begun")])
    assert list(commands(said)) == ["::warning title=streamproof%3A x::inconclusive: not begun"]


def test_a_summary_says_verdicts_counts_and_the_counterexample() -> None:
    said = unescape(summary(content_of(found_of(history_of()), missing=["interrupted"])))
    assert "- missing: interrupted" in said
    assert "| session_windows, on Spark | changelog | ✗ violated | 100 | 34 |" in said
    assert "| ≠ | batch 1 | a@[30,30]=1 |  |" in said


def test_a_summary_is_short_however_much_was_found() -> None:
    found = replace(found_of(history_of()), sentence="x" * 100_000)
    assert len(summary(content_of(*[found] * 500))) < 100_000


def test_only_what_the_environment_asks_for_is_said(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    assert announce(content_of(found_of(history_of())), {}) == []
    assert announce(content_of(), {"GITHUB_STEP_SUMMARY": str(path)}) == []
    assert "streamproof" in path.read_text()
    assert len(announce(content_of(found_of(history_of())), {"GITHUB_ACTIONS": "true"})) == 1
