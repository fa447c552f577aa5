"""The Spark session that every check runs in: local, quiet, and set for many short streaming queries.

One session a process. The JVM and its Python workers write to a log file, so that standard output stays free for
results and standard error for messages.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..reference.errors import BadInput, MissingTool
from ..specs.java import Java, find_java
from . import doctor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The only state store provider that `transformWithState` accepts."""

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"

_SETTINGS: dict[str, str] = {
    _PROVIDER: ROCKSDB,
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.metricsEnabled": "false",
    # Only the quick compiler: it halves the JVM's work until a session is warm, and most sessions end before that.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    # The default manager runs a chmod process for each file that it makes; without it a short query is a fifth faster.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
}
# The host's name may not resolve, and the driver of a local session needs no other address.
_LOCAL = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}

_session: SparkSession | None = None
_log: Path | None = None


def spark_session(
    *,
    cores: int | None = None,
    partitions: int = 2,
    memory: str = "3g",
    master: str | None = None,
    log: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return this process's Spark session, and start it if there is none.

    A session that is running already is returned as it is, the caller's own included; the arguments then say nothing.

    Args:
        cores: How many cores a local session uses; all by default.
        partitions: Shuffle partitions, and so state stores, of each stateful operator.
        memory: Heap of the JVM, as Spark writes it (`3g`, `512m`).
        master: Spark's master URL, where it isn't this process (`local-cluster[2,1,1024]`, `spark://…`).
        log: Where the JVM and the workers write; by default a file in the temporary directory, see `spark_log_path`.
        settings: Further Spark settings; they override streamproof's.

    Raises:
        MissingTool: There is no Java 17 or newer, or PySpark, pandas, PyArrow or protobuf is missing or of a version
            that doesn't work; or the JVM didn't start.
        BadInput: An argument is out of range, or the running session has another state store provider than RocksDB.
    """
    global _session, _log
    require_packages()
    running = _running_session()
    if running is not None:
        return running if running is _session else _checked(running)
    _check_arguments(cores, partitions, memory, master)

    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    # Without these the workers start whichever python3 comes first on PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

    chosen_master = master or (f"local[{cores}]" if cores else "local[*]")
    chosen = {
        "spark.app.name": "streamproof",
        "spark.master": chosen_master,
        **_SETTINGS,
        **(_LOCAL if chosen_master.startswith("local") else {}),
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.driver.memory": memory,
        **(settings or {}),
    }
    _log = log or default_log_path()
    _session = _started(chosen, java, _log)
    return _session


def spark_log_path() -> Path | None:
    """The file that the session's JVM and workers write to, or None when streamproof hasn't started one."""
    return _log


def default_log_path() -> Path:
    """A file of this process in a directory of this user below the temporary directory; the directory is made."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"streamproof-{user}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    # The temporary directory is everyone's: a link or another user's directory of that name isn't written to.
    found = folder.lstat() if folder.exists() else None
    if found is None or not stat.S_ISDIR(found.st_mode) or found.st_uid != user:
        folder = Path(tempfile.mkdtemp(prefix="streamproof-"))
    return folder / f"spark-{os.getpid()}.log"


def require_packages() -> None:
    """Raise `MissingTool` when a Python package that Spark's stream operators need is missing or of a wrong version."""
    for name in ("pyspark", "pandas", "pyarrow", "protobuf"):
        finding = doctor.package(name)
        if finding.blocks:
            raise MissingTool(f"{name}: {finding.found}. Install it with `{finding.remedy}`.")


def _check_arguments(cores: int | None, partitions: int, memory: str, master: str | None) -> None:
    if cores is not None and cores < 1:
        raise BadInput(f"cores={cores}: Spark needs at least one core; leave it out to use all.")
    if cores is not None and master is not None:
        raise BadInput(f"cores={cores} and master={master!r}: a master URL says its own cores; give one of the two.")
    if "SPARK_REMOTE" in os.environ:
        raise BadInput("SPARK_REMOTE is set, and streamproof needs a session in this process: `unset SPARK_REMOTE`.")
    if partitions < 1:
        raise BadInput(f"partitions={partitions}: a stateful operator needs at least one shuffle partition.")
    if not re.fullmatch(r"\d+[kmgt]b?", memory, re.IGNORECASE):
        raise BadInput(f"memory={memory!r} isn't a size that Spark reads: write it as `3g` or `512m`.")


def _running_session() -> SparkSession | None:
    """The session of this process whose context hasn't been stopped, ours or the caller's."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    if _session is not None and _session.sparkContext is SparkContext._active_spark_context:
        return _session
    # The caller's session; on a bare SparkContext it is made here, with the caller's settings.
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _checked(session: SparkSession) -> SparkSession:
    provider = session.conf.get(_PROVIDER)
    if provider != ROCKSDB:
        raise BadInput(
            f"The running Spark session keeps state in {provider}, and transformWithState needs RocksDB: "
            f'set it with `spark.conf.set("{_PROVIDER}", "{ROCKSDB}")`, or stop the session.'
        )
    return session


def _started(settings: Mapping[str, str], java: Java, log: Path) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf().setAll(list(settings.items()))
    gateway = SparkContext._gateway
    if gateway is None:
        try:
            with _opened(log) as file:
                gateway = launch_gateway(conf, {"stdout": file, "stderr": file})
        except PySparkException as error:
            if error.getCondition() != "JAVA_GATEWAY_EXITED":
                raise
            raise MissingTool(
                f"Spark's JVM didn't start on Java {java.version} ({java.home}): the reason is in {log}; "
                "set JAVA_HOME to another Java 17 or newer, or ask for less memory."
            ) from error
    with _interrupts_kept():
        SparkContext(conf=conf, gateway=gateway)
    return SparkSession.builder.getOrCreate()


@contextlib.contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep this process's answer to Ctrl-C: PySpark's own speaks to the JVM in the midst of another call to it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _opened(log: Path) -> BinaryIO:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("wb")
    except OSError as error:
        raise BadInput(f"Spark's log can't be written to {log}: {error.strerror}; name another file.") from error
