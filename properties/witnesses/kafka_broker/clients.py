"""Kafka's own clients from Python: one call into the JVM sends or reads thousands of records."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

from ....reference.core.errors import StreamproofError
from ...system.visible import first_cause
from ..kafka.functions import JavaFunctions, filled
from ..kafka.jvm import driver_of, kafka_jars, kafka_jvm
from ..kafka.playing import cell, latin1, parsed, row_of, written
from .broker import Cluster, broker_jars, own_broker

CLIENTS = "org.apache.kafka.clients"
_TIMEOUT_MS = 20_000
_POLL_MS = 50
_BUFFERED = 16 << 20
"""The largest number of waiting characters in the producer; with its buffer of 32 MB full, the producer awaits each
record separately.
"""


class Sent(NamedTuple):
    """A record to send: the topic, key, value and timestamp (ms); a value of None is a tombstone."""

    topic: str
    key: str
    value: str | None
    timestamp: int


class Received(NamedTuple):
    """A received record: partition, offset, key, value and timestamp (ms)."""

    partition: int
    offset: int
    key: str
    value: str | None
    timestamp: int


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int


@contextmanager
def explaining(cluster: Cluster) -> Iterator[None]:
    """Explain a client's exceptions: the broker has ended, or the cluster refuses the client.

    Raises:
        StreamproofError: A client raised an exception; the message contains the root cause and the remedy.
    """
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        cluster.require_alive()
        raise StreamproofError(explained(error.java_exception, cluster.bootstrap)) from None


def explained(exception: Any, bootstrap: str) -> str:
    """Return the root cause of a Kafka exception, in one sentence with the remedy.

    Args:
        exception: The Java exception.
        bootstrap: The address of the cluster.
    """
    exception = first_cause(exception)
    kind, message = exception.getClass().getSimpleName(), exception.getMessage() or "no message"
    if kind in ("TimeoutException", "DisconnectException"):
        remedy = (
            "if it requires encryption or credentials, set them in a file of client properties: use --client-config"
        )
        return f"the Kafka at {bootstrap} doesn't answer ({message}): {remedy}"
    if "Authentication" in kind or "Authorization" in kind or "Ssl" in kind:
        remedy = "correct the credentials in the file of --client-config, or ask the cluster's owner for rights"
        return f"the Kafka at {bootstrap} refuses this client ({kind}: {message}): {remedy}"
    return f"the Kafka at {bootstrap} failed ({kind}: {message})"


class Clients:
    """A producer, a consumer and an administrator of one cluster.

    Each kind of request to a cluster is a method, and all methods share the connections.

    Args:
        gateway: py4j's gateway into a JVM with Kafka's clients.
        cluster: The cluster.
    """

    def __init__(self, gateway: Any, cluster: Cluster) -> None:
        self.cluster = cluster
        self.functions = JavaFunctions(gateway)
        self.jvm = gateway.jvm
        self._kafka = gateway.jvm.org.apache.kafka
        strings = self._kafka.common.serialization.Serdes.String()
        common = {"bootstrap.servers": cluster.bootstrap, "metric.reporters": "", **cluster.client}
        limits = {"default.api.timeout.ms": str(_TIMEOUT_MS), "request.timeout.ms": str(_TIMEOUT_MS // 2)}
        with explaining(cluster):
            self.admin = self._kafka.clients.admin.Admin.create(self._properties({**common, **limits}))
            self._producer = self._kafka.clients.producer.KafkaProducer(
                self._properties(
                    {
                        **common,
                        "delivery.timeout.ms": str(_TIMEOUT_MS),
                        "request.timeout.ms": str(_TIMEOUT_MS // 2),
                        "max.block.ms": str(_TIMEOUT_MS),
                        "linger.ms": "0",
                    }
                ),
                strings.serializer(),
                strings.serializer(),
            )
            self._consumed = {
                **common,
                **limits,
                "isolation.level": "read_committed",
                "enable.auto.commit": "false",
                "max.poll.records": "50000",
                "max.partition.fetch.bytes": str(16 << 20),
            }
            self._consumer = self._consumer_of(strings.deserializer())
        self._send = _sending(self.functions, self._producer)
        self._get_all, self._read = _getting(self.functions), _reading(self.functions)
        self._sent: list[Any] = []
        self._unsent = 0

    def _properties(self, content: Mapping[str, str]) -> Any:
        return filled(self.jvm.java.util.Properties(), content)

    def require_answer(self) -> None:
        """Raise if the cluster doesn't respond to a client with these properties.

        Raises:
            StreamproofError: The cluster doesn't respond; the message contains the reason and the remedy.
        """
        with explaining(self.cluster):
            self.admin.describeCluster().nodes().get()

    def create_topics(self, names: Collection[str], partitions: int) -> None:
        """Create topics that keep their records for ever, with the cluster's own replication."""
        # The records have the timestamps of histories, which are long ago.
        kept = filled(self.jvm.java.util.HashMap(), {"retention.ms": "-1"})
        optional, topic = self.jvm.java.util.Optional, self._kafka.clients.admin.NewTopic
        topics = [topic(name, optional.of(partitions), optional.empty()).configs(kept) for name in names]
        with explaining(self.cluster):
            self.admin.createTopics(self._list(topics)).all().get()
            for name in names:
                # load the topic's metadata now, because the first records would wait for it
                self._producer.partitionsFor(name)

    def topics(self, prefix: str) -> list[str]:
        """Return the names of the topics that begin with a prefix."""
        with explaining(self.cluster):
            # py4j reads an array by index, without an iterator, whose end raises an exception that PySpark mistakes for
            # its own.
            return sorted(name for name in self.admin.listTopics().names().get().toArray() if name.startswith(prefix))

    def delete(self, topics: Collection[str], group: str) -> None:
        """Delete topics, and a consumer group without members."""
        self.delete_topics(topics)
        with explaining(self.cluster):
            self.admin.deleteConsumerGroups(self._list([group])).all().get()

    def delete_topics(self, topics: Collection[str]) -> None:
        """Delete topics."""
        with explaining(self.cluster):
            self.admin.deleteTopics(self._list(topics)).all().get()

    def send(self, records: Sequence[Sent]) -> None:
        """Send records, in order, without waiting for their arrival, unless they exceed the producer's buffer.

        Raises:
            StreamproofError: As `flush`.
        """
        self.cluster.require_alive()
        text = json.dumps(records)
        self._unsent += len(text)
        with explaining(self.cluster):
            self._sent.append(self._send.apply(text))
        if self._unsent > _BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Wait until all sent records have arrived.

        Raises:
            StreamproofError: Kafka refused a record, or has ended.
        """
        sent, self._sent, self._unsent = self._sent, [], 0
        with explaining(self.cluster):
            self._producer.flush()
            for futures in sent:
                self._get_all.apply(futures)

    def committed(self, group: str) -> dict[Partition, int]:
        """Return the offsets that a consumer group has committed."""
        with explaining(self.cluster):
            found = self.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
            return {
                Partition(entry.getKey().topic(), entry.getKey().partition()): entry.getValue().offset()
                for entry in found.entrySet()
                if entry.getValue() is not None
            }

    def ends(self, topics: Collection[str], partitions: int) -> dict[Partition, tuple[int, int]]:
        """Return the ends of each partition: of all its records, and of records whose transaction has ended."""
        names = [Partition(topic, number) for topic in topics for number in range(partitions)]
        return dict(zip(names, zip(self._latest(names, False), self._latest(names, True), strict=True), strict=True))

    def _latest(self, names: Sequence[Partition], committed: bool) -> list[int]:
        admin = self._kafka.clients.admin
        level = getattr(self._kafka.common.IsolationLevel, "READ_COMMITTED" if committed else "READ_UNCOMMITTED")
        wanted, java = self.jvm.java.util.HashMap(), [self._kafka.common.TopicPartition(*name) for name in names]
        for one in java:
            wanted.put(one, admin.OffsetSpec.latest())
        with explaining(self.cluster):
            found = self.admin.listOffsets(wanted, admin.ListOffsetsOptions(level)).all().get()
            return [found.get(one).offset() for one in java]

    def read_all(self, topic: str, partitions: int) -> list[Received]:
        """Return all records of a topic whose transactions have ended, each partition's in order."""
        return self._read_by(self._consumer, topic, partitions)

    def read_raw(self, topic: str) -> list[Received]:
        """Return all records of a topic with one partition, keys and values as bytes, each a character of Latin-1."""
        with explaining(self.cluster):
            consumer = self._consumer_of(latin1(self.jvm, "Deserializer"))
            try:
                return self._read_by(consumer, topic, 1)
            finally:
                consumer.close(self.jvm.java.time.Duration.ZERO)

    def _consumer_of(self, deserializer: Any) -> Any:
        consumer = self._kafka.clients.consumer.KafkaConsumer
        return consumer(self._properties(self._consumed), deserializer, deserializer)

    def _read_by(self, consumer: Any, topic: str, partitions: int) -> list[Received]:
        parts = [self._kafka.common.TopicPartition(topic, number) for number in range(partitions)]
        wanted = self._list(parts)
        found: list[Received] = []
        with explaining(self.cluster):
            consumer.assign(wanted)
            consumer.seekToBeginning(wanted)
            ends = consumer.endOffsets(wanted)
            left = {number: ends.get(part) for number, part in enumerate(parts)}
            while any(consumer.position(parts[number]) < end for number, end in left.items()):
                found += [Received(*row) for row in json.loads(self._read.apply(consumer))]
                self.cluster.require_alive()
        return found

    def close(self) -> None:
        """Close the clients, without waiting for sent records."""
        now = self.jvm.java.time.Duration.ZERO
        self._producer.close(now)
        self._consumer.close(now)
        self.admin.close(now)

    def _list(self, members: Collection[Any]) -> Any:
        made = self.jvm.java.util.ArrayList()
        for member in members:
            made.add(member)
        return made


