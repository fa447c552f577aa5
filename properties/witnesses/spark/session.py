"""The Spark session of every check: local or on a cluster, quiet, and configured for many short streaming queries.

There is one session per process. The JVM and its Python workers write to a log file, which keeps standard output free
for results and standard error for messages.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ....reference.core.errors import BadInput, MissingTool, StreamproofError
from ....specs.java import JavaHome, find_java, low_limits
from ...system.installed import requirements
from ...system.installed.spark_versions import checkpoint_file_manager, condition_of
from ...system.progress import doing
from ...system.visible import first_line
from ...system.work import log_path, open_log, own_folder
from .platform import connect
from .platform import jvm as spark_jvm
from .platform.class_archive import java_options
from .platform.cluster import (
    MASTER_VARIABLE,
    PARTITIONS_VARIABLE,
    address_towards,
    checked_master,
    is_cluster,
    last_cause,
    look_at_workers,
    send_code,
    shared_folder,
    worker_python,
)
from .platform.disk import no_space
from .platform.hadoop import quicken
from .platform.workers import import_as_here, socket_settings, start_quickly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The only state store provider that `transformWithState` accepts."""

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
"""The setting of the state store provider."""
DEFAULT_STORE = {PROVIDER: "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"}
"""Spark's own default: state in memory, with changes in files. A small micro-batch costs less than with RocksDB."""

# Most sessions are short, so Java gets only its fast compiler and a single-threaded garbage collector. With only that
# compiler, Java reserves 48 MB for compiled code. Some dozens of queries fill these 48 MB, and Java then only
# interprets. By default, Java also collects all garbage whenever it adds classes beyond 21 MB, which a single query
# reaches.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:MetaspaceSize=256m"

_SETTINGS: dict[str, str] = {
    PROVIDER: ROCKSDB,
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    # Spark's default checkpoint manager runs a chmod process for each new file; with the other manager, a short query
    # takes a fifth less time.
    "spark.sql.streaming.checkpointFileManagerClass": checkpoint_file_manager(),
}
# The host's name may not resolve, and a local session needs no other address of its driver.
_LOCAL = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_OF_CONTEXT = (
    *("spark.master", "spark.home", "spark.local.dir", "spark.default.parallelism"),
    *("spark.app.", "spark.executorEnv.", "spark.hadoop."),
)
"""The prefixes of settings that Spark accepts at any time, but uses only at the start of a session."""
_OF_JARS = (
    *("spark.sql.extensions", "spark.sql.catalog", "spark.sql.warehouse.dir", "spark.sql.hive"),
    "spark.sql.streaming.checkpointFileManagerClass",
)
"""The prefixes of query settings that fit the classes of only one Spark version."""
_PARTITIONS = 2
_SPARKS_PARTITIONS = "200"
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_END_SECONDS = 10
"""The timeout for the end of a JVM whose connection broke (s)."""

_ONE_QUERY = threading.RLock()
"""Serializes the queries of threads without their own session, because they share the session's settings."""
_STARTING = threading.RLock()
"""Held during the start of a session, so that a second thread waits."""


class _OfThread(threading.local):
    number: int | None = None
    partitions: int | None = None
    lock = _ONE_QUERY


_session: SparkSession | None = None
_own_sessions: dict[tuple[int, int | None], SparkSession] = {}
_of_thread = _OfThread()
_partitions_said = False
_log: Path | None = None
_shared: Path | None = None


