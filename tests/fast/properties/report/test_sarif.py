"""Reports as SARIF 2.1.0: the fields that its schema has, and the job's file and line."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest
from report_contents import content_of, found_of, history_of
from streamproof.properties.checking.checked import Checked, LawCount
from streamproof.properties.report.content import Chart, Content, place_of
from streamproof.properties.report.sarif import sarif

FIELDS: dict[str, set[str]] = {
    "": {"version", "$schema", "runs"},
    "runs": {"tool", "invocations", "results"},
    "tool": {"driver"},
    "driver": {"name", "version", "rules"},
    "rules": {"id", "shortDescription"},
    "shortDescription": {"text"},
    "invocations": {"executionSuccessful", "toolExecutionNotifications"},
    "toolExecutionNotifications": {"level", "message"},
    "results": {"ruleId", "ruleIndex", "level", "message", "locations"},
    "message": {"text"},
    "locations": {"physicalLocation"},
    "physicalLocation": {"artifactLocation", "region"},
    "artifactLocation": {"uri"},
    "region": {"startLine"},
}
"""By name, the fields of the schema's objects that a report has; the schema allows no others."""


def objects(value: Any, name: str = "") -> list[tuple[str, dict[str, Any]]]:
    if isinstance(value, list):
        return [one for member in value for one in objects(member, name)]
    if not isinstance(value, dict):
        return []
    return [(name, value), *(one for field, inner in value.items() for one in objects(inner, field))]


def run_of(content: Content) -> dict[str, Any]:
    """Return the one run of a report, whose objects are those of the schema."""
    written = json.loads(sarif(content))
    assert written["version"] == "2.1.0"
    for name, found in objects(written):
        assert {*found} <= FIELDS[name], name
        assert all(isinstance(found[field], str) and found[field] for field in ("text", "id", "uri") if field in found)
        assert found.get("level") in (None, "error", "warning")
    (run,) = written["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len({*rules})
    assert [rules[one["ruleIndex"]] for one in run["results"]] == [one["ruleId"] for one in run["results"]]
    return dict(run)


def test_a_violated_law_is_an_error_and_an_inconclusive_one_a_warning() -> None:
    run = run_of(content_of(found_of(history_of()), missing=["interrupted by SIGINT"]))
    results = [(one["ruleId"], one["level"], one["message"]["text"]) for one in run["results"]]
    assert results == [
        ("changelog", "error", found_of(history_of()).sentence),
        ("duckdb", "warning", "session_windows, on Spark: inconclusive: unmet: gap + 1"),
    ]
    assert run["results"][0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "found/changelog-1/history.jsonl"},
        "region": {"startLine": 1},
    }
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "interrupted by SIGINT"


def test_what_conforms_has_no_result() -> None:
    run = run_of(Content("conforms", [Checked("x", "conforms", [LawCount("a", "b", (), "conforms", 5)])]))
    assert (run["results"], run["invocations"]) == ([], [{"executionSuccessful": True}])


def of_job(name: str, **more: Any) -> dict[str, Any]:
    checks = [Checked(name, "violated", [LawCount("the rules", "", (), "violated", 1, 1)])]
    found = replace(found_of(history_of()), subject=name, law="the rules", **more)
    (result,) = run_of(Content("violated", checks, [found]))["results"]
    return dict(result)


def test_a_job_is_found_at_its_file_and_line() -> None:
    (location,) = of_job("visits (jobs/my visits.py:9)")["locations"]
    place = location["physicalLocation"]
    assert (unquote(place["artifactLocation"]["uri"]), place["region"]) == ("jobs/my visits.py", {"startLine": 9})
    assert " " not in place["artifactLocation"]["uri"]
    (location,) = of_job("a job", file="b.py", line=3)["locations"]
    assert location["physicalLocation"]["region"] == {"startLine": 3}
    assert "locations" not in of_job("visits (/tmp/visits.py:9)"), "a code host knows the files of its repository"


def test_a_counterexample_of_a_specification_and_a_violation_without_one_are_results_too() -> None:
    checks = [Checked("M", "violated", [LawCount("TypeOK", "it holds", (), "violated")])]
    (result,) = run_of(Content("violated", checks, (), [Chart("M", "TypeOK", "x > 0", "", [])]))["results"]
    assert result["message"] == {"text": "x > 0"}
    (result,) = run_of(Content("violated", checks))["results"]
    assert result["message"] == {"text": "M: violated: it holds"}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("visits (jobs.py:3)", ("jobs.py", 3)),
        ("Shop.visits (a b/jobs.py:12)", ("a b/jobs.py", 12)),
        ("jobs/visits.py", ("jobs/visits.py", None)),
        ("jobs/visits.py, query 1 totals", ("jobs/visits.py", None)),
        ("pipeline/spark-pipeline.yml", ("pipeline/spark-pipeline.yml", None)),
        ("session_windows, on Spark", ("", None)),
        ("functools.partial", ("", None)),
    ],
)
def test_the_place_of_a_job_is_in_its_name(name: str, place: tuple[str, int | None]) -> None:
    assert place_of(name) == place