def _sending(functions: JavaFunctions, producer: Any) -> Any:
    """Return the function that sends the records in a JSON text, and returns the futures.

    The same in Java: parse the text as a list of rows; for each, `producer.send(new ProducerRecord(row[0], null,
    row[3], row[1], row[2]))`.
    """
    record_kind, producer_kind = f"{CLIENTS}.producer.ProducerRecord", f"{CLIENTS}.producer.KafkaProducer"
    record = functions.constructor(record_kind, "String", "Integer", "Long", "Object", "Object")
    record = functions.bound(record, 1, None)
    cells = [cell(functions, *one) for one in ((0, "String"), (3, "Long"), (1, "Object"), (2, "Object"))]
    record = functions.filtered(record, 0, *cells)
    record = functions.arranged(record, functions.type(record_kind, "Object"), 0, 0, 0, 0)
    send = functions.method(producer_kind, "send", "java.util.concurrent.Future", record_kind)
    sent = functions.then(record, send.bindTo(producer))
    return functions.function(functions.filtered(functions.each(sent), 0, parsed(functions)))


def _getting(functions: JavaFunctions) -> Any:
    """Return the function that waits for futures, and raises the exception of a failed future."""
    get = functions.method("java.util.concurrent.Future", "get", "Object")
    return functions.function(functions.each(functions.retyped(get, "Object", "Object")))


