"""What a script finds beside itself: modules, packages, files; and stand-ins of packages that aren't there."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.witnesses.job.scripts import absent
from streamproof.properties.witnesses.job.scripts.beside import files, folders_of, modules, of_container, package_of
from streamproof.properties.witnesses.job.users_code import users_modules

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a file below the folder as a script, and returns its globals."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    def run(name: str, skipped: list[str] | None = None, wrote: list[str] | None = None) -> dict[str, Any]:
        path = tmp_path / name
        sys.path.insert(0, str(path.parent))
        text = path.read_text()
        found = {"__name__": "__main__", "__package__": package_of(path, text)}
        skip = None if skipped is None else skipped.append
        with modules(str(path), skip), files(str(path), ([] if wrote is None else wrote).append):
            exec(compile(text, str(path), "exec"), found)
        return found

    return run


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder.joinpath(*name.split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)


def test_a_module_beside_a_script_is_imported_anew_in_each_run(run: Run, tmp_path: Path) -> None:
    write(tmp_path, job="import beside_it\nbeside_it.seen.append(1)\nseen = beside_it.seen\n", beside_it="seen = []\n")
    assert [run("job.py")["seen"], run("job.py")["seen"]] == [[1], [1]]


def test_a_module_in_a_folder_without_init_is_imported_anew_and_pickled_by_reference(run: Run, tmp_path: Path) -> None:
    text = "from of_folder.deep import beside_it\nbeside_it.seen.append(1)\nseen, module = beside_it.seen, beside_it\n"
    write(tmp_path, job=text, of_folder__deep__beside_it="seen = []\n")
    for _ in range(2):
        found = run("job.py")
        assert found["seen"] == [1]
        assert sys.modules["of_folder.deep.beside_it"] is found["module"]  # else cloudpickle sends its content


@pytest.mark.parametrize("folder", ["", "above"])
def test_a_module_that_a_test_has_imported_stays_the_test_s(run: Run, tmp_path: Path, folder: str) -> None:
    text, name = "import of_a_test as it\nit.seen.append(1)\nseen = it.seen\n", "of_a_test"
    script = tmp_path / "job.py"
    if folder:  # a module of the package above the script
        text, name = text.replace("of_a_test", "above.of_a_test"), "above.of_a_test"
        script = tmp_path / "above" / "jobs" / "job.py"
        script.parent.mkdir(parents=True)
        for package in (script.parent, script.parent.parent):
            (package / "__init__.py").write_text("")
    script.write_text(text)
    (tmp_path / folder / "of_a_test.py").write_text("seen = []\n")
    sys.path.insert(0, str(tmp_path))
    own = importlib.import_module(name)
    assert run(str(script.relative_to(tmp_path)))["seen"] == [1]
    assert sys.modules.pop(name) is own
    assert own.seen == []


@pytest.mark.parametrize("initial", [True, False], ids=["packages", "folders"])
@pytest.mark.parametrize(
    "line",
    [
        "from .units import HOUR",
        "from . import units; HOUR = units.HOUR",
        "from shop.jobs.units import HOUR",
        "from ..common.units import HOUR",
        "from shop.common.units import HOUR",
        "from units import HOUR",
    ],
)
def test_a_script_imports_from_its_package_as_python_m_does(line: str, initial: bool, run: Run, tmp_path: Path) -> None:
    write(tmp_path, shop__jobs__main=line, shop__jobs__units="HOUR = 60\n", shop__common__units="HOUR = 60\n")
    if initial:
        write(tmp_path, shop____init__="", shop__jobs____init__="", shop__common____init__="")
    assert run("shop/jobs/main.py")["HOUR"] == 60


def test_a_folder_of_data_above_a_script_is_no_package(run: Run, tmp_path: Path) -> None:
    write(tmp_path, jobs__main="import lake_of_data\nlake_of_data.read()")
    (tmp_path / "lake_of_data").mkdir()
    with pytest.raises(ModuleNotFoundError):
        run("jobs/main.py")


def test_a_script_reads_files_beside_it_or_above_by_relative_paths(run: Run, tmp_path: Path) -> None:
    write(
        tmp_path,
        jobs__main="import os, pathlib\n"
        "own = open('own.txt').read() + pathlib.Path('own.txt').read_text()\n"
        "above = open('conf/above.txt').read() if os.path.exists('conf/above.txt') else ''\n"
        "missing = pathlib.Path('missing.txt').exists()\n"
        "here = open('here.txt').read()\n",
    )
    (tmp_path / "jobs" / "own.txt").write_text("own")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "above.txt").write_text("above")
    for folder in ("jobs", "elsewhere"):
        (tmp_path / folder / "here.txt").write_text(folder)
    found = run("jobs/main.py")
    assert (found["own"], found["above"], found["missing"], found["here"]) == ("ownown", "above", False, "elsewhere")


def test_a_file_that_a_script_writes_is_told(run: Run, tmp_path: Path) -> None:
    write(tmp_path, job="from pathlib import Path\nopen('a', 'w').close()\nPath('b').write_text('')\nopen('a').close()")
    wrote: list[str] = []
    run("job.py", wrote=wrote)
    assert [os.path.basename(path) for path in wrote] == ["a", "b"]


def test_a_script_s_log_file_is_not_written_and_its_folder_may_be_missing(run: Run, tmp_path: Path) -> None:
    write(tmp_path, job="import logging\nlog = logging.FileHandler('logs/today', delay=False)\nlog.stream.write('x')")
    run("job.py")["log"].close()
    assert not list(tmp_path.rglob("today"))


USES = {
    "from delta.tables import *\nfrom delta import DeltaTable as D, configure_spark_with_delta_pip as c\nc(1)": "",
    "import delta\nassert delta.configure_spark_with_delta_pip(spark_session_builder=1, extra_packages=[]) == 1": "",
    "from delta.tables import *\nDeltaTable.forPath(None, '/x')": "the script calls delta.tables.DeltaTable.forPath",
    "import findspark, pkg_resources\nfindspark.init()\npkg_resources.get_distribution('pytest').version": "",
    "from awsglue.utils import getResolvedOptions as g\nassert g(['--A', '1'], 'AB') == {'A': '1', 'B': 'b'}": "",
    "import boto3, boto3.session\nfrom botocore.exceptions import ClientError\ns3 = boto3.client": "",
    "import boto3\nboto3.client('s3')": "No module named 'boto3', and the script uses boto3.client",
    "from great_expectations.core import Batch\nclass Mine(Batch): pass": "",
    "from mlflow.pyfunc import Model\nclass Mine(Model): pass\nMine()": "the script uses mlflow.pyfunc.Model",
    "from google.cloud import pubsub_v1": "",
    "from loguru import logger\n@logger.catch\ndef f(): return 1\nlogger.bind(a=1).info('x')\nassert f() == 1": "",
    "from nosuchmodule.a import *": "No module named 'nosuchmodule'",
    "from nosuchmodule.a import F, g\ndef sink(): g.h(F())\nclass Mine(F): pass": "",
    "from nosuchmodule.a import A\nclass Mine(A): pass\nMine()": "the script uses nosuchmodule.a.A",
    "import nosuchmodule\nnosuchmodule.f()": "the script uses nosuchmodule.f",
    "import json.nosuchmodule": "No module named 'json.nosuchmodule'",
    "try:\n    import nosuchmodule\nexcept ImportError:\n    nosuchmodule = None\nassert nosuchmodule is None": "",
    "try:\n    import redis\nexcept ImportError:\n    redis = None\nassert redis is None": "",
    "try:\n    import redis\nexcept:\n    redis = None\nassert redis is None": "",
    "try:\n    import redis\nexcept ValueError:\n    redis = None\nredis.Redis()": "the script calls redis.Redis",
    "try:\n    one = 1\nexcept ImportError:\n    pass\nimport redis\nredis.Redis()": "the script calls redis.Redis",
    "from importlib.util import find_spec\nassert find_spec('boto3') is None": "",
    "from importlib.util import find_spec\nimport boto3": "",
}


@pytest.mark.parametrize("text", USES)
def test_a_package_that_is_not_there_is_refused_where_it_is_called(text: str, run: Run, tmp_path: Path) -> None:
    write(tmp_path, job=text)
    if USES[text]:
        with pytest.raises(ModuleNotFoundError, match=USES[text]):
            run("job.py")
    else:
        run("job.py")
    assert not {"delta", "boto3", "findspark", "great_expectations"} & {*sys.modules}


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("client = a.Client(1)\nclient.connect(client, port=2).close()", ""),
        ("f'{a.name()}'", r"a.name\(…\)"),
        ("if a.DEBUG: pass", "a.DEBUG"),
        ("range(a.N)", "a.N"),
        ("import pickle; pickle.dumps(a.A)", "a.A"),
        ("@a.retry\ndef f(): pass", "a.retry"),
        ("a.Pool(3).submit(print)", r"a.Pool\(…\).submit"),
    ],
)
def test_calls_of_an_unknown_package_do_nothing_until_their_value_is_used(
    text: str, used: str, run: Run, tmp_path: Path
) -> None:
    write(tmp_path, job=f"from nosuchmodule import a\n{text}\n")
    skipped: list[str] = []
    if used:
        with pytest.raises(ModuleNotFoundError, match=f"named 'nosuchmodule', and the script uses nosuchmodule.{used}"):
            run("job.py", skipped)
    else:
        run("job.py", skipped)
        assert [name.removeprefix("nosuchmodule.a.") for name in skipped] == [
            "Client",
            "Client(…).connect",
            "Client(…).connect(…).close",
        ]


def test_a_job_of_glue_has_the_session_and_is_refused_where_glue_reads(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = SimpleNamespace(getOrCreate=lambda: "the session")
    monkeypatch.setattr(absent, "SparkSession", SimpleNamespace(builder=builder))
    text = (
        "from awsglue.context import GlueContext\nfrom awsglue.job import Job\nglue = GlueContext(None)\n"
        "spark = glue.spark_session\njob = Job(glue)\njob.init('name', {})\njob.commit()\n"
    )
    write(tmp_path, job=text, other=f"{text}glue.create_data_frame.from_options(connection_type='kinesis')\n")
    assert run("job.py")["spark"] == "the session"
    with pytest.raises(ModuleNotFoundError, match=r"the script calls awsglue.context.GlueContext.create_data_frame"):
        run("other.py")


def test_what_a_table_s_package_writes_beside_a_query_is_skipped_and_told(run: Run, tmp_path: Path) -> None:
    write(
        tmp_path,
        job="from delta.tables import DeltaTable\n"
        "DeltaTable.createIfNotExists(1).addColumn('a', 'int').execute()\n"
        "table = DeltaTable.forPath(1, '/x')\n",
    )
    skipped: list[str] = []
    run("job.py", skipped)
    assert skipped == ["DeltaTable.createIfNotExists", "DeltaTable.forPath"]


def test_folders_above_a_script_count_up_to_its_package_s_and_four_of_them(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"abcdef")
    deep.mkdir(parents=True)
    assert folders_of(str(deep / "job.py")) == [deep, *deep.parents[:4]]
    (deep / "__init__.py").touch()
    (deep.parent / "__init__.py").touch()
    package = deep.parents[1]  # the first folder that is no package
    assert folders_of(str(deep / "job.py"))[:2] == [deep, package]


@pytest.mark.parametrize(
    ("text", "packages", "package"),
    [
        ("import shop", "", None),
        ("from shop import jobs", "def", None),
        ("from . import a", "", "f"),
        ("from .. import a", "", "e.f"),
        ("from . import a", "ef", "e.f"),
        ("from .. import a", "ef", "e.f"),
        ("from ... import a\nfrom . import b", "f", "d.e.f"),
        ("from . import (", "", None),
    ],
)
def test_the_package_of_a_script_is_as_deep_as_its_folders_or_its_imports(
    text: str, packages: str, package: str | None, tmp_path: Path
) -> None:
    deep = tmp_path.joinpath(*"abcdef")
    deep.mkdir(parents=True)
    for name in packages:
        tmp_path.joinpath(*"abcdef"[: "abcdef".index(name) + 1], "__init__.py").touch()
    assert package_of(deep / "job.py", text) == package


def test_a_path_within_a_container_is_found_below_the_script_s_folders(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").touch()
    for given, found in (
        ("/app/data/a.csv", tmp_path / "data" / "a.csv"),
        ("/app/jobs/data/a.csv", tmp_path / "data" / "a.csv"),
        ("/data/a.csv", tmp_path / "data" / "a.csv"),
        ("/app/none.csv", "/app/none.csv"),
        ("data/a.csv", "data/a.csv"),
        (str(tmp_path / "data"), str(tmp_path / "data")),
    ):
        assert of_container(given, [tmp_path]) == found, given


def test_modules_that_python_runs_or_that_configure_pytest_are_not_a_script_s(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("conftest", "__main__", "own_of_test"):
        module = ModuleType(name)
        module.__file__ = "/home/user/own.py"
        monkeypatch.setitem(sys.modules, name, module)
    assert [*users_modules(["conftest", "__main__", "own_of_test", "os", "pytest", "nowhere"])] == ["own_of_test"]


def test_a_module_that_a_script_imported_from_elsewhere_is_imported_anew_and_a_test_s_is_not(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, jobs__job="import far_of_script, far_of_tests\nfound = far_of_script.seen, far_of_tests.seen\n")
    write(tmp_path, lib__far_of_script="seen = []\n", lib__far_of_tests="seen = []\n")
    sys.path.insert(0, str(tmp_path / "lib"))
    own = importlib.import_module("far_of_tests")
    (by_script, by_test), (again, same) = run("jobs/job.py")["found"], run("jobs/job.py")["found"]
    assert again is not by_script
    assert same is by_test is own.seen
    assert sys.modules.pop("far_of_tests") is own


def test_the_folder_above_in_which_a_module_was_found_is_the_second_that_is_searched(run: Run, tmp_path: Path) -> None:
    write(tmp_path, jobs__main="import of_the_folder_above as it\nHOUR = it.HOUR", of_the_folder_above="HOUR = 60\n")
    for _ in range(2):
        assert run("jobs/main.py")["HOUR"] == 60
        sys.path.remove(str(tmp_path / "jobs"))
    assert sys.path.count(str(tmp_path)) == 1
    assert sys.path.index(str(tmp_path)) <= 1


@pytest.mark.parametrize(
    ("name", "is_skipped"),
    [("delta.tables.DeltaTable", True), ("delta.tables.Other", False), ("delta.other", False)]
    + [(f"{package}.Client", True) for package in sorted(absent.CLIENTS)]
    + [(f"{package}.log", False) for package in sorted(absent.QUIET)],
)
def test_only_calls_of_writers_are_left_out(name: str, is_skipped: bool) -> None:
    module, _, last = name.rpartition(".")
    found = getattr(absent.AbsentModule(module, print), last)
    assert isinstance(found, absent.Absent)
    assert (found._skip is print) == is_skipped
