"""Contacts an existing Spark cluster before Spark starts, and tests the cluster before checks use it.

A cluster has Spark, Python and Spark's Python packages. streamproof sends itself to the cluster's workers, and the user
names a folder that the workers and this machine share. The module reports problems at once, with the master's URL.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import socket
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .....reference.core.errors import BadInput, StreamproofError
from ....system.visible import first_line
from ....system.work import own_folder, temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER_VARIABLE = "STREAMPROOF_MASTER"
"""The environment variable that names Spark's master, without `--master`."""
PARTITIONS_VARIABLE = "STREAMPROOF_PARTITIONS"
"""The environment variable of the number of shuffle partitions, without `--partitions`."""
SHARED_VARIABLE = "STREAMPROOF_SHARED"
"""The environment variable that names the shared folder, without `--shared`."""

CODE = ("reference", "spark_impl", "properties", "specs")
"""The packages of streamproof, to which an operator's logic refers by name."""

_HOST = r"(?:[^\s:/,@\[\]]+|\[[0-9A-Fa-f:.]+\])"
_STANDALONE = re.compile(rf"spark://({_HOST}:\d+(?:,{_HOST}:\d+)*)")
_OTHERS = re.compile(r"local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?|local-cluster\[[1-9]\d*,[1-9]\d*,[1-9]\d*\]|yarn|k8s://.+")
_FORMS = "spark://HOST:PORT, local-cluster[WORKERS,CORES,MEGABYTES], local[CORES], yarn or k8s://https://HOST:PORT"
_ANSWER_SECONDS = 5.0
_WORKER_SECONDS = 90.0
_SLOW_WORKER_SECONDS = 300.0
"""The timeout for yarn and Kubernetes to start workers (s)."""


def checked_master(master: str) -> str:
    """Return a master URL unchanged, if Spark accepts it.

    Raises:
        BadInput: Spark doesn't accept the URL, or a yarn cluster's configuration is missing.
    """
    if _STANDALONE.fullmatch(master) is None and _OTHERS.fullmatch(master) is None:
        why = ""
        if re.fullmatch(rf"spark://{_HOST}/?", master):
            why = f" (the port is missing: a standalone master listens on 7077, as in {master.rstrip('/')}:7077)"
        raise BadInput(f"{master!r} isn't a master URL that Spark accepts{why}: use {_FORMS}.")
    if master == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & os.environ.keys():
        raise BadInput("master 'yarn': Spark needs Hadoop's configuration: set HADOOP_CONF_DIR to its folder.")
    return master


def is_cluster(master: str) -> bool:
    """Return whether the workers of a master are separate processes, on this machine or another."""
    return not re.match(r"local(\[|$)", master)


def address_towards(master: str) -> str | None:
    """Contact a standalone master, and return the address of this machine to which the cluster's workers can connect.

    None for other masters, which send the driver's address to the workers.

    Raises:
        StreamproofError: No host of the URL responds within 5 s.
    """
    standalone = _STANDALONE.fullmatch(master)
    if standalone is None:
        return None
    refused = []
    for address in standalone[1].split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SECONDS) as connection:
                return str(connection.getsockname()[0])
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            refused.append(f"{address}: {reason}")
    raise StreamproofError(
        f"the Spark master {master} can't be reached ({'; '.join(refused)}): start it, or name another master."
    )


def worker_python() -> str:
    """Return the Python of a cluster's workers, which is PYSPARK_PYTHON or this process's Python.

    Raises:
        BadInput: The program doesn't exist on this machine, where Spark also starts it.
    """
    named = os.environ.get("PYSPARK_PYTHON") or sys.executable
    if shutil.which(named) is None:
        raise BadInput(
            f"PYSPARK_PYTHON={named}: Spark also starts the workers' Python on this machine, which has no such "
            f"program: link it to this Python, {sys.executable}, or name a Python that exists on all machines."
        )
    return named


def shared_folder(named: Path | None) -> Path | None:
    """Return the folder that all workers share: the named folder, or the environment's (None for a local folder).

    Raises:
        BadInput: The named folder isn't a writable folder of this machine.
    """
    if named is None:
        given = os.environ.get(SHARED_VARIABLE)
        if not given:
            return None
        named = Path(given)
    folder = named.resolve()
    if not folder.is_dir():
        raise BadInput(
            f"the shared folder {named} isn't a folder: name a folder that this machine and all workers share."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"the shared folder {named} can't be written by this user: name another folder.")
    return folder


def send_code(spark: SparkSession) -> None:
    """Send streamproof to the workers, which run this version regardless of their own packages."""
    # Workers may start late, and download the file then, so the file stays until this process ends.
    packed = own_folder() / "streamproof-code.zip"
    pack_code(packed)
    before, context = list(sys.path), spark.sparkContext
    context.addPyFile(str(packed))
    # On the driver, PySpark would also import from the file, which lacks the data files of the modules' folders.
    sys.path[:] = before
    importlib.invalidate_caches()
    # Spark first unpacks each operator in the workers' Python on this machine, and ignores its files there.
    environment: dict[str, str] = context.environment
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(packed), environment.get("PYTHONPATH"))))


