"""A Kafka broker of this process: one node in KRaft mode, on loopback and free ports, in a temporary folder.

The broker runs in a JVM that ends with this process in any case. For an existing cluster, the module only tests whether
the cluster responds.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....reference.core.errors import BadInput, StreamproofError
from ...system.work import temporary_folder
from ..kafka.functions import JavaFunctions
from ..kafka.jvm import Coordinates, KafkaJvm, kafka_jars, start_jvm
from ..kafka.versions import DEFAULT

BROKER = Coordinates("org.apache.kafka", "kafka_2.13", DEFAULT)
"""The broker; older releases of Kafka Streams also run on it."""

LOGGING = Coordinates("org.slf4j", "slf4j-simple", "1.7.36")
"""The library that writes the broker's warnings to its log; without this library, the warnings are lost."""

LOOPBACK = "127.0.0.1"
_CLUSTER_ID = "c3RyZWFtcHJvb2Ytb24tMQ"  # any 16 bytes in base64
_START_SECONDS = 90
_STARTED = ("kafka.server.KafkaRaftServer", "awaitShutdown")
"""The class and method in which the server's thread waits after its start; other threads have a method of that name
too.
"""
_END_SECONDS = 5
_ATTEMPTS = 3
_OPTIONS = [
    "-Xmx768m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
]


@dataclass(frozen=True)
class Cluster:
    """A Kafka cluster: its address, and its clients' properties.

    Attributes:
        bootstrap: `host:port`, or several addresses separated by commas.
        client: Additional properties of every client, such as its credentials.
        is_own: Whether this process started the cluster, and removes it at the end.
        why_ended: Returns the reason why the cluster has ended (None while it is running, and always for a foreign
            cluster).
    """

    bootstrap: str
    client: Mapping[str, str] = field(default_factory=dict)
    is_own: bool = False
    why_ended: Callable[[], str | None] = lambda: None

    def require_alive(self) -> None:
        """Raise if the cluster has ended.

        Raises:
            StreamproofError: The cluster has ended; the message contains the reason, and the path of its log.
        """
        if (why := self.why_ended()) is not None:
            raise StreamproofError(why)


def existing_cluster(bootstrap: str, client: Mapping[str, str] | None = None) -> Cluster:
    """Return a running cluster, if an address accepts connections.

    Args:
        bootstrap: `host:port`, or several addresses separated by commas, of which at least one must accept connections.
        client: Additional properties of every client.

    Raises:
        BadInput: An address is invalid.
        StreamproofError: No address accepts connections.
    """
    reasons = []
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise BadInput(f"--bootstrap {address!r} isn't an address: give host:port, such as localhost:9092")
        try:
            socket.create_connection((host.strip("[]"), int(port)), 5).close()
        except OSError as error:
            reasons.append(f"{address.strip()} ({error.strerror or error})")
        else:
            return Cluster(bootstrap, dict(client or {}))
    raise StreamproofError(
        f"can't reach Kafka at {', '.join(reasons)}: start it, or leave --bootstrap out to start a broker here"
    )


def read_client_properties(path: Path) -> dict[str, str]:
    """Read a client's properties from a file, as `--command-config` of Kafka's own tools does.

    Raises:
        BadInput: The file is unreadable, or a line contains no `=`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: can't be read ({getattr(error, 'strerror', None) or 'not UTF-8'})") from None
    found = {}
    for number, line in enumerate(text.replace("\\\n", "").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise BadInput(f"{path}: line {number} contains no =: write name=value, such as security.protocol=SASL_SSL")
        found[name.strip()] = value.strip()
    return found


def broker_jars() -> Path:
    """Return the folder with the broker's jars; the first call downloads them to the user's cache.

    Raises:
        MissingTool: The jars can't be downloaded, for example without a network.
    """
    return kafka_jars(BROKER, LOGGING)


@contextlib.contextmanager
def own_broker(properties: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Run a broker for the duration of a block, and remove it completely.

    Args:
        properties: Properties of the broker that replace or extend `server_properties`.

    Raises:
        MissingTool: The broker's jars can't be downloaded, or there is no Java.
        StreamproofError: The broker doesn't start; the message contains the reason, and the path of its log.
    """
    jars = broker_jars()
    with temporary_folder() as folder:
        jvm, port = _started(jars, folder, properties or {})
        try:
            yield Cluster(f"{LOOPBACK}:{port}", is_own=True, why_ended=lambda: _why_ended(jvm))
        finally:
            jvm.stop()


