"""What Python packages and which Spark this machine has, and the command that installs what it lacks."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

Status = Literal["ok", "missing", "wrong", "optional"]


PACKAGES: dict[str, tuple[str, str | None]] = {
    # Each package with its lowest version and the first one that is known to break us, as in pyproject.toml.
    "pyspark": ("4.3", "5"),
    "pandas": ("2.2", "3"),
    "pyarrow": ("18.0", None),
    "protobuf": ("6.33.5", "8"),
    "duckdb": ("1.1", "3"),
    "hypothesis": ("6.100", "7"),
}


@dataclass(frozen=True)
class Diagnosis:
    """One thing that streamproof needs or can use.

    Attributes:
        name: What was looked for.
        status: `ok`; `missing` or `wrong`, which keep streamproof from running; `optional`, which doesn't.
        found: What was found, in words.
        remedy: The command or the change that fixes it; empty when there is nothing to fix.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""

    @property
    def blocks(self) -> bool:
        """Whether streamproof can't run until this is fixed."""
        return self.status in ("missing", "wrong")


def package(name: str) -> Diagnosis:
    """Say whether a Python package is installed in a version that streamproof works with."""
    lowest, too_new = PACKAGES[name]
    wanted = f"{name}>={lowest}" + (f",<{too_new}" if too_new else "")
    remedy = f"{pip()} install '{wanted}'"
    try:
        found = version(name)
    except PackageNotFoundError:
        return Diagnosis(name, "missing", "not installed", remedy)
    if release(found) < release(lowest) or (too_new is not None and release(found) >= release(too_new)):
        return Diagnosis(name, "wrong", f"{found}, where {wanted} is needed", remedy)
    return Diagnosis(name, "ok", found)


def pip() -> str:
    """Return the command that installs into this interpreter, as one would type it."""
    return f"{shlex.quote(sys.executable)} -m pip"


def package_folder(name: str) -> Path | None:
    """Return the folder of an installed package, found without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def release(text: str) -> tuple[int, ...]:
    """Return the numbers that a version starts with: enough to compare with a bound of whole numbers."""
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
    """Say whether SPARK_HOME, which PySpark starts Spark from, holds the Spark of the installed PySpark."""
    name, home, remedy = "SPARK_HOME", os.environ.get("SPARK_HOME"), "unset SPARK_HOME"
    if not home:
        return Diagnosis(name, "ok", "not set: Spark is PySpark's own")
    if not (Path(home) / "bin" / "spark-submit").is_file():
        return Diagnosis(name, "wrong", f"{home}, where no Spark is (no bin/spark-submit)", remedy)
    try:
        wanted = version("pyspark")
    except PackageNotFoundError:
        return Diagnosis(name, "ok", home)
    jars = (Path(home) / "jars").glob("spark-core_*.jar")
    found = sorted(jar.stem.removeprefix("spark-core_").partition("-")[2] for jar in jars)
    if not any(release(one)[:3] == release(wanted)[:3] for one in found):
        held = f"Spark {', '.join(found)}" if found else "no jars of Spark"
        return Diagnosis(name, "wrong", f"{home}, which holds {held}, where PySpark is {wanted}", remedy)
    return Diagnosis(name, "ok", f"{home} ({wanted})")
