"""The command `fuzz`, with processes that answer without Spark: its output and files, and the input that it refuses."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import Command, Said, caller
from streamproof.properties.checking.fuzzing import campaign
from streamproof.properties.checking.fuzzing.seeds import Judged, ReportedFinding, Seed
from streamproof.properties.system.installed import environments

NAMED = ReportedFinding("3", "reference", ("a name",), "plan", script="print(1)\n")
UNNAMED = ReportedFinding("4", "rocksdb", (), "the plan of 4", "died", script="print(2)\n")


class FakeSpark:
    found: list[ReportedFinding]

    def __init__(self, python: Path, version: str, start: object) -> None:
        self.version, self.process = version, self

    def __enter__(self) -> FakeSpark:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def end(self, seconds: float) -> None:
        return None

    def poll(self) -> None:
        return None

    def ask(self, seed: Seed) -> Judged:
        found = [one for one in self.found if one.seed == seed.seed]
        return Judged(seed.seed, f"plan {seed.seed}", "rows", "", 10, Counter(reference=1), differences=found)


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    looks = itertools.count()
    monkeypatch.setattr(campaign, "PySparkProcess", FakeSpark)
    monkeypatch.setattr(campaign, "time", SimpleNamespace(monotonic=lambda: next(looks) / 20))
    monkeypatch.chdir(tmp_path)
    command: Command = caller(monkeypatch, capsys, "fuzz", "--minutes", "0.1", "--jobs", "1")

    def call(*arguments: object, found: tuple[ReportedFinding, ...] = ()) -> Said:
        monkeypatch.setattr(FakeSpark, "found", [*found], raising=False)
        return command(*arguments)

    return call


def test_a_run_whose_differences_have_names_exits_with_0_and_says_what_never_came_up(fuzz: Any) -> None:
    said = fuzz("--no-corpus", "--seed", 1, found=(NAMED,))
    assert said.code == 0
    assert "a name" in said.out
    assert "Never came up: windows above windows" in said.out
    assert "0 unexplained differences, 1 explained. Seed 1." in said.out
    assert Path("findings/a_name.py").read_text() == "print(1)\n"


def test_a_difference_without_a_name_exits_with_1_and_its_script_is_named(fuzz: Any) -> None:
    said = fuzz("--no-corpus", "--seed", 1, found=(NAMED, UNNAMED))
    assert said.code == 1
    assert "seed 4, rocksdb: died\nfindings/unnamed_rocksdb_4.py\nthe plan of 4\n" in said.out
    assert Path("findings/unnamed_rocksdb_4.py").read_text() == "print(2)\n"


def test_a_run_of_few_plans_is_inconclusive(fuzz: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "time", SimpleNamespace(monotonic=itertools.count(step=1).__next__))
    assert fuzz("--no-corpus").code == 2


def test_the_json_has_the_pairs_and_relations_that_never_came_up_and_each_finding(fuzz: Any) -> None:
    fuzz("--no-corpus", "--seed", 1, "--json", "all.json", found=(NAMED,))
    written = json.loads(Path("all.json").read_text())
    assert {"full join above windows", "rocksdb", "chains"} <= {*written["never_seen"]}
    assert written["pairs"] == 10 * written["plans"]
    assert written["differences"][0]["script"] == "findings/a_name.py"
    assert written["options"]["seed"] == 1


def refused(said: Said, message: str) -> None:
    """It exits 3 with one line on stderr that has a message."""
    assert said.code == 3
    assert message in said.err
    assert said.err.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "rocks"), "--only is 'rocks': give one of reference, chains, equivalence, "),
        (("--against", "9.9.9"), "--against is 9.9.9, but only PySpark 3.5, 4.0, 4.1, 4.2 and 4.3 are supported"),
        (("--spark-version", "new"), "--spark-version is 'new': give the version of a PySpark, such as"),
        (("--seed", "4.1.4:17"), "--seed"),
        (("--json", "/dev/full"), "/dev/full: can't be written (No space left on device)"),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else "",
)
def test_bad_input_is_one_line(fuzz: Any, arguments: tuple[object, ...], message: str) -> None:
    refused(fuzz(*arguments), message)


def test_scripts_that_cannot_be_written_are_one_line(fuzz: Any) -> None:
    Path("findings").write_text("a file")
    said = fuzz("--no-corpus", "--seed", 1, found=(NAMED,))
    refused(said, "findings/a_name.py: can't be written (")
    assert "1 explained. Seed 1." in said.out


def test_a_version_that_cannot_be_installed_is_one_line(fuzz: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*command: str) -> subprocess.CompletedProcess[str]:
        failed = "ERROR: No matching distribution found for pyspark==3.5.99"
        return subprocess.CompletedProcess(command, "install" in command, "", failed)

    monkeypatch.setattr(environments, "_run", fails)
    monkeypatch.setattr(environments, "user_cache_path", lambda name: Path("cache"))
    said = fuzz("--against", "3.5.99")
    assert said.code == 3
    assert said.err.splitlines()[-1].startswith("error: PySpark 3.5.99 can't be installed into a separate environment")
