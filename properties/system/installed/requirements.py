"""The Python packages and Spark on this machine, and the commands that install missing packages."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from ....reference.core.errors import install_command
from ....spark_impl.runtime.required import OLDEST, platform_version

Status = Literal["ok", "missing", "wrong", "optional"]


PACKAGES: dict[str, tuple[str, str | None]] = {
    # Each package with its lowest version and the first incompatible version, as in pyproject.toml.
    "pyspark": ("3.5", "4.4"),
    "pandas": ("2.2", "3"),
    "pyarrow": ("18.0", None),
    "protobuf": ("5.28.3", "8"),
    "duckdb": ("1.1", "3"),
    "hypothesis": ("6.100", "7"),
}


PYSPARKS: dict[str, tuple[str, ...]] = {
    # The PySpark versions for checks of users' jobs, each with its Python versions from 3.11 on.
    "3.5": ("3.11",),
    "4.0": ("3.11", "3.12", "3.13"),
    "4.1": ("3.11", "3.12", "3.13", "3.14"),
    "4.2": ("3.11", "3.12", "3.13", "3.14"),
    "4.3": ("3.11", "3.12", "3.13", "3.14"),
}
NEWEST_JAVAS = {"3.5": 22, "4.0": 22}
"""The newest Java on which the Hadoop of each PySpark starts, if limited: Java 23 removed `Subject.getSubject`."""
PYARROWS = {"3.5": "26"}
"""The first PyArrow that breaks each PySpark: 26 refuses the float offsets of 3.5's `applyInPandasWithState`."""
PROTOBUFS = {"4.0": "5.28.3", "4.1": "6.33.0", "4.2": "6.33.5", "4.3": "6.33.5"}
"""The oldest protobuf that works with each PySpark: the version that generated the messages of `transformWithState`."""


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of software that streamproof needs or can use.

    Attributes:
        name: The thing.
        status: `ok`; `missing` or `wrong`, which keep streamproof from running; `optional`, which doesn't.
        found: The finding, in words.
        remedy: The command or the change that fixes it; empty if none is needed.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""

    @property
    def blocks(self) -> bool:
        """Return whether streamproof can't run until the problem is fixed."""
        return self.status in ("missing", "wrong")


def package(name: str) -> Diagnosis:
    """Diagnose a Python package: whether an installed version works with streamproof."""
    lowest, too_new = PACKAGES[name]
    if name == "protobuf":
        lowest = PROTOBUFS.get(minor_of("pyspark"), lowest)
    if name == "pyarrow":
        too_new = PYARROWS.get(minor_of("pyspark"), too_new)
    wanted = f"{name}>={lowest}" + (f",<{too_new}" if too_new else "")
    remedy = f"{pip()} install '{wanted}'"
    found = installed(name)
    if not found:
        by_extra = install_command("spark") if name == "pyspark" else remedy
        return Diagnosis(name, "missing", "not installed", by_extra)
    if release(found) < release(lowest) or (too_new is not None and release(found) >= release(too_new)):
        supported = f": {listed(PYSPARKS)} are supported" if name == "pyspark" else ""
        by = f" by PySpark {minor_of('pyspark')}" if name == "pyarrow" and too_new is not None else ""
        return Diagnosis(name, "wrong", f"{found}, but {wanted} is needed{by}{supported}", remedy)
    return _on_this_python(found) if name == "pyspark" else Diagnosis(name, "ok", found)


def _on_this_python(pyspark: str) -> Diagnosis:
    """Diagnose whether a PySpark runs on this Python."""
    python, line = ".".join(map(str, sys.version_info[:2])), minor(pyspark)
    if python not in PYSPARKS[line]:
        others = [one for one, pythons in PYSPARKS.items() if python in pythons]
        found = f"{pyspark} on Python {python}, but PySpark {line} runs on Python {listed(PYSPARKS[line])}"
        found += f"; on Python {python} run {listed(others)}" if others else ""
        wanted = f"'pyspark~={others[-1]}.0'" if others else ""
        remedy = f"{pip()} install {wanted}" if others else f"take Python {PYSPARKS[line][-1]}"
        return Diagnosis("pyspark", "wrong", found, remedy)
    if release(pyspark) < release(OLDEST):
        return Diagnosis("pyspark", "ok", f"{pyspark}: for your own jobs; the twelve operators need {OLDEST}")
    return Diagnosis("pyspark", "ok", pyspark)


def minor(text: str) -> str:
    """Return the first two numbers of a version, such as 4.3."""
    return ".".join(map(str, release(text)[:2]))


def installed(name: str) -> str:
    """Return the version of an installed package; empty if it isn't installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return platform_version() if name == "pyspark" else ""


def minor_of(name: str) -> str:
    """Return the first two numbers of an installed package's version, such as 4.3; empty if it isn't installed."""
    return minor(installed(name))


def newest_java() -> int | None:
    """Return the newest Java that the installed PySpark runs on; None for no limit."""
    return NEWEST_JAVAS.get(minor_of("pyspark"))


def listed(names: Iterable[str]) -> str:
    """Return names as an enumeration in a sentence, such as 3.5, 4.0 and 4.1."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def pip() -> str:
    """Return the command that installs packages into this interpreter, as a user would type it."""
    return f"{shlex.quote(sys.executable)} -m pip"


def package_folder(name: str) -> Path | None:
    """Return the folder of an installed package, without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def release(text: str) -> tuple[int, ...]:
    """Return the numbers at the start of a version, for comparisons with whole-number bounds."""
    numbers = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def spark_home() -> Diagnosis:
    """Diagnose SPARK_HOME, from which PySpark starts Spark: whether it contains the Spark of the installed PySpark."""
    name, home, remedy = "SPARK_HOME", os.environ.get("SPARK_HOME"), "unset SPARK_HOME"
    if not home:
        return Diagnosis(name, "ok", "not set: Spark is PySpark's own")
    if not (Path(home) / "bin" / "spark-submit").is_file():
        return Diagnosis(name, "wrong", f"{home}, which contains no Spark (no bin/spark-submit)", remedy)
    wanted = installed("pyspark")
    if not wanted:
        return Diagnosis(name, "ok", home)
    jars = (Path(home) / "jars").glob("spark-core_*.jar")
    found = sorted(jar.stem.removeprefix("spark-core_").partition("-")[2] for jar in jars)
    if not any(release(one)[:3] == release(wanted)[:3] for one in found):
        held = f"Spark {', '.join(found)}" if found else "no jars of Spark"
        return Diagnosis(name, "wrong", f"{home}, which contains {held}, but PySpark is {wanted}", remedy)
    return Diagnosis(name, "ok", f"{home} ({wanted})")
