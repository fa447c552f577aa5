"""Reports of checks of jobs."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from report_contents import HOSTILE
from streamproof import Inconclusive, InvariantsReport, JobReport, Violated, write_report
from streamproof.properties.counterexamples.of_jobs import JobCounterexample
from streamproof.properties.generators.columns.forms.rows import Row, from_microseconds
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory, Source
from streamproof.properties.laws.expected.comparison import RowDifference
from streamproof.properties.report.making import content, the_rest
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.reference.core.errors import BadInput

SECOND = 1_000_000
START = from_microseconds(1_700_000_000 * SECOND)
CLICKS = Source("clicks", pa.schema([("user", pa.string()), ("at", pa.timestamp("us", "UTC"))]), "at", ("user",))


def violated(user: str = "a", delay_us: int | None = 5 * SECOND, path: Path | None = None) -> Violated:
    def at(seconds: int) -> Arrival:
        return Arrival("clicks", {"user": user, "at": START + timedelta(seconds=seconds)})

    wanted: Row = {"user": user, "n": 2}
    came: Row = {"user": user, "n": 1}
    history = JobHistory(((at(0), at(60)), (at(1), at(90))))
    expected = Expected("batches", [[], [wanted]])
    one = JobCounterexample(
        job="visits (jobs.py:3)",
        oracle="the rules",
        history=history,
        sources=[CLICKS],
        expected=expected,
        emitted=[[], [came]],
        difference=RowDifference(1, [wanted], [came]),
        run=RunOptions(),
        unique=["user"],
        seed=4,
        delays_us=None if delay_us is None else {"clicks": delay_us},
    )
    return Violated("violated", one, path=path)


OUTCOMES = [
    JobReport("a (jobs.py:1)", "the SQL statement", 300, 290, "end", "keys are real", ["late rows"]),
    InvariantsReport("b (jobs.py:2)", {"a restart": 40, "other cuts": 12}, ["crashes"]),
    violated(),
    Inconclusive("c: no row is late"),
]


def test_what_checks_of_jobs_return_and_raise_is_written(tmp_path: Path) -> None:
    page = write_report(tmp_path / "report", *OUTCOMES)
    said = json.loads((page.parent / "report.json").read_text())
    assert [check["verdict"] for check in said["checks"]] == ["conforms", "conforms", "violated", "inconclusive"]
    assert said["verdict"] == "violated"
    assert said["checks"][0]["notes"] == [
        "Rows were expected on 290 of them.",
        "Each history ran in a query of its own: keys are real.",
        "Not checked: late rows.",
    ]
    assert [law["law"] for law in said["checks"][1]["laws"]] == ["a restart", "other cuts"]
    assert "c: no row is late" in (page.parent / "junit.xml").read_text()


def test_a_job_s_counterexample_has_its_rows_its_batch_and_its_examples() -> None:
    (found,) = content([*OUTCOMES[:2], violated(path=Path("saved/job-1"))]).found
    assert found.path == "saved/job-1"
    assert found.where == "batch 1"
    assert [(line.when, line.expected, line.actual) for line in found.compared if line.differ] == [
        ("batch 1", "user 'a', n 2", "user 'a', n 1"),
    ]
    assert "examples=[r'''\n" in found.test
    assert all(line in found.test for line in found.history.splitlines())


def test_rows_behind_the_watermark_are_marked_where_it_is_known() -> None:
    steps = content([violated()]).found[0].timeline
    assert steps.clock == "watermark"
    assert [step.remark for step in steps.steps] == ["", "", "behind the watermark", ""]
    unknown = content([violated(delay_us=None)]).found[0].timeline
    assert unknown.clock == "event time reached"
    assert [step.remark for step in unknown.steps] == [""] * 4


def test_times_are_drawn_as_dates(tmp_path: Path) -> None:
    page = write_report(tmp_path, violated()).read_text()
    assert "event time, UTC" in page
    assert "2023-11-14 22:14:50" in page


@pytest.mark.parametrize("user", [key for key in HOSTILE if "\ud800" not in key])
def test_rows_of_users_are_escaped(tmp_path: Path, user: str) -> None:
    page = write_report(tmp_path, violated(user)).read_text()
    assert not any(tag in page for tag in ("<script", "<img", "<h1>owned", "\x1b", "\u202e"))


def test_a_check_that_could_not_run_is_named_and_the_whole_does_not_conform(tmp_path: Path) -> None:
    page = write_report(tmp_path, OUTCOMES[0], BadInput("mode is 'x': use one of append, update"))
    said = json.loads((page.parent / "report.json").read_text())
    assert (said["verdict"], [check["verdict"] for check in said["checks"]]) == (
        "inconclusive",
        ["conforms", "not checked"],
    )
    assert said["missing"] == ["a check: could not run: mode is 'x': use one of append, update"]
    assert "1 conforms, 1 not checked" in (page.parent / "report.txt").read_text()
    assert "Could not run: mode is &#39;x&#39;: use one of append, update" in page.read_text()


def test_checks_that_were_ended_do_not_conform() -> None:
    assert content(OUTCOMES[:1]).verdict == "conforms"
    assert content([*OUTCOMES[:1], *the_rest("interrupted")]).verdict == "inconclusive"


def test_what_is_no_outcome_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a type is no outcome of a job's check"):
        write_report(tmp_path, JobReport)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="a str is no outcome of a job's check"):
        write_report(tmp_path, "x")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
