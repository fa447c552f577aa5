"""Reports of checks of jobs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paths import ROOT
from report_contents import HOSTILE
from streamproof import Inconclusive, JobReport, UpgradeRefused, Violated, write_report
from streamproof.properties.checking.jobs.reports import JudgedMutant, JudgedMutants
from streamproof.properties.counterexamples.of_jobs import counterexample_of
from streamproof.properties.counterexamples.tables import RowAndSide
from streamproof.properties.generators.columns.forms.rows import Row, from_microseconds
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory, Source
from streamproof.properties.outcomes.equality import Equality
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.report.content import Chart
from streamproof.properties.report.making import content, counterexample_found, the_rest
from streamproof.properties.report.writing import to_json
from streamproof.properties.system.arguments import checked
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
    one = counterexample_of(
        job="visits (jobs.py:3)",
        oracle="the rules",
        history=history,
        sources=[CLICKS],
        expected=expected,
        emitted=[[], [came]],
        difference=Difference(1, [wanted], [came]),
        run=RunOptions(),
        unique=["user"],
        seed=4,
        delays_us=None if delay_us is None else {"clicks": delay_us},
    )
    return Violated("violated", one, path=path)


OUTCOMES = [
    JobReport("a (jobs.py:1)", "It holds.", {"the SQL statement": 300}, "end", 290, "keys are real", (), ["late rows"]),
    JobReport("b (jobs.py:2)", "It holds.", {"a restart": 40, "other cuts": 12}, not_checked=["crashes"]),
    violated(),
    Inconclusive("c: no row is late"),
]


def test_what_checks_of_jobs_return_and_raise_is_written(tmp_path: Path) -> None:
    page = write_report(tmp_path / "report", *OUTCOMES)
    said = json.loads((page.parent / "report.json").read_text())
    assert [check["verdict"] for check in said["checks"]] == ["conforms", "conforms", "violated", "inconclusive"]
    assert said["verdict"] == "violated"
    assert said["checks"][0]["notes"] == [
        "290 of the histories have expected rows.",
        "Each history ran in its own query: keys are real.",
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
    with pytest.raises(BadInput, match="a type isn't an outcome of a job's check"):
        write_report(tmp_path, JobReport)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="a str isn't an outcome of a job's check"):
        write_report(tmp_path, "x")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


NINE = Equality(9)
JUDGED = [
    JudgedMutant(f"line {number}", fate, f"why {number}")
    for number, fate in enumerate(("killed", "survived", "killed", "doesn't run", "no difference"))
]
MUTANTS = JudgedMutants("a (jobs.py:1)", "the SQL statement", JUDGED, 4.6)
COMMON: dict[str, Any] = {"not_checked": ["b", "c"], "equality": NINE, "limits": ["d", "e"]}
TEXTS = [
    (
        JobReport("a", "It conforms.", {"as_batch()": 300}, "cuts", 1_290, "it has no key", mutants=MUTANTS, **COMMON),
        """\
It conforms. Compared: the table after each batch; floating-point numbers to 9 digits.
d.
e.
Each history ran in its own query: it has no key.
Not checked: b.
Not checked: c.
2 of the 4 mutants of a (jobs.py:1) that run are killed, expecting the SQL statement; 1 don't run (5 s).
survived: line 1; why 1.
no difference: line 4; why 4.""",
    ),
    (
        JobReport(
            "a", "a: the output doesn't change with", {"a restart": 40, "a crash": 12}, between=("job",), **COMMON
        ),
        """\
a: the output doesn't change with a restart (40 histories), a crash (12 histories). \
Compared: floating-point numbers to 9 digits.
d.
e.
Not checked: b.
Not checked: c.""",
    ),
    (
        JobReport("a", "a: the output doesn't change with", {"a crash": 1}),
        "a: the output doesn't change with a crash (1 histories). Compared: floating-point numbers to 12 digits.",
    ),
    (
        JobReport("a", "It goes on.", {"an upgrade": 30, "another": 29}, "end", counted=["In 3.", "In 4."], **COMMON),
        """\
