"""The matrix of versions: users' own jobs under test on each PySpark, and on the Pythons of this machine.

`make versions` runs all of it, `make versions-quick` a few tests on the oldest PySpark.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nox
from streamproof.properties.system.installed.requirements import PYARROWS, PYSPARKS

nox.options.reuse_existing_virtualenvs = True

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
OLDEST, *_, NEWEST = PYSPARKS


def other_pythons() -> list[str]:
    """Return the further Pythons that pyenv has here, each put on the path, where nox looks."""
    found = []
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for python in PYSPARKS[NEWEST]:
        folders = sorted(versions.glob(f"{python}.*/bin"))
        if python != HERE and folders:
            os.environ["PATH"] = f"{folders[-1]}{os.pathsep}{os.environ['PATH']}"
            found.append(python)
    return found


def pairs() -> list[object]:
    """Return each PySpark with this Python, or one that it runs on, and the newest with each further Python."""
    others = other_pythons()
    chosen = []
    for pyspark, pythons in PYSPARKS.items():
        python = next((one for one in (HERE, *others) if one in pythons), pythons[0])
        chosen.append(nox.param(python, pyspark, tags=["oldest"] * (pyspark == OLDEST)))
    return [*chosen, *(nox.param(python, NEWEST) for python in others if python != chosen[-1].args[0])]


@nox.session
@nox.parametrize("python,pyspark", pairs())
def versions(session: nox.Session, pyspark: str) -> None:
    """Run the tests of tests/versions, or those that are named behind `--`, on a PySpark."""
    pyarrow = [f"pyarrow<{PYARROWS[pyspark]}"] if pyspark in PYARROWS else []
    session.install("--quiet", "--editable", ".", "pytest>=8.3", "pytest-xdist>=3", f"pyspark=={pyspark}.*", *pyarrow)
    tests = session.posargs or ["--numprocesses=2", "tests/versions"]
    session.run("python", "-m", "pytest", "-q", *tests)