def spark_session(
    *,
    cores: int | None = None,
    partitions: int | None = None,
    memory: str = "3g",
    master: str | None = None,
    shared: Path | None = None,
    log: Path | None = None,
    settings: Mapping[str, str] | None = None,
    any_provider: bool = False,
) -> SparkSession:
    """Return this process's Spark session, starting it if needed.

    A running session is returned unchanged, including the caller's own. The arguments are then ignored, except that
    another master than the session's is refused.

    Args:
        cores: The number of cores that a local session uses; all by default.
        partitions: The number of shuffle partitions, and so of state stores, of each stateful operator; by default the
            environment variable STREAMPROOF_PARTITIONS, or 2.
        memory: The heap of the driver's JVM, in Spark's notation (`3g`, `512m`).
        master: Spark's master URL, if Spark doesn't run in this process (`local-cluster[2,1,1024]`, `spark://…`); by
            default the environment variable STREAMPROOF_MASTER, if set, unless `cores` is given. The function sends
            streamproof to the cluster's workers, and tests the workers before it returns the session.
        shared: The folder for sources and checkpoints, which this machine and all workers share under one path; by
            default the environment variable STREAMPROOF_SHARED, or the temporary directory.
        log: The log of the JVM and the workers; by default a file in the temporary directory, see `spark_log_path`.
        settings: Additional Spark settings; they override streamproof's.
        any_provider: Whether a running session may use another state store provider than RocksDB, which streamproof's
            own operators need.

    Raises:
        MissingTool: There is no suitable Java, or PySpark, pandas, PyArrow or protobuf is missing or has an unsupported
            version; or the JVM didn't start.
        BadInput: An argument is out of range, or Spark Connect is requested but not available, or the running session
            has another state store provider than RocksDB or another master than requested.
        OSError: The temporary directory isn't writable.
        StreamproofError: The cluster can't be reached, or has no suitable worker. The error comes after 5 s if no
            master listens, and after 90 s if no worker is free.
    """
    require_packages()
    if connect.is_asked():
        _require_connect(any_provider)
    with _STARTING, connect.without():
        session = _running_session()
        if session is None:
            doing("starting Spark")
            session = _start(cores, partitions, memory, master, shared, log, settings or {})
        else:
            _check_running(session, master, any_provider)
        return _of_this_thread(session)


def session_of_jobs(**arguments: Any) -> SparkSession:
    """Return the session that jobs under test see: `spark_session` or, over Spark Connect, the client of the session's
    server.

    Args:
        arguments: As `spark_session`.
    """
    session = spark_session(any_provider=True, **arguments)
    if not connect.is_asked():
        return session
    with connect.without():
        return connect.client_of(session)


def _of_this_thread(session: SparkSession) -> SparkSession:
    number, partitions = _of_thread.number, _of_thread.partitions
    if number is None:
        return session
    own = _own_sessions.get((number, partitions))
    if own is None or own.sparkContext is not session.sparkContext:
        own = _own_sessions[number, partitions] = session.newSession()
        if partitions is not None and _is_own(session) and not _partitions_said:
            own.conf.set(_SHUFFLE_PARTITIONS, str(partitions))
    return own


def _start(
    cores: int | None,
    partitions: int | None,
    memory: str,
    master: str | None,
    shared: Path | None,
    log: Path | None,
    settings: Mapping[str, str],
) -> SparkSession:
    global _session, _log, _shared, _partitions_said
    if cores is None:
        master = master or os.environ.get(MASTER_VARIABLE) or connect.master()
    _partitions_said = partitions is not None or bool(os.environ.get(PARTITIONS_VARIABLE))
    if partitions is None:
        partitions = _partitions_of_environment()
    _check_arguments(cores, partitions, memory, master)
    chosen_master = checked_master(master) if master else f"local[{cores}]" if cores else "local[*]"
    cluster = is_cluster(chosen_master)
    _partitions_said |= cluster  # a cluster needs a partition per worker, or one worker would do all the work
    folder = shared_folder(shared)
    address = address_towards(chosen_master)

    java = find_java(newest=requirements.newest_java())
    os.environ["JAVA_HOME"] = str(java.home)
    # Without PYSPARK_PYTHON, the workers start the first python3 on PATH. With PYSPARK_PYTHON, a user may choose
    # another Python of the cluster.
    os.environ["PYSPARK_PYTHON"] = worker_python() if cluster else sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

    chosen = {
        "spark.app.name": "streamproof",
        "spark.master": chosen_master,
        **_SETTINGS,
        **(_LOCAL if chosen_master.startswith("local") else _driver_at(address)),
        **({} if cluster else socket_settings(own_folder())),
        **partitions_setting(partitions),
        "spark.driver.memory": memory,
        **settings,
    }
    _log = log or default_log_path()
    session = _started(chosen, java, _log)
    if cluster:
        _prepare_workers(session, folder)
    else:
        start_quickly(session, own_folder())
        quicken(session)
    _session, _shared = session, folder
    return session


