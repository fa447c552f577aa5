from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties.checking.jobs import job as of_jobs
from streamproof.properties.counterexamples.of_jobs import SAVED, folder_of
from streamproof.properties.testing import pytest_plugin
from suites import Ran, run_suite


def test_the_plugin_is_found_by_pytest() -> None:
    (found,) = [entry for entry in entry_points(group="pytest11") if entry.name == "streamproof"]
    assert found.load() is pytest_plugin


def test_the_fixture_is_the_function_that_checks_a_job_with_a_folder_for_the_test(
    check_job: Callable[..., None], request: pytest.FixtureRequest
) -> None:
    assert check_job.__wrapped__ is of_jobs.check_job  # type: ignore[attr-defined]
    assert pytest_plugin.running_test() == request.node.nodeid


def test_each_test_has_a_folder_of_its_own_below_the_root_of_the_tests(tmp_path: Path) -> None:
    tests = ["tests/test_a.py::test_b[x/y]", "tests/test_a.py::test_b[x-y]", "tests/../x::y", "t" * 500]
    folders = {folder_of(test, tmp_path / SAVED) for test in tests}
    assert len(folders) == len(tests)
    assert {folder.parent for folder in folders} == {tmp_path / ".streamproof" / "jobs"}
    assert all(len(folder.name) < 100 for folder in folders)


def test_the_list_of_fixtures_says_what_the_fixture_is(tmp_path: Path) -> None:
    code = """
import sys, pytest
before = set(sys.modules)
code = pytest.main(["--fixtures", "-q", "-p", "no:cacheprovider", sys.argv[1]])
print("LOADED", "pyspark" in sys.modules, "pandas" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert "check_job [session scope]" in done.stdout
    assert "`streamproof.check_job`, which saves the counterexamples" in done.stdout
    # A suite that doesn't use the fixture must not pay for Spark.
    assert "LOADED False False" in done.stdout


CONFTEST = """\
from streamproof import BadInput, Inconclusive, JobReport
import streamproof.properties.checking.jobs.job as of_jobs


def check_job(job, *inputs, expect, histories=300, seed=0, seconds=120.0, folder=None):
    if expect == "inconclusive":
        raise Inconclusive("inconclusive: too few")
    if expect == "refused":
        raise BadInput("the columns can't be read: rename them")
    said = f"{histories} histories, seed {seed}, {seconds:g} s"
    return JobReport(said, f"{said}.", {"expected": 9}, "batches", 9)


of_jobs.check_job = check_job
"""
SUITE = """\
import pytest


def test_its_own_number(check_job):
    check_job(None, expect=1, histories=11)


def test_another(check_job):
    check_job(None, expect=1)


@pytest.mark.xfail
def test_unsure(check_job):
    check_job(None, expect="inconclusive")
"""
CONFORMING = """\
import pytest
from streamproof import BadInput


def test_right(check_job):
    check_job(None, expect=1)

