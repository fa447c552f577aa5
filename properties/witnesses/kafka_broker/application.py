"""The Kafka Streams application that joins two tables by foreign key: start, stop, and wait until no record waits."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....reference.core.errors import StreamproofError
from ...system.work import temporary_folder
from ..kafka.builder import DSL, STREAMS, Builder, KafkaDialect
from .broker import Cluster
from .clients import Clients, Partition, Received, explained, explaining

INNER, LEFT, INNER_BY_LEFT = "inner", "left", "inner-by-left"
JOINS = (INNER, LEFT, INNER_BY_LEFT)
"""The inner join, the left join, and the inner join as a left join whose joiner returns null without a right row."""
GUARANTEES = ("at_least_once", "exactly_once_v2")
FOREIGN_KEY = "foreign_key"
"""The default field of a left row that contains its right key."""

_SERDE = "org.apache.kafka.common.serialization.Serdes$StringSerde"
_START_SECONDS = 120
_STOP_SECONDS = 10
_QUIET_SECONDS = 120
"""The time (s) without progress, beyond three commit intervals, after which the witness gives an application up."""
_STILL_SECONDS = 0.5
_NEVER_MS = 2**53
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Settings:
    """The settings of the application.

    Attributes:
        join: One of `JOINS`.
        commit_interval_ms: The interval at which offsets are committed, and caches are written.
        cache_bytes: The size of the caches; 0 for no cache.
        guarantee: One of `GUARANTEES`.
        partitions: The partitions of each topic.
        threads: The threads of the application.
        linger_ms: The time for which a producer waits for more records, in ms (None for Kafka Streams' own default,
            100).
        foreign_key: The field of a left row that contains its right key.
        keeps_messages: Whether processed messages stay in the internal topics, so that they can be read.
    """

    join: str = INNER
    commit_interval_ms: int = 100
    cache_bytes: int = 0
    guarantee: str = GUARANTEES[0]
    partitions: int = 1
    threads: int = 1
    linger_ms: int | None = None
    foreign_key: str = FOREIGN_KEY
    keeps_messages: bool = False

    def properties(self, application: str, cluster: Cluster, state: Path) -> dict[str, str]:
        """Return the properties of Kafka Streams.

        Args:
            application: The application's name, which is the prefix of its group and its own topics.
            cluster: The cluster.
            state: The folder of its state.
        """
        found = {
            **cluster.client,
            "application.id": application,
            "bootstrap.servers": cluster.bootstrap,
            "state.dir": str(state),
            "default.key.serde": _SERDE,
            "default.value.serde": _SERDE,
            "commit.interval.ms": str(self.commit_interval_ms),
            "statestore.cache.max.bytes": str(self.cache_bytes),
            "processing.guarantee": self.guarantee,
            "num.stream.threads": str(self.threads),
            # A closed application doesn't leave its group; the broker reassigns its partitions after this time.
            "main.consumer.session.timeout.ms": "6000",
            "main.consumer.heartbeat.interval.ms": "2000",
            "metric.reporters": "",
        }
        if self.keeps_messages:
            found["repartition.purge.interval.ms"] = str(_NEVER_MS)
        return found if self.linger_ms is None else {**found, "producer.linger.ms": str(self.linger_ms)}


class Application:
    """A Kafka Streams application on a cluster, with its own topics.

    Args:
        clients: Clients of the cluster.
        settings: The settings of the application.
        state: The folder of its state.
    """

    def __init__(self, clients: Clients, settings: Settings, state: Path) -> None:
        self.clients, self.settings = clients, settings
        self.name = f"streamproof-{uuid.uuid4().hex[:12]}"
        self.left, self.right, self.out = (f"{self.name}-{topic}" for topic in ("left", "right", "out"))
        self._properties = settings.properties(self.name, clients.cluster, state)
        self._failures = clients.jvm.java.util.ArrayList()
        self._streams: Any = None

    def start(self) -> None:
        """Start the application, and wait until it is running.

        Raises:
            StreamproofError: The application fails, or isn't running within 2 minutes.
        """
        jvm, functions = self.clients.jvm, self.clients.functions
        with explaining(self.clients.cluster):
            self._streams = jvm.org.apache.kafka.streams.KafkaStreams(*self._topology())
            response = f"{STREAMS}.errors.StreamsUncaughtExceptionHandler$StreamThreadExceptionResponse"
            keep = functions.method("java.util.ArrayList", "add", "boolean", "Object").bindTo(self._failures)
            end = functions.handles.constant(functions.kind(response), functions.kind(response).getEnumConstants()[1])
            handle = functions.first(keep, functions.ignoring(end, 0, "Object"))
            handle = functions.retyped(handle, response, "Throwable")
            handler = functions.implementing(f"{STREAMS}.errors.StreamsUncaughtExceptionHandler", handle)
            self._streams.setUncaughtExceptionHandler(handler)
            self._streams.start()
        deadline = time.monotonic() + _START_SECONDS
        while self.require_alive() != "RUNNING":
            if time.monotonic() > deadline:
                raise StreamproofError(f"Kafka Streams didn't run within {_START_SECONDS} s: it is {self._state()}")
            time.sleep(_LOOK_SECONDS)

    def require_alive(self) -> str:
        """Return the application's state, such as `RUNNING`.

        Raises:
            StreamproofError: The application has failed, or its broker has ended; the message contains the reason.
        """
        self.clients.cluster.require_alive()
        state = self._state()
        if state in ("ERROR", "PENDING_ERROR"):
            why = explained(self._failures.get(0), self.clients.cluster.bootstrap) if len(self._failures) else state
            raise StreamproofError(f"Kafka Streams failed: {why}")
        return state

    def _state(self) -> str:
        return str(self._streams.state().toString())

    def stop(self) -> None:
        """Stop the application, and wait for an orderly end if possible; a second call does nothing."""
        if self._streams is not None:
            seconds = 0 if self.clients.cluster.why_ended() else _STOP_SECONDS
            self._streams.close(self.clients.jvm.java.time.Duration.ofSeconds(seconds))

    def restart(self, wiped: bool = False) -> None:
        """Stop the application, and restart it, with or without its state.

        Args:
            wiped: Whether to delete the folder of the application's state before the start, so that the application
                restores the state from Kafka.
        """
        self.stop()
        if wiped:
            with explaining(self.clients.cluster):
                self._streams.cleanUp()
        self.start()

    def await_quiet(self) -> float:
        """Wait until every record has been processed and no offset moves; return the seconds that this took.

        Raises:
            StreamproofError: The application fails, or processes none of the waiting records for 2 minutes and three
                commit intervals.
        """
        patience = _QUIET_SECONDS + 3 * self.settings.commit_interval_ms / 1000
        return await_quiet(self._looked_at, patience, time.monotonic, time.sleep)

    def _looked_at(self) -> Look:
        self.require_alive()
        own = self.clients.topics(f"{self.name}-")
        consumed = [name for name in own if name != self.out and not name.endswith("-changelog")]
        # Read the committed offsets before the ends: the output of committed records is already written, so the ends
        # don't move afterwards.
        committed = self.clients.committed(self.name)
        ends = self.clients.ends([*consumed, self.out], self.settings.partitions)
        return Look(committed, ends, consumed)

    def output(self) -> list[Received]:
        """Return all records of the output topic."""
        return self.clients.read_all(self.out, self.settings.partitions)

    def _topology(self) -> tuple[Any, Any]:
        """Return the topology, `left.join(right, extractor, joiner).toStream().to(out)`, and the properties."""
        builder = Builder(self.clients.functions, KafkaDialect(), self._properties)
        functions, handles = self.clients.functions, self.clients.functions.handles
        extractor = functions.function(builder.text_at(self.settings.foreign_key))
        joiner = builder.joiner()
        if self.settings.join == INNER_BY_LEFT:
            pair = functions.retyped(functions.template("[%1$s,%2$s]", 2), "Object", "Object", "Object")
            is_null = functions.static("java.util.Objects", "isNull", "boolean", "Object")
            nothing = functions.ignoring(handles.constant(functions.kind("Object"), None), 0, "Object", "Object")
            handle = handles.guardWithTest(functions.ignoring(is_null, 0, "Object"), nothing, pair)
            joiner = functions.implementing(f"{DSL}.ValueJoiner", handle)
        kind = INNER if self.settings.join == INNER else LEFT
        table = builder.joined(kind, builder.table(self.left), builder.table(self.right), extractor, joiner)
        return builder.built(table.toStream(), self.out)


@contextlib.contextmanager
def running(clients: Clients, settings: Settings) -> Iterator[Application]:
    """Run an application for the duration of a block, and then delete its topics, its group and its state.

    Raises:
        StreamproofError: The cluster doesn't answer, or the application doesn't start.
    """
    clients.require_answer()
    with temporary_folder() as state:
        application = Application(clients, settings, state)
        try:
            clients.create_topics([application.left, application.right, application.out], settings.partitions)
            application.start()
            yield application
        finally:
            with contextlib.suppress(Exception):  # ignore errors of stop(), because they would hide the original error
                application.stop()
                if not clients.cluster.is_own:
                    clients.delete(clients.topics(f"{application.name}-"), application.name)


@dataclass(frozen=True)
class Look:
    """The state of an application's topics at one time.

    Attributes:
        committed: The offsets that the application has committed.
        ends: For each partition, the end of all records, and the end of records whose transaction has ended.
        consumed: The topics that the application reads; the ends also include its output.
    """

    committed: Mapping[Partition, int]
    ends: Mapping[Partition, tuple[int, int]]
    consumed: Collection[str]

    @property
    def waiting(self) -> list[Partition]:
        """The partitions with unprocessed records, or with open transactions."""
        return [
            partition
            for partition, (end, stable) in self.ends.items()
            if stable < end or (partition.topic in self.consumed and self.committed.get(partition, 0) < end)
        ]


def await_quiet(
    look: Callable[[], Look], patience: float, now: Callable[[], float], sleep: Callable[[float], None]
) -> float:
    """Wait until, for half a second, no record waits and no partition's end moves; return the seconds before that half
    second.

    Args:
        look: Reads the state of the topics.
        patience: The longest allowed time (s) without progress while records wait.
        now: Returns the current time (s).
        sleep: Waits for a number of seconds.

    Raises:
        StreamproofError: There was no progress; the message counts the partitions with waiting records.
    """
    start = moved = now()
    still: float | None = None
    last: Look | None = None
    while True:
        seen, at = look(), now()
        if seen != last:
            last, moved, still = seen, at, None
        if not seen.waiting:
            still = at if still is None else still
            if at - still >= _STILL_SECONDS:
                return still - start
        elif at - moved > patience:
            names = ", ".join(f"{topic}-{number}" for topic, number in seen.waiting[:3])
            raise StreamproofError(
                f"Kafka Streams hasn't processed anything for {patience:.0f} s, and records wait ({names}): no result "
                "can be judged; check the cluster, or play fewer histories"
            )
        sleep(_LOOK_SECONDS)