def _prepare_workers(session: SparkSession, folder: Path | None) -> None:
    try:
        send_code(session)
        look_at_workers(session, folder)
    except BaseException:
        session.stop()
        raise


def use_own_session(number: int, partitions: int | None = None) -> None:
    """Let `spark_session` give this thread a separate session: the same context, but its own settings and queries.

    Args:
        number: The session's number; concurrent threads have different numbers.
        partitions: The number of shuffle partitions of the session's queries; ignored if the number is already set, or
            on a cluster.
    """
    _of_thread.number, _of_thread.partitions, _of_thread.lock = number, partitions, threading.RLock()


def query_lock() -> threading.RLock:
    """Return the lock that a query of this thread holds while it needs the settings of its session."""
    return _of_thread.lock


@contextlib.contextmanager
def session_for_query(settings: Mapping[str, str], *, any_provider: bool = False) -> Iterator[SparkSession]:
    """Give this thread's session other settings for the duration of a query, and let no other query use the session
    meanwhile.

    Args:
        settings: The settings.
        any_provider: As `spark_session`.

    Raises:
        BadInput: Spark refuses a setting, or the setting has no effect on a running session.
    """
    with connect.without():
        spark = spark_session(any_provider=any_provider)
        if _is_own(spark) and not is_cluster(spark.sparkContext.master or "local"):
            import_as_here(spark)
        with query_lock(), contextlib.ExitStack() as within:
            if connect.is_asked():
                client = connect.client_of(spark)
                settings = {**connect.settings_of_client(spark, client), **settings}
                within.enter_context(with_settings(client, settings))
                within.enter_context(connect.crossing(spark, client))
            within.enter_context(with_settings(spark, settings))
            yield spark


