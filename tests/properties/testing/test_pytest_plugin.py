from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from streamproof.properties.testing import conformance, pytest_plugin
from streamproof.reference.core.errors import BadInput


def unused(frame: object) -> object:
    raise AssertionError("the job was run")


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**arguments: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("streamproof.properties.witnesses.spark.session.spark_session", refuse)


def test_the_plugin_is_found_by_pytest() -> None:
    (found,) = [entry for entry in entry_points(group="pytest11") if entry.name == "streamproof"]
    assert found.load() is pytest_plugin


def test_the_fixture_is_the_function_that_checks_a_job_with_a_folder_for_the_test(
    conforms: Callable[..., None], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    called: list[dict[str, object]] = []
    monkeypatch.setattr(conformance, "check_witness", lambda *arguments, **named: called.append(named))
    conforms(unused, {"gap_ms": 10})
    assert conforms.__wrapped__ is conformance.assert_conforms  # type: ignore[attr-defined]
    (named,) = called
    assert named["folder"] == conformance.folder_of_test(request.config.rootpath, request.node.nodeid)


def test_a_job_and_its_options_are_enough() -> None:
    parameters = inspect.signature(conformance.assert_conforms).parameters
    needed = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
    assert needed == ["job", "options"]
    assert [parameters[name].default for name in ("histories", "seed", "operator")] == [300, 0, "session_windows"]


def test_the_list_of_fixtures_says_what_the_fixture_is(tmp_path: Path) -> None:
    code = """
import sys, pytest
before = set(sys.modules)
code = pytest.main(["--fixtures", "-q", "-p", "no:cacheprovider", sys.argv[1]])
print("LOADED", "pyspark" in sys.modules, "pandas" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert "conforms [session scope]" in done.stdout
    assert "A function `conforms(job, options, histories=300, seed=0)`" in done.stdout
    # A suite that doesn't use the fixture must not pay for Spark.
    assert "LOADED False False" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gap_ms": 10, "gap": 5}, "session_windows has no option 'gap'"),
        pytest.param(
            {"gap_ms": 0},
            "gap_ms is 0: a session's gap must be positive",
        ),
        ({"gap_ms": 10, "aggregate": "avg"}, "unknown aggregate 'avg'"),
        pytest.param(
            {},
            "session_windows needs the option gap_ms",
        ),
    ],
)
def test_wrong_options_are_refused_before_the_job_runs(
    no_spark: None, conforms: Callable[..., None], options: dict[str, object], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        conforms(unused, options)


def test_an_unknown_operator_is_refused_before_the_job_runs(no_spark: None, conforms: Callable[..., None]) -> None:
    with pytest.raises(BadInput, match="unknown operator 'sessions': use one of session_windows"):
        conforms(unused, {"gap_ms": 10}, operator="sessions")
