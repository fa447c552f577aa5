"""Environments of other PySparks: which are refused, and that nothing half-made is left."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import BadInput
from streamproof.properties.system.files import HIDDEN
from streamproof.properties.system.installed import environments
from streamproof.properties.system.installed.environments import python_of, require_earlier
from streamproof.properties.system.installed.requirements import installed

INSTALLED = installed("pyspark")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the environments of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "streamproof" / "environments"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the commands that would be run; each works, and makes what it is to make."""
    commands: list[list[str]] = []

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        commands.append([*command])
        if "venv" in command:
            folder = Path(command[-1])
            (folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
            (folder / "bin").mkdir()
            (folder / "bin" / "python").touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(environments, "_run", run)
    monkeypatch.setattr(environments, "_HERE", "3.11")
    return commands


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("latest", "from_pyspark is 'latest': give the version of a PySpark, such as \"4.1.4\""),
        ("4", "from_pyspark is '4': give the version"),
        (
            "3.4.1",
            "from_pyspark is 3.4.1, but only PySpark 3.5, 4.0, 4.1, 4.2 and 4.3 are supported: give such a version",
        ),
        ("99.0", f"the installed PySpark {INSTALLED} can't continue from the checkpoint of a newer Spark"),
        (f"{INSTALLED.rpartition('.')[0]}.99", "newer Spark: install PySpark .*99 or newer, or give an older version"),
    ],
)
def test_a_version_is_refused(version: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        require_earlier(version)


@pytest.mark.parametrize("version", ["3.5", "3.5.9", "4.0.1", INSTALLED, INSTALLED.rpartition(".")[0]])
def test_a_version_up_to_the_installed_one_is_accepted(version: str) -> None:
    require_earlier(version)


def test_the_installed_pyspark_needs_no_environment(cache: Path) -> None:
    assert python_of(INSTALLED) == python_of(INSTALLED.rpartition(".")[0]) == Path(sys.executable)
    assert not cache.exists()


def test_an_environment_is_made_once_with_the_bounds_of_its_pyspark(cache: Path, ran: list[list[str]]) -> None:
    python = python_of("3.5.9")
    assert python == cache / "pyspark-3.5.9-python-3.11" / "bin" / "python"
    assert names(cache) == ["pyspark-3.5.9-python-3.11"]
    _, install = ran
    assert "pyspark==3.5.9" in install
    assert "pyarrow>=18.0,<26" in install
    assert any(one.startswith("hypothesis") for one in install)
    assert not [one for one in install if "extra" in one or one.startswith("streamproof")]
    assert python_of("3.5.9") == python
    assert len(ran) == 2
    (cache / "pyspark-3.5.9-python-3.11" / "requirements.txt").write_text("pyspark==3.5.9\n")  # of an older streamproof
    python_of("3.5.9")
    assert len(ran) == 4


def test_two_numbers_ask_for_the_newest_release(cache: Path, ran: list[list[str]]) -> None:
    python_of("4.1")
    assert "pyspark==4.1.*" in ran[1]


def test_a_killed_process_s_rest_is_replaced(cache: Path, ran: list[list[str]]) -> None:
    rest = cache / f"{HIDDEN}pyspark-4.1.4-python-3.11"
    rest.mkdir(parents=True)
    python_of("4.1.4")
    assert names(cache) == ["pyspark-4.1.4-python-3.11"]


def test_a_failed_or_interrupted_installation_leaves_nothing(
    cache: Path, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    works = environments._run

    def fails(*command: str) -> subprocess.CompletedProcess[str]:
        if "pip" in command:
            said = "WARNING: no network\nERROR: No matching distribution found for pyspark==4.1.99\n\n"
            return subprocess.CompletedProcess(command, 1, "", said)
        return works(*command)

    monkeypatch.setattr(environments, "_run", fails)
    with pytest.raises(BadInput, match=r"pip install: No matching distribution found for pyspark==4\.1\.99: give"):
        python_of("4.1.99")
    assert names(cache) == []

    def interrupted(*command: str) -> Any:
        if "pip" in command:
            raise KeyboardInterrupt
        return works(*command)

    monkeypatch.setattr(environments, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        python_of("4.1.4")
    assert names(cache) == []


def test_another_python_is_taken_from_the_path_or_asked_for(
    cache: Path, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "_HERE", "3.14")
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name == "python3.12" else None)
    assert python_of("4.0.5").parts[-3] == "pyspark-4.0.5-python-3.12"
    assert [command[0] for command in ran[:2]] == ["/bin/python3.12"] * 2
    message = "PySpark 3.5.9 runs on Python 3.11, this is Python 3.14, and PATH contains no python3.11: install"
    with pytest.raises(BadInput, match=message):
        python_of("3.5.9")


def test_a_cache_that_cannot_be_written_is_named(cache: Path, ran: list[list[str]]) -> None:
    cache.parent.parent.mkdir(exist_ok=True)
    cache.parent.write_text("a file")
    with pytest.raises(BadInput, match=r"can't be made in .*environments: .*: make room there, or set XDG_CACHE_HOME"):
        python_of("4.1.4")


@pytest.mark.parametrize("free", [0, 999_999_999])
def test_a_disk_without_room_for_it_is_named_before_anything_is_made(
    free: int, cache: Path, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    message = rf"can't be made in {cache}: it takes 1000 MB, and {free // 10**6} MB are free: make room there, or set"
    with pytest.raises(BadInput, match=message):
        python_of("4.1.4")
    assert (ran, names(cache)) == ([], [])