@contextlib.contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session in the block.

    Raises:
        BadInput: Spark refuses a setting, or the setting has no effect on a running session.
    """
    before: dict[str, str | None] = {}
    try:
        for name, value in settings.items():
            before[name] = _changed(spark, name, value)
        yield
    finally:
        for name, earlier in before.items():
            spark.conf.unset(name) if earlier is None else spark.conf.set(name, earlier)


def _changed(spark: SparkSession, name: str, value: str) -> str | None:
    from pyspark.errors import PySparkException

    if name.startswith(_OF_CONTEXT):
        raise BadInput(
            f"settings contains {name!r}, which has no effect on a running session: start the session with it"
        )
    try:
        earlier: str | None = spark.conf.get(name, None)
        spark.conf.set(name, value)
    except PySparkException as error:
        said = first_line(error).rstrip(".")
        raise BadInput(
            f"settings contains {name!r}: Spark refuses {value!r}: {said}: give another value, or start the session "
            "with it"
        ) from None
    return earlier


def is_own_session() -> bool:
    """Return whether streamproof started the running session, so that all sessions for threads have the same
    settings.
    """
    return _is_own(spark_session(any_provider=True))


def default_store() -> dict[str, str]:
    """Return the setting for Spark's default store of a query's state; an empty mapping if the user chose a
    provider.
    """
    session = spark_session(any_provider=True)
    return DEFAULT_STORE if _is_own(session) and session.conf.get(PROVIDER) == ROCKSDB else {}


def _is_own(session: SparkSession) -> bool:
    return _session is not None and session.sparkContext is _session.sparkContext


def partitions_of_users_session() -> int | None:
    """Return the number of shuffle partitions for a user's session without this setting (None: the session has the
    setting).

    Spark's default, 200, would mean 200 state stores in each batch of each query.
    """
    session = spark_session(any_provider=True)
    said = _is_own(session) or session.sparkContext.getConf().contains(_SHUFFLE_PARTITIONS)
    return None if said or session.conf.get(_SHUFFLE_PARTITIONS) != _SPARKS_PARTITIONS else _PARTITIONS


def settings_of_users_session() -> dict[str, str]:
    """Return the query settings with which a user's session was started; an empty mapping for a session of
    streamproof.
    """
    session = spark_session(any_provider=True)
    if _is_own(session):
        return {}
    started: list[tuple[str, str]] = session.sparkContext.getConf().getAll()
    return {name: value for name, value in started if name.startswith("spark.sql.") and not name.startswith(_OF_JARS)}


def partitions_setting(partitions: int | None) -> dict[str, str]:
    """Return the setting for a number of shuffle partitions (None for the session's own number)."""
    return {} if partitions is None else {_SHUFFLE_PARTITIONS: str(partitions)}


def sessions() -> list[SparkSession]:
    """Return the sessions that may have queries: the active session, and the sessions of threads."""
    context = sys.modules.get("pyspark.sql")
    active = None if context is None else context.SparkSession.getActiveSession()
    return [*([] if active is None else [active]), *_own_sessions.values()]


def work_folder() -> Path | None:
    """Return the folder for sources and checkpoints that the workers share (None for the temporary directory)."""
    return _shared if _shared is not None else shared_folder(None)


def spark_log_path() -> Path | None:
    """Return the log file of the session's JVM and workers, or None if streamproof hasn't started a JVM."""
    return _log


def default_log_path() -> Path:
    """Return the log of this process, in this user's folder in the temporary directory; the folder is created."""
    return log_path("spark")


def why_jvm_died(error: Exception | None = None) -> str | None:
    """Return a message about the end of this process's JVM, with its log (None if it is running, or none was started).

    Args:
        error: The exception of a call to the JVM; if the connection is broken, the function waits up to 10 s for the
            JVM's end.
    """
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    gateway = None if context is None else context._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return None
    from py4j.protocol import Py4JError, Py4JJavaError

    broken = isinstance(error, Py4JError | ConnectionError | EOFError) and not isinstance(error, Py4JJavaError)
    try:
        code = process.wait(_END_SECONDS if broken else 0)
    except subprocess.TimeoutExpired:
        return None
    if code == -signal.SIGKILL:
        how = "it was killed (SIGKILL), as the system does when memory runs out: free memory, or run fewer histories"
    elif code < 0:
        how = f"it was ended by {signal.Signals(-code).name}: look for the sender of the signal, or for a crash of Java"
    else:
        how = f"it exited with {code}"
    return f"Spark's JVM died: {how}; the log is {_log or 'the standard error of this process'}"


def require_packages() -> None:
    """Raise `MissingTool` if a Python package that Spark's stream operators need is missing or unsupported."""
    for name in ("pyspark", "pandas", "pyarrow", "protobuf"):
        diagnosis = requirements.package(name)
        if diagnosis.blocks:
            raise MissingTool(f"{name}: {diagnosis.found}. Install it with `{diagnosis.remedy}`.")
    home = requirements.spark_home()
    if home.blocks:
        raise MissingTool(f"{home.name}={home.found}: `{home.remedy}`")


def _require_connect(of_jobs: bool) -> None:
    connect.require()
    if not of_jobs:
        raise BadInput(
            "SPARK_REMOTE is set, but Spark Connect is for jobs under test, not for streamproof's own operators: "
            "`unset SPARK_REMOTE`"
        )


def _check_arguments(cores: int | None, partitions: int, memory: str, master: str | None) -> None:
    if cores is not None and cores < 1:
        raise BadInput(f"cores={cores}: Spark needs at least one core; leave it out to use all cores.")
    if cores is not None and master is not None:
        raise BadInput(
            f"cores={cores} and master={master!r}: a master URL contains its own cores; give only one of the two."
        )
    if partitions < 1:
        raise BadInput(f"partitions={partitions}: a stateful operator needs at least one shuffle partition.")
    if not re.fullmatch(r"\d+[kmgt]b?", memory, re.IGNORECASE):
        raise BadInput(f"memory={memory!r} isn't a size in Spark's notation: write it as `3g` or `512m`.")


def _partitions_of_environment() -> int:
    given = os.environ.get(PARTITIONS_VARIABLE)
    if not given:
        return _PARTITIONS
    if not re.fullmatch(r"\d+", given):
        raise BadInput(f"{PARTITIONS_VARIABLE}={given!r} isn't a number of partitions: write a number such as 7.")
    return int(given)


def _driver_at(address: str | None) -> dict[str, str]:
    # Workers may not resolve this machine's name, but can reach the address that this machine uses towards their
    # master. An address that the user has set takes precedence.
    named = {"SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_IP"} & os.environ.keys()
    return {} if address is None or named else {"spark.driver.host": address}


def _running_session() -> SparkSession | None:
    """Return the running session of this process, ours or the caller's."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    if _session is not None and _session.sparkContext is SparkContext._active_spark_context:
        return _session
    # On a bare SparkContext, this line creates the caller's session, with the caller's settings.
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _check_running(session: SparkSession, master: str | None, any_provider: bool) -> None:
    if master and session.sparkContext.master != master:
        raise BadInput(
            f"a Spark session runs on {session.sparkContext.master}, not on {master}: stop it, or start it there."
        )
    if session is _session or any_provider:
        return
    provider = session.conf.get(PROVIDER)
    if provider != ROCKSDB:
        raise BadInput(
            f"The running Spark session stores state in {provider}, but transformWithState needs RocksDB: "
            f'set it with `spark.conf.set("{PROVIDER}", "{ROCKSDB}")`, or stop the session.'
        )


def _started(settings: Mapping[str, str], java: JavaHome, log: Path) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    conf = SparkConf().setAll(list(settings.items()))
    gateway = SparkContext._gateway
    if gateway is None:
        try:
            with _opened(log) as file:
                gateway = spark_jvm.launch(conf, file, java_options(java))
        except PySparkException as error:
            if condition_of(error) != "JAVA_GATEWAY_EXITED":
                raise
            raise MissingTool(_why_not_started(java, log)) from error
    with _reported_refusal(settings["spark.master"], log):
        with _interrupts_kept():
            context = SparkContext(conf=conf, gateway=gateway)
        # py4j's server would print a traceback of a broken connection, which the caller of the JVM already reports.
        vars(context._accumulatorServer)["handle_error"] = lambda request, client_address: None
        # If no master accepts a context, PySpark returns a stopped context; this call reports the refusal.
        return SparkSession.builder.getOrCreate()


def _why_not_started(java: JavaHome, log: Path) -> str:
    what = f"Spark's JVM didn't start on Java {java.version} ({java.home})"
    if (ended := spark_jvm.ended_by()) is not None:
        return f"{what}: it was ended by {ended}; the system sends SIGKILL when memory runs out; the log is {log}"
    with contextlib.suppress(OSError):
        if (full := no_space(log.read_text(errors="replace"), work_folder())) is not None:
            return f"{what}: {full}; the log is {log}"
    if (limits := low_limits()) is not None:
        return f"{what}, and {limits}; the log is {log}"
    return f"{what}: the reason is in {log}; set JAVA_HOME to another Java 17 or newer, or request less memory."


@contextlib.contextmanager
def _reported_refusal(master: str, log: Path) -> Iterator[None]:
    """Explain in one sentence why Spark started no context, because a master's refusal leaves a long Java trace."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        if SparkContext._active_spark_context is not None:
            with contextlib.suppress(Exception):  # the JVM may have died
                SparkContext._active_spark_context.stop()
        text, limits = str(error), low_limits()
        if (dead := why_jvm_died(error)) is not None:
            raise StreamproofError(f"{dead}{f' ({limits})' if limits else ''}") from error
        why = no_space(text, work_folder()) or last_cause(text)
        if limits and "Too many open files" in text:
            why = limits
        if "stopped SparkContext" in why:
            why = f"the server there isn't a master of Spark {version('pyspark')}, or accepts no application"
        raise StreamproofError(f"Spark didn't start on {master}: {why}; the log is {log}") from error


@contextlib.contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep this process's handler of Ctrl-C, because PySpark's handler would call the JVM in the middle of another
    call.
    """
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
        return open_log(log)
    except OSError as error:
        raise BadInput(f"Spark's log can't be written to {log}: {error.strerror}; name another file.") from error