It goes on. Compared: the table at the end; floating-point numbers to 9 digits.
d.
e.
In 3.
In 4.
Not checked: b.
Not checked: c.""",
    ),
]


@pytest.mark.parametrize(("report", "text"), TEXTS)
def test_a_report_says_all_that_it_has(report: Any, text: str) -> None:
    assert str(report) == text
    # As plain data it has a line for each law, and the same notes.
    notes = text.splitlines()[1:]
    assert [*report.checked.notes][-len(notes) or len(report.checked.notes) :] == notes


def test_a_report_as_plain_data_has_its_laws_their_histories_and_what_was_compared() -> None:
    job, invariants, _, upgrade = (report.checked for report, _ in TEXTS)
    says = "{}; floating-point numbers to 9 digits".format
    assert [(law.law, law.says, law.witnesses, law.histories) for one in (job, upgrade) for law in one.laws] == [
        ("as_batch()", says("the table after each batch"), ("expected", "job"), 300),
        ("an upgrade", says("the table at the end"), ("expected", "job"), 30),
        ("another", says("the table at the end"), ("expected", "job"), 29),
    ]
    assert [(law.law, law.says, law.witnesses, law.histories) for law in invariants.laws] == [
        ("a restart", "", ("job",), 40),
        ("a crash", "", ("job",), 12),
    ]
    every = (job, invariants, upgrade)
    assert [(one.name, one.histories) for one in every] == [("a", 300), ("a", 40), ("a", 30)]
    assert {one.verdict for one in every} == {law.verdict for one in every for law in one.laws} == {"conforms"}
    assert (job.notes[0], upgrade.notes[0]) == ("1,290 of the histories have expected rows.", "d.")


def test_how_else_a_check_ends_is_plain_data_too() -> None:
    found = violated()
    (law,) = found.checked.laws
    assert (found.checked.name, found.checked.verdict, found.checked.histories) == ("visits (jobs.py:3)", "violated", 1)
    assert (law.law, law.says, law.verdict) == (
        "the rules",
        "the rows of each batch, as a bag; floating-point numbers to 12 digits",
        "violated",
    )
    assert found.checked.seeds == "seed 4"
    named, unnamed = Inconclusive("first\nlast", job="a").checked, Inconclusive("first\nlast").checked
    assert [(one.name, one.verdict, one.laws[0].why) for one in (named, unnamed, Inconclusive("").checked)] == [
        ("a", "inconclusive", "first\nlast"),
        ("first", "inconclusive", "first\nlast"),
        ("a job", "inconclusive", ""),
    ]
    assert {law.verdict for one in (named, unnamed) for law in one.laws} == {"inconclusive"}
    refused = UpgradeRefused("message", job="a", cause="another form").checked
    assert (refused.name, refused.verdict, refused.laws[0].law, refused.laws[0].why) == (
        "a",
        "violated",
        "an upgrade",
        "another form",
    )


def fields_of(value: Any, path: str = "") -> set[str]:
    """Return the paths of the fields of JSON, but of objects whose keys are a check's own."""
    if isinstance(value, list):
        return {path, *(one for member in value for one in fields_of(member, f"{path}[]") - {f"{path}[]"})}
    if not isinstance(value, dict) or re.search(r"(arrivals\[\]|\.row|\.met|\.covered)$", path):
        return {path}
    return {one for name, inner in value.items() for one in fields_of(inner, f"{path}.{name}".strip("."))}


def documented() -> set[str]:
    """Return the fields in the table of docs/verdicts.md, in which `.law` stands behind `checks[].laws[].name`."""
    table = (ROOT / "docs/verdicts.md").read_text(encoding="utf-8").split("\n### As JSON\n")[1].split("\n## ")[0]
    found = {"streamproof_report"}
    for cells in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE):
        first = ""
        for name in re.findall(r"`([^`]+)`", cells):
            first = first or name.rpartition(".")[0]
            found.add(f"{first}{name}" if name.startswith(".") else name)
    return found


def test_the_form_of_the_json_is_the_documented_one() -> None:
    chart = Chart("M", "TypeOK", "it holds", "<svg/>", ["one"])
    of_jobs = json.loads(to_json(replace(content([*OUTCOMES, violated()]), charts=[chart], missing=["x"])))
    fields = {
        one
        for one in fields_of(of_jobs)
        if not re.fullmatch(r"checks|found|charts|.*\.(laws|votes|compared|rows)", one)
    }
    assert of_jobs["streamproof_report"] == 1
    assert fields == documented(), "a change of the form is one of docs/verdicts.md, and of FORMAT unless it adds"


