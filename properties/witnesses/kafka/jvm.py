"""The JVM of the real Kafka Streams: its jars, found or downloaded once per user, and a gateway to it.

PySpark's Ivy downloads the jars by their Maven coordinates to the user's cache, where later runs find them without a
network. The JVM is small, and separate from Spark's; a process has one JVM per requested release of Kafka. Each JVM
ends with this process, because a JVM stops as soon as the pipe to its standard input breaks.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from platformdirs import user_cache_path

from ....reference.core.errors import MissingTool
from ....specs.java import find_java
from ...system import signals
from ...system.work import log_path, open_log, own_folder, remove_own
from .versions import DEFAULT, RELEASES, release, version_in_use


class Coordinates(NamedTuple):
    """The Maven coordinates of a jar; its dependencies are downloaded with it."""

    group: str
    artifact: str
    version: str


TEST_DRIVER = Coordinates("org.apache.kafka", "kafka-streams-test-utils", DEFAULT)
"""The test driver of the default release, which depends on Kafka Streams."""

JARS_VARIABLE = "STREAMPROOF_KAFKA_JARS"
"""The environment variable that names a folder with the jars, instead of the user's cache."""

_FETCH_SECONDS = 600
_STOP_SECONDS = 5
_JAVA_OPTIONS = [
    "-Xmx256m",
    # Most runs are too short for the slower compiler or a parallel collector to pay off.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
]


def driver_of(version: str | None = None) -> Coordinates:
    """Return the coordinates of the test driver of a release (None for the current release).

    Raises:
        BadInput: The version isn't a release, or is too old.
    """
    version = version_in_use() if version is None else version
    release(version)
    return TEST_DRIVER._replace(version=version)


def cached_jars(of: Coordinates = TEST_DRIVER) -> Path:
    """Return the folder of this user's cache for a jar and its dependencies; it may not exist yet."""
    return user_cache_path("streamproof") / f"{of.artifact}-{of.version}"


def find_jars(of: Coordinates = TEST_DRIVER) -> Path | None:
    """Return the folder with the jars, without starting anything (None if they must still be downloaded).

    Raises:
        MissingTool: The environment variable names a folder without the jar, and without a subfolder (named as in the
            cache) that contains it.
    """
    named = os.environ.get(JARS_VARIABLE)
    jar = f"{of.artifact}-{of.version}.jar"
    folders = [Path(named), Path(named) / f"{of.artifact}-{of.version}"] if named else [cached_jars(of)]
    for folder in folders:
        if (folder / jar).is_file():
            return folder
    if named:
        others = sorted(path.name for path in folders[0].glob(f"{of.artifact}-*.jar"))
        instead = f" but {others[0]}: use that release with --kafka-version, or" if others else ":"
        raise MissingTool(
            f"{JARS_VARIABLE}={named} has no {jar}{instead} name the folder with that jar and its dependencies, "
            f"or `unset {JARS_VARIABLE}` to download them."
        )
    return None


def kafka_jars(of: Coordinates = TEST_DRIVER, *beside: Coordinates) -> Path:
    """Return the folder with a jar and its dependencies; the first call downloads them to the user's cache.

    Args:
        of: The jar; the test driver by default.
        beside: Additional jars for the same folder.

    Raises:
        MissingTool: The jars can't be downloaded, for example without a network; or there is no Java, or no PySpark
            with its Ivy.
    """
    return find_jars(of) or _fetched(cached_jars(of), [of, *beside])


def _fetched(folder: Path, wanted: Sequence[Coordinates]) -> Path:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = own_folder(folder.parent)
    except OSError as error:
        raise MissingTool(
            f"{wanted[0].artifact} {wanted[0].version} can't be fetched into {error.filename}: {error.strerror}; set "
            f"XDG_CACHE_HOME to a writable folder, or {JARS_VARIABLE} to a folder with the jars."
        ) from error
    name = f"{wanted[0].artifact} {wanted[0].version}"
    try:
        print(f"fetching the jars of {name} into {folder}, once: up to 100 MB", file=sys.stderr, flush=True)
        for one in wanted:
            _run_ivy(work, one)
        sizes = [jar.stat().st_size for jar in (work / "jars").iterdir()]
        print(f"fetched {len(sizes)} jars of {name}: {sum(sizes) / 1e6:.0f} MB", file=sys.stderr, flush=True)
        # The folder gets its final name only when complete, because another process may download or read at the same
        # time; the first process to finish wins.
        with contextlib.suppress(OSError):
            (work / "jars").rename(folder)
    finally:
        remove_own(folder.parent)
    return folder


def _run_ivy(work: Path, of: Coordinates) -> None:
    """Download a jar and its dependencies to `work`/jars, from the repositories of this machine's Ivy."""
    command: list[str | Path] = [
        *(find_java().executable, "-cp", _pyspark_jar("ivy"), "org.apache.ivy.Main"),
        *("-cache", work / "cache", "-dependency", *of, "-confs", "default"),
        *("-retrieve", work / "jars" / "[artifact]-[revision].[ext]"),
    ]
    settings = Path.home() / ".ivy2" / "ivysettings.xml"
    if settings.is_file():
        command += ["-settings", settings]
    is_known = of.group != TEST_DRIVER.group or of.version in RELEASES
    remedy = "" if is_known else f"name an existing release, such as {', '.join(RELEASES)};  "
    remedy += (
        "download them once with a network (~/.ivy2/ivysettings.xml names a mirror, JAVA_TOOL_OPTIONS a proxy), or "
        f"set {JARS_VARIABLE} to a folder with the jars."
    )
    what = f"The jars of {':'.join(of)} are missing"
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise MissingTool(f"{what}, and Ivy didn't fetch them in {_FETCH_SECONDS} s: {remedy}") from None
    if done.returncode != 0 or not (work / "jars" / f"{of.artifact}-{of.version}.jar").is_file():
        raise MissingTool(f"{what}, and Ivy can't fetch them ({_reason(done.stdout + done.stderr)}): {remedy}")