def _reading(functions: JavaFunctions) -> Any:
    """Return the function that polls a consumer once, and returns the records as JSON."""
    record = f"{CLIENTS}.consumer.ConsumerRecord"
    fields = [("partition", "int"), ("offset", "long"), ("key", "Object"), ("value", "Object")]
    row = row_of(functions, record, [*fields, ("timestamp", "long")])
    kind = f"{CLIENTS}.consumer.KafkaConsumer"
    poll = functions.method(kind, "poll", f"{CLIENTS}.consumer.ConsumerRecords", "java.time.Duration")
    poll = functions.bound(poll, 1, functions.java.time.Duration.ofMillis(_POLL_MS))
    read = functions.each(row)
    read = read.asType(read.type().changeParameterType(0, poll.type().returnType()))
    return functions.function(functions.then(poll, read, written(functions)))


@contextmanager
def clients_of(cluster: Cluster | None, progress: Callable[[str], None]) -> Iterator[Clients]:
    """Connect to a cluster for the duration of a block (None for a broker started by this process).

    Raises:
        MissingTool: Jars can't be downloaded, or there is no Java.
        StreamproofError: The broker doesn't start, or the cluster doesn't respond.
    """
    # Download the jars before both JVMs start, because both would download to the same folder.
    kafka_jars(driver_of())
    if cluster is None:
        broker_jars()
    with ExitStack() as stack:
        # Two JVMs start concurrently, because each start takes seconds.
        with ThreadPoolExecutor(1) as other:
            jvm = other.submit(kafka_jvm)
            if cluster is None:
                progress("starting a Kafka broker")
                cluster = stack.enter_context(own_broker())
        clients = Clients(jvm.result().gateway, cluster)
        try:
            yield clients
        finally:
            with suppress(Exception):  # ignore errors, because they would hide the original error
                clients.close()