"""


def suite(folder: Path, *options: str, tests: str = SUITE) -> Ran:
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "test_jobs.py").write_text(tests, encoding="utf-8")
    return run_suite(folder, ["-p", "no:cacheprovider", *options, "test_jobs.py"])


@pytest.mark.parametrize(
    ("options", "own", "other"),
    [
        ([], "11 histories, seed 0, 120 s", "300 histories, seed 0, 120 s"),
        (["--streamproof-profile", "quick"], "11 histories, seed 0, 120 s", "50 histories, seed 0, 120 s"),
        (["--streamproof-profile=thorough"], "11 histories, seed 0, 900 s", "2000 histories, seed 0, 900 s"),
        (["-o", "streamproof_profile=quick"], "11 histories, seed 0, 120 s", "50 histories, seed 0, 120 s"),
        (
            ["--streamproof-histories=7", "--streamproof-seed=3", "--streamproof-seconds=5"],
            "7 histories, seed 3, 5 s",
            "7 histories, seed 3, 5 s",
        ),
    ],
)
def test_options_go_before_what_a_test_says_and_profiles_after(
    tmp_path: Path, options: list[str], own: str, other: str
) -> None:
    lines = suite(tmp_path, "-v", *options).stdout.splitlines()
    shown = {line.rstrip(":"): lines[number + 1] for number, line in enumerate(lines) if line.endswith(":")}
    assert shown["test_jobs.py::test_its_own_number"].strip().startswith(own)
    assert shown["test_jobs.py::test_another"].strip().startswith(other)


def test_a_suites_report_has_every_check(tmp_path: Path) -> None:
    done = suite(tmp_path, "--streamproof-report", "out")
    assert "streamproof's report: out/report.html" in done.stdout
    text = (tmp_path / "out" / "report.txt").read_text(encoding="utf-8")
    assert "11 histories" in text
    assert "too few" in text


def reported(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    return found


FAILING = {
    "def test_a(check_job):\n    check_job(None, expect='refused')": "the columns can't be read: rename them",
    "def test_b():\n    raise BadInput('no job')": "no job",
    "def test_c(check_job):\n    assert check_job(None, expect=1).expecting > 9": "AssertionError: assert 9 > 9",
    "@pytest.fixture\ndef job():\n    1 / 0\ndef test_d(job, check_job): ...": "ZeroDivisionError: division by zero",
    "@pytest.mark.xfail\ndef test_e(check_job):\n    check_job(None, expect='refused')": "the columns can't be read",
}


def test_a_report_names_the_checks_that_could_not_run_and_does_not_say_conforms(tmp_path: Path) -> None:
    suite(tmp_path, "--streamproof-report", "out", tests=CONFORMING + "\n".join(FAILING))
    found = reported(tmp_path)
    assert found["verdict"] == "inconclusive"
    assert [check["verdict"] for check in found["checks"] if check["name"].startswith("test_jobs.py::")] == [
        "not checked"
    ] * len(FAILING)
    for test, line, why in zip("abcde", found["missing"], FAILING.values(), strict=True):
        assert line.startswith(f"test_jobs.py::test_{test}: could not run: {why}")
    assert (tmp_path / "out" / "junit.xml").read_text(encoding="utf-8").count('type="missing"') == len(FAILING)


def test_a_refusal_that_a_test_expects_is_no_check_that_could_not_run(tmp_path: Path) -> None:
    refused = "def test_x(check_job):\n    with pytest.raises(BadInput):\n        check_job(None, expect='refused')\n"
    skipped = "def test_y(check_job):\n    pytest.skip('not here')\n"
    suite(tmp_path, "--streamproof-report", "out", tests=CONFORMING + refused + skipped)
    assert reported(tmp_path)["verdict"] == "conforms"
    # What stands there from an earlier run is replaced, even where nothing can be collected.
    suite(tmp_path, "--streamproof-report", "out", tests="import nothing_of_that_name\n")
    assert reported(tmp_path)["verdict"] == "inconclusive"
    assert reported(tmp_path)["missing"] == ["the rest: pytest ended early: interrupted"]


def test_a_run_that_ends_early_does_not_say_conforms(tmp_path: Path) -> None:
    stops = "def test_a():\n    assert False\ndef test_b(check_job): ...\n"
    suite(tmp_path, "--streamproof-report", "out", "-x", tests=CONFORMING + stops)
    assert reported(tmp_path)["verdict"] == "inconclusive"
    assert reported(tmp_path)["missing"] == ["the rest: pytest ended early: stopping after 1 failures"]
    assert "stopping after 1 failures" in (tmp_path / "out" / "junit.xml").read_text(encoding="utf-8")


def test_each_worker_writes_a_report_of_its_own(tmp_path: Path) -> None:
    done = suite(tmp_path, "--streamproof-report", "out", "--numprocesses", "1")
    assert "out, a folder for each worker" in done.stdout
    assert (tmp_path / "out" / "gw0" / "report.html").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "streamproof_profile=fast"], "streamproof_profile is 'fast': use one of quick, default, thorough"),
        (["--streamproof-report", "conftest.py"], "--streamproof-report: the report can't be written into conftest.py"),
    ],
)
def test_what_cannot_be_used_is_refused_before_any_test(tmp_path: Path, options: list[str], message: str) -> None:
    done = suite(tmp_path, *options)
    assert (done.returncode, "passed" in done.stdout) == (4, False)
    assert message in done.stderr