def test_the_json_has_the_counterexample_as_rows_and_what_to_add() -> None:
    said = json.loads(to_json(content([*OUTCOMES[:1], violated()])))
    assert said["checks"][0]["not_checked"] == ["late rows"]
    (found,) = said["found"]
    assert (found["file"], found["line"], found["seed"]) == ("jobs.py", 3, 4)
    assert found["rows"] == [
        {"when": "batch 1", "side": "only expected", "row": {"user": "a", "n": 2}},
        {"when": "batch 1", "side": "only emitted", "row": {"user": "a", "n": 1}},
    ]
    assert found["arrivals"][0] == {"input": "clicks", "row": {"user": "a", "at": "2023-11-14T22:13:20Z"}}
    assert [one for one in found["arrivals"] if "input" not in one] == [{"cut": True}]


def test_the_rows_of_a_report_have_values_as_a_history_file_has_them() -> None:
    one = violated().counterexample
    found = counterexample_found(replace(one, rows=[RowAndSide("at the end", "both", {"at": START})]), "a job")
    assert [row.row for row in found.rows] == [{"at": "2023-11-14T22:13:20Z"}]


@pytest.mark.parametrize(
    "outcome",
    [
        JobReport("a", "a conforms.", {"as_batch()": 300}, "cuts", notes=["Note (x): y\n    batch 1: z"]),
        JobReport("a", "a: the output doesn't change with", {"a restart": 40}, notes=["Note (x): y\n    batch 1: z"]),
    ],
    ids=["a check", "invariants"],
)
def test_the_notes_on_the_plan_end_a_report_and_are_in_its_files(outcome: JobReport) -> None:
    assert str(outcome).endswith("\nNote (x): y\n    batch 1: z")
    assert outcome.checked.notes[-1] == "Note (x): y\n    batch 1: z"


def test_the_notes_on_the_plan_are_once_in_a_message_however_many_functions_pass_the_failure_on() -> None:
    @checked
    def inner() -> None:
        failed = Inconclusive("inconclusive: too\x1b few")
        failed.notes = ["Note (x): y"]
        raise failed

    @checked
    def outer() -> None:
        inner()

    with pytest.raises(Inconclusive) as raised:
        outer()
    assert str(raised.value) == "inconclusive: too\\x1b few\nNote (x): y"


def test_the_notes_on_the_plan_of_a_check_that_fails_are_in_its_files() -> None:
    failed = Inconclusive("inconclusive: too few")
    failed.notes = ["Note (x): y"]
    assert (str(failed), failed.checked.notes) == ("inconclusive: too few\nNote (x): y", ["Note (x): y"])


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (
            JobReport("a", "a conforms to sql.", {"sql": 30}, "end", 9, not_checked=["b", "c"], notes=["Note (x): y"]),
            """\
a conforms to sql. Compared: the table at the end; floating-point numbers to 12 digits.
Not checked: b.
Not checked: c.
1 more remarks on what the check didn't cover and on the plan: --verbose.""",
        ),
        (
            JobReport("a", "a: the output doesn't change with", {"a restart": 9, "a crash": 9}, notes=["Note (x): y"]),
            """\
a: the output doesn't change with a restart, a crash (9 histories). Compared: floating-point numbers to 12 digits.
Note (x): y""",
        ),
        (
            JobReport("a", "It goes on.", {"b": 3}, "end", counted=["In 3."], alone="it has no key", limits=["d", "e"]),
            """\
It goes on. Compared: the table at the end; floating-point numbers to 12 digits.
d.
e.
In 3.
Each history ran in its own query: it has no key.""",
        ),
    ],
    ids=["two things to add", "invariants", "limits and counts"],
)
def test_a_brief_report_has_the_limits_and_the_first_things_to_add(report: JobReport, text: str) -> None:
    assert report.brief == text


def test_a_brief_report_of_mutants_has_all_of_them() -> None:
    report = JobReport("a", "It holds.", {"sql": 30}, "end", not_checked=["b", "c", "d"], mutants=MUTANTS)
    assert report.brief == str(report)
