"""Spark's JVM, which ends when this process ends for any reason, and which this process can end at once.

A JVM that PySpark starts must itself notice the end of its standard input. During its start, the JVM notices the end
late or never.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ....system import signals
from ....system.work import own_folder

_STOP_SECONDS = 10.0
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_PR_SET_PDEATHSIG = 1

_process: subprocess.Popen[bytes] | None = None


def launch(conf: Any, log: BinaryIO, options: Sequence[str] = ()) -> Any:
    """Start Spark's JVM with a configuration, write the JVM's output to `log`, and return PySpark's gateway to the JVM.

    The JVM also gets the additional `options`. The JVM's temporary files are in this process's own folder. If a JVM has
    started this process (as `spark-submit` does), the function uses that JVM unchanged.

    Raises:
        PySparkRuntimeError: The JVM ended before it listened, with the condition JAVA_GATEWAY_EXITED.
        OSError: Spark's start script can't be run.
    """
    from pyspark.java_gateway import launch_gateway

    if _PORT in os.environ or os.name != "posix":
        return launch_gateway(conf, {"stdout": log, "stderr": log})
    connection = own_folder() / "connection"
    process = _started(conf, log, connection, options)
    port, secret = _listening(process, connection)
    os.environ.update({_PORT: str(port), _SECRET: secret})
    try:
        gateway = launch_gateway(conf)
    finally:
        del os.environ[_PORT], os.environ[_SECRET]
    gateway.proc = process
    return gateway


def end(seconds: float = _STOP_SECONDS) -> None:
    """End the launched JVM, and wait for its end; kill a JVM that doesn't end in time."""
    process = _process
    if process is None or process.poll() is not None:
        return
    assert process.stdin is not None
    # A listener or a finalizer may call a JVM that is ending, and the root logger of Python would print py4j's error.
    logging.getLogger().addFilter(lambda record: f"{os.sep}py4j{os.sep}" not in record.pathname)
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill()
        process.wait()


def ended_by() -> str | None:
    """Return the name of the signal that ended the launched JVM (None: no signal)."""
    code = None if _process is None else _process.poll()
    return signal.Signals(-code).name if code is not None and code < 0 else None


def kill() -> None:
    """Kill the launched JVM and its child processes, without waiting for their end."""
    process = _process
    if process is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _started(conf: Any, log: BinaryIO, connection: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
    from pyspark.find_spark_home import _find_spark_home

    global _process
    own = map(_quoted, [f"-Djava.io.tmpdir={connection.parent}", *options])
    conf.set(_JAVA_OPTIONS, " ".join([conf.get(_JAVA_OPTIONS, ""), *own]).strip())
    command = [os.path.join(_find_spark_home(), "bin", "spark-submit")]
    for name, value in conf.getAll():
        command += ["--conf", f"{name}={value}"]
    command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    connection.unlink(missing_ok=True)
    environment = {**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection)}
    if _process is None:
        atexit.register(end)
        signals.on_signal(kill)
    _process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # the JVM ends when this pipe closes
        stdout=log,
        stderr=log,
        env=environment,
        preexec_fn=ending_with_parent(),
        start_new_session=True,  # so that Ctrl-C interrupts only this process
    )
    return _process


def _listening(process: subprocess.Popen[bytes], connection: Path) -> tuple[int, str]:
    """Wait until the JVM reports its port and its secret for access."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.serializers import UTF8Deserializer, read_int

    while not connection.is_file():
        if process.poll() is not None:
            # positional, because PySpark 4.0 renamed both parameters
            raise PySparkRuntimeError(None, "JAVA_GATEWAY_EXITED", {})
        time.sleep(0.05)
    with connection.open("rb") as file:
        return read_int(file), UTF8Deserializer().loads(file)


def ending_with_parent() -> Callable[[], None] | None:
    """Return the function with which a child asks to be killed when this process ends; only Linux supports that.

    Linux kills the child when the starting thread ends, so only the main thread may use the function.
    """
    if not sys.platform.startswith("linux") or threading.current_thread() is not threading.main_thread():
        return None
    library, parent = ctypes.CDLL(None), os.getpid()

    def ask() -> None:
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before the request
            os._exit(1)

    return ask


def _quoted(option: str) -> str:
    """Return an option in the form in which Spark reads a list of options."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