def _started(jars: Path, folder: Path, properties: Mapping[str, str]) -> tuple[KafkaJvm, int]:
    """Start a broker; if another process takes one of its ports first, retry on other ports."""
    for attempt in range(_ATTEMPTS):
        jvm = start_jvm(jars, "kafka-broker", _OPTIONS)
        try:
            port, controller = free_ports(2)
            own = folder / str(attempt)
            own.mkdir()
            _await_start(jvm, _run(jvm, own, {**server_properties(own, port, controller), **properties}))
        except BaseException:
            jvm.stop()
            if attempt + 1 < _ATTEMPTS and "in use" in (said(jvm.log) or ""):
                continue
            raise
        return jvm, port
    raise AssertionError("the last attempt returns or raises")


def free_ports(count: int) -> list[int]:
    """Return loopback ports that are free at the moment."""
    with contextlib.ExitStack() as bound:
        sockets = [bound.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]


def server_properties(folder: Path, port: int, controller: int) -> dict[str, str]:
    """Return the configuration of a broker that is its own controller.

    Args:
        folder: The folder of its data.
        port: The port for clients.
        controller: The port of the controller.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(folder / "log"),
        # A single node can't replicate, so each topic has one replica.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        # Don't wait for other clients, because no other client joins the group.
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
    }


def _run(jvm: KafkaJvm, folder: Path, properties: Mapping[str, str]) -> Any:
    """Format the storage and start the server in the JVM, as Kafka's scripts do; return the server's thread."""
    from py4j.protocol import Py4JError

    path = folder / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="utf-8")
    java, functions = jvm.gateway.jvm, JavaFunctions(jvm.gateway)
    format_ = functions.array(java.String, ["format", "-t", _CLUSTER_ID, "-c", str(path)])
    try:
        java.kafka.tools.StorageTool.execute(format_, java.System.err)
    except Py4JError as error:
        reason = str(getattr(error, "java_exception", error))
        raise StreamproofError(f"the Kafka broker's folder can't be created ({reason}); its log is {jvm.log}") from None
    serve = functions.static("kafka.Kafka", "main", "void", "String[]")
    serve = functions.bound(serve, 0, functions.array(java.String, [str(path)]))
    thread = java.Thread(functions.implementing("Runnable", serve))
    thread.setDaemon(True)
    thread.start()
    return thread


def _await_start(jvm: KafkaJvm, thread: Any) -> None:
    """Wait until the server has started: then the server's thread only waits for the server's end.

    An open port doesn't prove that the broker listens, because another process may have taken the port.
    """
    from py4j.protocol import Py4JError

    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        try:
            frames = [(frame.getClassName(), frame.getMethodName()) for frame in thread.getStackTrace()]
            if _STARTED in frames:
                return
        except (Py4JError, OSError):
            jvm.ended(_END_SECONDS)  # wait for the end of the JVM, which a broker that can't start ends
        if not jvm.is_alive:
            raise StreamproofError(_why_ended(jvm) or "")
        time.sleep(0.05)
    raise StreamproofError(f"the Kafka broker didn't start within {_START_SECONDS} s; its log is {jvm.log}")


def _why_ended(jvm: KafkaJvm) -> str | None:
    if jvm.is_alive:
        return None
    reason = said(jvm.log)
    return f"the Kafka broker ended{f' ({reason})' if reason else ''}; its log is {jvm.log}"


def said(log: Path) -> str | None:
    """Return the root exception in a broker's log (None if the log contains no exception)."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE) or re.findall(
        r"^(?:[\w.$]+\.)?(\w+(?:Exception|Error): .+)$", text, re.MULTILINE
    )
    return found[-1][:300] if found else None
