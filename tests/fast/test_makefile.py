"""What each command of the Makefile installs: a stand-in for Python and the tools writes down what pip is asked for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from paths import ROOT

PYTHON = """\
#!/bin/sh
case "$1 $2" in
"-m venv")
    mkdir -p .venv/bin
    for tool in python pip streamproof ruff mypy lint-imports mkdocs nox; do cp "$0" ".venv/bin/$tool"; done ;;
"-m pip")
    for word; do :; done
    echo "$3 $word" >> "$LOG" ;;
esac
"""
FIRST = ["uninstall setuptools", "install pyspark", "install .[data,kafka,spark,specs]"]


class Clone:
    """A folder with the Makefile, in which `make` runs the stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, folder)
        for name in ("streamproof", "reference", "spark_impl", "properties", "specs"):
            (folder / name).mkdir()
        (folder / "python").write_text(PYTHON)
        (folder / "python").chmod(0o755)

    def installed_by(self, target: str) -> list[str]:
        """Run a target, and return what it made pip do."""
        self.log.write_text("")
        env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        command = ["make", "-s", target, f"PYTHON={self.folder / 'python'}"]
        subprocess.run(command, cwd=self.folder, env=env | {"LOG": str(self.log)}, check=True, capture_output=True)
        return self.log.read_text().splitlines()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.mark.parametrize("target", ["setup", "check", "specs"])
def test_what_runs_streamproof_installs_no_linter_no_tests_and_no_site(clone: Clone, target: str) -> None:
    assert clone.installed_by(target) == FIRST


def test_each_command_installs_its_own_extra_once(clone: Clone) -> None:
    assert clone.installed_by("lint") == [*FIRST, "install .[lint]"]
    assert clone.installed_by("test-quick") == ["install .[tests]"]
    assert clone.installed_by("docs") == ["install .[docs]"]
    assert [clone.installed_by(target) for target in ("check", "lint", "test-quick", "docs")] == [[]] * 4


def test_all_extras_can_be_installed_at_once(clone: Clone) -> None:
    assert clone.installed_by("dev") == [*FIRST, "install .[dev]"]
    assert [clone.installed_by(target) for target in ("check", "lint", "test-quick", "docs", "dev")] == [[]] * 5


def test_new_requirements_are_installed_into_what_is_there(clone: Clone) -> None:
    clone.installed_by("lint")
    stamps = clone.folder.glob(".venv/.[a-z]*")
    for stamp in stamps:
        os.utime(stamp, (1, 1))
    assert clone.installed_by("lint") == ["install pyspark", "install .[data,kafka,spark,specs]", "install .[lint]"]


def test_every_extra_that_is_installed_is_declared() -> None:
    declared = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[1].split("\n[")[0]
    extras = set(re.findall(r"^(\w+) = \[", declared, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text()
    named = {name for group in re.findall(r"'\.\[([\w,]+)\]'", makefile) for name in group.split(",")}
    stamps = set(re.findall(r"^[A-Z]+ := \$\(VENV\)/\.(\w+)$", makefile, re.MULTILINE)) - {"streamproof", "classes"}
    assert named | stamps <= extras