def _reason(report: str) -> str:
    """Return the reason of a failed download from Ivy's report."""
    emitted = re.findall(r"\((\S+Exception: [^)]*)\)", report) or re.findall(
        r"module not found: \S+|\S+Exception: .*", report
    )
    return emitted[0] if emitted else "it gave no reason"


def _pyspark_jar(name: str) -> Path:
    spec = find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec is not None and spec.origin is not None else None
    jars = sorted(folder.glob(f"{name}-*.jar")) if folder is not None else []
    if not jars:
        raise MissingTool(f"PySpark's {name} jar, which runs Kafka Streams, is missing: install pyspark anew.")
    return jars[0]


@dataclass(eq=False)
class KafkaJvm:
    """A running JVM with Kafka Streams on its class path.

    Attributes:
        gateway: py4j's gateway into the JVM.
        log: The JVM's log file.
    """

    gateway: Any
    log: Path
    _process: subprocess.Popen[bytes]

    @property
    def is_alive(self) -> bool:
        """Return whether the JVM is still running."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Stop the JVM, and wait for its end; a second call does nothing."""
        with contextlib.suppress(Exception):
            self.gateway.close()
            # Without this line, py4j's collector asks the stopped JVM to delete each object that Python deletes.
            self.gateway._gateway_client.is_connected = False
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ended(self, seconds: float) -> bool:
        """Wait up to `seconds`; return whether the JVM has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return not self.is_alive

    def kill(self) -> None:
        """Kill the JVM, without waiting for its end."""
        self._process.kill()


_jvms: dict[str, KafkaJvm] = {}
"""The JVMs of this process, by the release of Kafka Streams."""
_starting = threading.Lock()


def why_kafka_died(error: Exception) -> str | None:
    """Return a message that a JVM of Kafka Streams died, with its log's path (None if none has died).

    Args:
        error: The exception; after a broken connection the function waits up to 10 s for the end of a JVM.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    broken = isinstance(error, Py4JError | ConnectionError | EOFError) and not isinstance(error, Py4JJavaError)
    if not broken:
        return None
    deadline = time.monotonic() + _STOP_SECONDS
    dead = next((jvm for jvm in _jvms.values() if jvm.ended(max(0.0, deadline - time.monotonic()))), None)
    if dead is None:
        return None
    return (
        "the JVM of Kafka Streams died, probably because memory ran out: provide more, or play fewer histories at "
        f"once; the log is {dead.log}"
    )


def kafka_jvm(version: str | None = None) -> KafkaJvm:
    """Return this process's JVM with a release of Kafka Streams, starting it if needed.

    Args:
        version: The release, from 3.6 on (None for `version_in_use()`).

    Raises:
        BadInput: The version isn't a release, or is too old.
        MissingTool: The jars, Java 17 or newer, PySpark or py4j is missing; or the JVM didn't start.
    """
    driver = driver_of(version)
    with _starting:
        found = _jvms.get(driver.version)
        if found is None or not found.is_alive:
            found = _jvms[driver.version] = start_jvm(kafka_jars(driver))
        return found


def stop_kafka(version: str) -> None:
    """Stop this process's JVM with a release of Kafka Streams, if any."""
    if (found := _jvms.pop(version, None)) is not None:
        found.stop()


def start_jvm(jars: Path, name: str = "kafka", options: Sequence[str] = _JAVA_OPTIONS) -> KafkaJvm:
    """Start a JVM with all jars of a folder on its class path; the JVM ends with this process in any case.

    Args:
        jars: The folder.
        name: The name of the JVM's log, which also contains this process's number.
        options: Java's own options.

    Raises:
        MissingTool: Java 17 or newer, PySpark or py4j is missing; or the JVM didn't start.
    """
    try:
        from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    except ImportError:
        raise MissingTool("py4j, which comes with PySpark, is missing: install pyspark anew.") from None
    java = find_java()
    log = log_path(name)
    with open_log(log) as file:
        try:
            port, token, process = launch_gateway(
                jarpath=str(_pyspark_jar("py4j")),
                classpath=os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar"))),
                javaopts=[*options, f"-Djava.io.tmpdir={own_folder()}"],
                java_path=str(java.executable),
                redirect_stderr=file,
                die_on_exit=True,
                # This process handles Ctrl-C, and the JVM ends with this process.
                create_new_process_group=True,
                enable_auth=True,
                return_proc=True,
            )
        except ValueError as error:  # raised if the JVM doesn't print its port
            raise MissingTool(
                f"The JVM of Kafka Streams didn't start on Java {java.version} ({java.home}): the reason is in {log}; "
                "set JAVA_HOME to another Java 17 or newer."
            ) from error
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    jvm = KafkaJvm(gateway, log, process)
    atexit.register(jvm.stop)
    signals.on_signal(jvm.kill)
    return jvm