def pack_code(target: Path) -> None:
    """Write streamproof's modules to a zip file from which Python can import."""
    root = Path(__file__).parents[4]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        # Python before 3.13 treats a folder in a zip as a namespace package only if the zip has an entry for the
        # folder.
        archive.mkdir("streamproof")
        for package in CODE:
            for path in sorted((root / package).rglob("*.py")):
                archive.write(path, f"streamproof/{path.relative_to(root).as_posix()}")


def look_at_workers(spark: SparkSession, shared: Path | None) -> None:
    """Test whether every core of the cluster can run the queries of checks.

    Raises:
        StreamproofError: No worker runs a task in time, its Python doesn't start or lacks a package, or it can't read
            and write the shared folder; the message contains the remedy.
    """
    context, master = spark.sparkContext, str(spark.sparkContext.master)
    with temporary_folder(shared) as folder:
        (folder / "driver").write_text("here")
        tasks = max(context.defaultParallelism, 2)
        looks = context.parallelize(range(tasks), tasks).mapPartitionsWithIndex(
            _Look(str(folder), str(shared or folder.parent))
        )
        answers: list[tuple[str, str]] = []
        failures: list[Exception] = []

        def ask() -> None:
            try:
                answers.extend(looks.collect())
            except Exception as error:
                failures.append(error)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        seconds = _SLOW_WORKER_SECONDS if master.startswith(("yarn", "k8s")) else _WORKER_SECONDS
        asking.join(seconds)
        if asking.is_alive():
            # Not `cancelAllJobs`, because without a worker the end of a job is never reported.
            with contextlib.suppress(Exception):
                spark.stop()
            raise StreamproofError(
                f"no worker of {master} ran a task within {seconds:.0f} s: the cluster has no worker with a free core "
                "and memory for an executor, or its workers can't connect to this machine "
                "(SPARK_LOCAL_HOSTNAME sets the name under which they find it)."
            )
    if failures:
        raise StreamproofError(_why_no_answer(master, failures[0])) from None
    for host, problem in answers:
        if problem:
            raise StreamproofError(f"worker {host} of {master}: {problem}")


class _Look:
    """The test on each worker; a class, because Spark sends a class by name, which shows whether streamproof has
    arrived.
    """

    def __init__(self, folder: str, shared: str | None = None) -> None:
        self.folder, self.shared = folder, shared or str(Path(folder).parent)

    def __call__(self, number: int, rows: Any) -> Iterator[tuple[str, str]]:
        yield socket.gethostname(), self.problem(number)

    def problem(self, number: int) -> str:
        for module, package in (("pandas", "pandas"), ("pyarrow", "pyarrow"), ("google.protobuf", "protobuf")):
            try:
                importlib.import_module(module)
            except ImportError as error:
                remedy = "install it there, or set PYSPARK_PYTHON to a Python with it."
                return f"its Python {sys.executable} has no {package} ({error}): {remedy}"
        remedy = "name a writable folder that this machine and all workers share under this path, with --shared."
        try:
            if (Path(self.folder) / "driver").read_text() != "here":
                return f"its folder {self.shared} differs from this machine's: {remedy}"
            (Path(self.folder) / f"worker-{number}").write_text("here")
        except OSError as error:
            return f"it can't use the folder {self.shared} ({error.strerror}): {remedy}"
        return ""


def _why_no_answer(master: str, error: Exception) -> str:
    text, python = str(error), os.environ["PYSPARK_PYTHON"]
    where = f"the workers of {master} can't run Python tasks"
    if "SparkContext was shut down" in text or "stopped SparkContext" in text:
        return f"{master} has ended this application before a worker ran a task: see its log."
    missing = re.search(r'Cannot run program "([^"]+)"', text)
    if missing:
        return f"{where}: the workers have no {missing[1]}; set PYSPARK_PYTHON to the path of their Python."
    if "PYTHON_VERSION_MISMATCH" in text:
        here = ".".join(map(str, sys.version_info[:2]))
        return f"{where}: on the workers {python} isn't Python {here}; set PYSPARK_PYTHON to a Python {here}."
    return f"{where} ({python}): {last_cause(text)}"


def last_cause(text: str) -> str:
    """Return the line with the cause of a Java or Python failure."""
    raised = re.findall(r"^(?:: |Caused by: )?(?:[\w$]+\.)*(\w*(?:Error|Exception)): (.+)$", text, re.MULTILINE)
    reasons = [f"{kind}: {said}" for kind, said in raised if kind not in ("PythonException", "SparkException")]
    if reasons:
        return reasons[-1]
    return (raised[0][1] if raised else first_line(text) or "no reason was given")[:500]


def tasks_of_executors(spark: SparkSession) -> dict[str, int]:
    """Count the tasks that each executor has completed, by number and address; the driver isn't an executor."""
    context: Any = spark.sparkContext._jsc
    listed = context.sc().statusStore().executorList(False)
    executors = [listed.apply(index) for index in range(listed.size())]
    return {f"{one.id()} ({one.hostPort()})": one.completedTasks() for one in executors if one.id() != "driver"}
