"""How a local session's workers start: this process's Python, without the copies of its packages that Spark brings."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from streamproof.properties.witnesses.spark.platform.workers import import_as_here, quick_python, socket_settings

HOME = Path(pyspark.__file__).parent
ZIPS = [str(path) for path in sorted((HOME / "python" / "lib").glob("*.zip"))]
SAYS = "import os, sys; print(sys.executable, os.environ.get('PYTHONPATH'))"


def path_in_worker(folder: Path, *entries: str) -> str:
    script = quick_python(folder)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entries)}
    said = subprocess.run([script, "-c", SAYS], env=environment, capture_output=True, text=True, check=True).stdout
    executable, path = said.split(maxsplit=1)
    assert executable == sys.executable
    return path.strip()


def test_a_worker_imports_no_package_from_the_zips_of_spark(tmp_path: Path) -> None:
    assert len(ZIPS) == 2
    assert path_in_worker(tmp_path, *ZIPS, str(HOME / "jars" / "a.jar")) == "None"


def test_what_the_user_put_on_the_module_path_stays_there_in_order(tmp_path: Path) -> None:
    assert path_in_worker(tmp_path, *ZIPS, "/one *", "/two") == "/one *:/two"


def test_another_spark_home_or_a_folder_from_which_nothing_runs_leaves_the_workers_python_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("SPARK_HOME", str(tmp_path))
        assert quick_python(tmp_path) == sys.executable
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert quick_python(tmp_path) == sys.executable


def test_a_path_too_long_for_a_socket_leaves_the_workers_on_tcp(tmp_path: Path) -> None:
    short = Path("/tmp/streamproof")
    assert socket_settings(short) == {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(short),
    }
    assert socket_settings(short / ("x" * 60)) == {}


def test_workers_import_what_a_test_can_and_get_no_folder_of_the_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    session = SimpleNamespace(sparkContext=SimpleNamespace(environment={}))

    import_as_here(session)

    folders = session.sparkContext.environment["PYTHONPATH"].split(os.pathsep)
    assert folders[0] == str(tmp_path)
    assert not {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")} & set(folders)
