"""What a process of another PySpark is given: jobs by their names, tables as they are, an environment that fits it."""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from streamproof import BadInput, Input, Script, Sink
from streamproof.properties.system.installed.module_path import BEHIND
from streamproof.properties.witnesses.job import other_pyspark, other_pyspark_main
from streamproof.properties.witnesses.job.other_pyspark import dumped, loaded, require_named
from streamproof.properties.witnesses.job.running import Runner
from streamproof.properties.witnesses.job.scripts.script import Findings

TABLE = pa.table({"user": ["a", None], "at": pa.array([1, 2], pa.timestamp("us", "UTC"))})


def job(clicks: Any) -> Any:
    return clicks


def read(folder: Path) -> Any:
    return []


class Job:
    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, clicks: Any) -> Any:
        return clicks


def within() -> Any:
    def inner(clicks: Any) -> Any:
        return clicks

    return inner


@pytest.mark.parametrize(
    "named",
    [job, Job(3), functools.partial(job), Sink(job, read), Sink.parquet(job, without=["day"])],
    ids=["function", "object", "partial", "sink", "sink of files"],
)
def test_a_job_at_the_top_of_a_module_is_found_by_its_name(named: Any) -> None:
    require_named(named, "4.1.4")
    assert type(loaded(dumped(named))) is type(named)


def test_a_script_is_found_by_its_path_and_takes_its_findings_along(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("")
    script = Script(tmp_path / "job.py", reads={"clicks": Input("user string, at timestamp", key="user")})
    script.found.mode, script.found.index, script.found.last = "update", 1, sys  # type: ignore[assignment]
    assert loaded(dumped(script)).found == replace(script.found, last=None) == Findings((), "update", 1)


@pytest.mark.parametrize(
    "nameless",
    [lambda clicks: clicks, within(), Sink(within(), read), functools.partial(within())],
    ids=["lambda", "function within a function", "sink", "partial"],
)
def test_a_job_without_a_name_of_its_own_is_refused_with_the_remedy(nameless: Any) -> None:
    with pytest.raises(
        BadInput, match=r"the process of PySpark 4\.1\.4 can't find .*\. Define it by def or class at the top of"
    ):
        require_named(nameless, "4.1.4")


def test_a_job_in_a_request_is_named_by_its_function() -> None:
    request = SimpleNamespace(runner=SimpleNamespace(job=within()), unpicklable=within())
    with pytest.raises(BadInput, match=r"can't find within\.inner \(.*test_other_pyspark.py:\d+\) by"):
        other_pyspark._pickled(request, {}, "4.1.4")


def test_a_function_of_the_program_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "__module__", "__main__")
    with pytest.raises(BadInput, match=r"job is in __main__, the program that runs\. Define it by def"):
        require_named(job, "4.1.4")


def test_a_runner_arrives_with_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(job, [], {"prices": TABLE})
    modules: dict[str, str] = {}
    arrived = loaded(other_pyspark._pickled(runner, modules, ""))
    assert arrived.job is job
    assert arrived.static["prices"].equals(TABLE)
    assert arrived.static["prices"].schema == TABLE.schema
    assert modules[__name__] == __file__
    assert not [name for name in modules if name.startswith("streamproof")]


def test_a_module_is_imported_by_its_file_where_its_name_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "job_of_a_test.py").write_text("def job(clicks): return clicks\n")
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    name = "nowhere.job_of_a_test"
    try:
        other_pyspark_main._import(name, tmp_path / "job_of_a_test.py")
        assert require_named(sys.modules[name].job, "4.1.4") is None
    finally:
        for module in (name, "nowhere"):
            sys.modules.pop(module, None)
    with pytest.raises(BadInput, match=r"importing .*broken\.py raised ZeroDivisionError: .*, in line 2 of"):
        other_pyspark_main._import("nowhere.broken", tmp_path / "broken.py")
    assert "nowhere.broken" not in sys.modules
    assert "nowhere" not in sys.modules


def test_the_environment_of_the_process_names_no_other_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    monkeypatch.setenv("SHOP", "here")
    monkeypatch.syspath_prepend("/shop")
    given = other_pyspark._environment()
    assert "SPARK_HOME" not in given
    assert given["SHOP"] == "here"
    assert "/shop" in given["PYTHONPATH"].split(os.pathsep)
    packages = [folder for folder in given[BEHIND].split(os.pathsep) if folder.endswith("site-packages")]
    assert packages
    assert not {*packages} & {*given["PYTHONPATH"].split(os.pathsep)}


@pytest.mark.parametrize(
    "value",
    [
        TABLE,
        TABLE.slice(0, 0),
        pa.concat_tables([TABLE, TABLE]),
        TABLE.schema,
        Path("/run/query"),
        {"static": [TABLE, Path("a")]},
    ],
)
def test_what_goes_to_the_other_process_comes_as_it_is(value: Any) -> None:
    found = loaded(dumped(value))
    assert (type(found), found) == (type(value), value)
