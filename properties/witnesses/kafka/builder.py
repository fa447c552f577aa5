"""The parts of Kafka Streams' topologies: inputs by name, aggregates, joins, and functions in the JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from tempfile import mkdtemp
from typing import Any

from ....reference.core.history import LARGEST_TIMESTAMP_MS
from ....reference.definitions.aggregates import Aggregate
from ...system.java_fields import private_fields
from ...system.work import own_folder
from .functions import JavaFunctions, filled
from .versions import Stores, driver_settings, ignores_stream_joins

STREAMS = "org.apache.kafka.streams"
DSL = f"{STREAMS}.kstream"
_SENDER = "SubscriptionSendProcessorSupplier"
"""The class of Kafka Streams that sends a foreign-key join's subscriptions."""


@dataclass(frozen=True)
class KafkaDialect:
    """The settings of Kafka Streams whose defaults in Kafka differ from Kafka's documents.

    Attributes:
        exact_retention: Store windows for the declared retention, by default gap + grace or size + grace as in Kafka.
            With this setting, Kafka deletes a session 1 ms before the session closes, and never emits closed windows.
            Without this setting, the store keeps sessions 1 ms longer and closed windows until their emission, so that
            results are right.
        own_clocks: Let each of two joined windowed aggregates use its own stream time, as Kafka does by default.
            Without this setting, the witness also sends a record with a reserved key to the other side, so that every
            record moves both stream times.
        suppress: Emit closed windows through `suppress(untilWindowCloses)`, not through `EmitStrategy.onWindowClose`.
        keyless_waits: With manual delivery, let a left join's subscriptions without a key wait on a separate route,
            which history lines can't name. Without this setting, Kafka gets these subscriptions together with the old
            key's subscription, or immediately if there is no such subscription.
        answers: Make an inner foreign-key join send a left join's messages, so that the join responds to all changes of
            left rows.
        stores: The kind of stores. RocksDB, Kafka's own default, is slower. With `onWindowClose`, RocksDB emits more
            windows, because it deletes whole segments of time, and so still stores a closed window unless stream time
            leaps far.
    """

    exact_retention: bool = False
    own_clocks: bool = False
    suppress: bool = False
    keyless_waits: bool = False
    answers: bool = False
    stores: Stores = "in memory"


class Builder:
    """Builds a topology from the JVM's classes and functions.

    Each method builds one part of a topology, such as a table or a join.

    Args:
        functions: Makes functions in the JVM.
        dialect: The settings of Kafka Streams whose defaults in Kafka differ from Kafka's documents.
        settings: The properties of Kafka Streams; by default the properties of a test driver.
    """

    def __init__(
        self, functions: JavaFunctions, dialect: KafkaDialect, settings: Mapping[str, str] | None = None
    ) -> None:
        self.functions = functions
        self.dialect = dialect
        self.jvm = functions.gateway.jvm
        self.dsl = self.jvm.org.apache.kafka.streams.kstream
        serdes = self.jvm.org.apache.kafka.common.serialization.Serdes
        self.string, self.long = serdes.String(), serdes.Long()
        self.version = self.jvm.org.apache.kafka.common.utils.AppInfoParser.getVersion().partition("-")[0]
        settings = self._of_test_driver() if settings is None else settings
        self.properties = filled(self.jvm.java.util.Properties(), settings)
        streams = self.jvm.org.apache.kafka.streams
        self.streams_builder = streams.StreamsBuilder(streams.TopologyConfig(streams.StreamsConfig(self.properties)))

    def _of_test_driver(self) -> dict[str, str]:
        # Each driver has its own folder, because several drivers may run at the same time, and lock their stores on
        # disk.
        return {
            **driver_settings(self.version, self.dialect.stores),
            "state.dir": mkdtemp(prefix="kafka-state-", dir=own_folder()),
        }

    def stream(self, name: str) -> Any:
        """Return the stream of an input."""
        return self.streams_builder.stream(name)

    def table(self, name: str) -> Any:
        """Return the table of an input."""
        return self.streams_builder.table(name)

    def grouped(self, name: str) -> Any:
        """Return the stream of an input, grouped by its key."""
        return self.stream(name).groupByKey()

    def built(self, result: Any, topic: str) -> tuple[Any, Any]:
        """Return the topology that writes a stream of texts to a topic, and its properties."""
        result.to(topic, getattr(self.dsl.Produced, "with")(self.string, self.string))
        topology = self.streams_builder.build(self.properties)
        if self.dialect.answers:
            self._let_answer(topology)
        return topology, self.properties

    def _let_answer(self, topology: Any) -> None:
        """Make the foreign-key join's sender behave as in a left join; the receiver stays unchanged."""
        factories = self._field(self._field(topology, "internalTopologyBuilder"), "nodeFactories").values()
        suppliers = [supplier for each in factories if (supplier := self._field(each, "supplier")) is not None]
        (sender,) = [each for each in map(self._unwrapped, suppliers) if each.getClass().getSimpleName() == _SENDER]
        (field,) = private_fields(sender, "leftJoin")
        field.setBoolean(sender, True)

    def _unwrapped(self, supplier: Any) -> Any:
        """Return the supplier inside the wrappers of Kafka 4."""
        while (inner := self._field(supplier, "delegate")) is not None:
            supplier = inner
        return supplier

    def _field(self, thing: Any, name: str) -> Any:
        """Return the value of a private field (None if the object has no such field)."""
        return next((field.get(thing) for field in private_fields(thing, name)), None)

    def milliseconds(self, duration: int) -> Any:
        """Return a duration (ms)."""
        return self.jvm.java.time.Duration.ofMillis(duration)

    def template(self, interface: str, pattern: str, parameters: int) -> Any:
        """Return an implementation of a Kafka interface that formats its arguments by a pattern."""
        functions = self.functions
        return functions.implementing(f"{DSL}.{interface}", functions.template(pattern, parameters))

    def joiner(self, between: str = ",", start: str = "[", end: str = "]") -> Any:
        """Return the joiner of two JSON texts into a JSON array; a missing side is null."""
        return self.template("ValueJoiner", f"{start}%1$s{between}%2$s{end}", 2)

    def nothing(self) -> Any:
        """Return the initializer of a list of members, each of which ends with a line break."""
        handles = self.functions.handles
        return self.functions.implementing(f"{DSL}.Initializer", handles.constant(self.functions.kind("Object"), ""))

    def append(self) -> Any:
        """Return the aggregator that appends a member to a list."""
        return self.template("Aggregator", "%3$s%2$s\n", 3)

    def without_first(self) -> Any:
        """Return the aggregator that removes the first equal member, by replacing the member's line with nothing."""
        functions = self.functions
        quoted = functions.static("java.util.regex.Pattern", "quote", "String", "String")
        line = functions.then(quoted, functions.template("(?m)^%s\n", 1))
        replaced = functions.method("String", "replaceFirst", "String", "String", "String")
        replaced = functions.filtered(functions.bound(replaced, 2, ""), 1, line)
        replaced = functions.retyped(replaced, "Object", "Object", "Object")
        kind = functions.type("Object", "Object", "Object", "Object")
        return functions.implementing(f"{DSL}.Aggregator", functions.arranged(replaced, kind, 2, 1))

    def text_at(self, at: str | int) -> Any:
        """Return the handle that parses a JSON text, and returns the string at a field or index (null for a null
        text).
        """
        functions, node = self.functions, "com.fasterxml.jackson.databind.JsonNode"
        reading = functions.method("com.fasterxml.jackson.databind.ObjectMapper", "readTree", node, "String")
        reading = reading.bindTo(self.jvm.com.fasterxml.jackson.databind.ObjectMapper())
        kind = "String" if isinstance(at, str) else "int"
        member = functions.bound(functions.method(node, "get", node, kind), 1, at)
        reading = functions.then(reading, member, functions.method(node, "textValue", "String"))
        return functions.retyped(reading, "Object", "Object")

    def aggregated(self, windowed: Any, aggregate: Aggregate, merge: bool, retention_ms: int) -> Any:
        """Return the windowed aggregate: a count, or the list of members, which Python aggregates.

        Args:
            windowed: The windowed stream.
            aggregate: The aggregate.
            merge: Whether windows can merge, as sessions do.
            retention_ms: The retention of the store.
        """
        counted = aggregate.name == "count"
        stored = getattr(self.dsl.Materialized, "with")(self.string, self.long if counted else self.string)
        stored = stored.withRetention(self.milliseconds(retention_ms))
        if counted:
            return windowed.count(stored)
        merger = [self.template("Merger", "%2$s%3$s", 3)] if merge else []
        return windowed.aggregate(self.nothing(), self.append(), *merger, stored)

    def retention(self, emit: str, declared: int, enough: int | None = None) -> int:
        """Return the retention of windows (ms): the declared retention, or the retention that Kafka needs for correct
        results.

        Args:
            emit: `update` or `close`.
            declared: The retention of Kafka's own defaults.
            enough: The smallest retention with correct results, if Kafka's own retention gives wrong results.
        """
        if self.dialect.exact_retention:
            return declared
        if emit == "close" and not self.dialect.suppress:
            # onWindowClose emits only stored windows, and a leap of stream time may delete a closed window before its
            # emission.
            return LARGEST_TIMESTAMP_MS
        return declared if enough is None else enough

    def emitted_as(self, windowed: Any, emit: str) -> Any:
        """Let a windowed stream emit as declared: every change, or only closed windows."""
        if emit == "close" and not self.dialect.suppress:
            return windowed.emitStrategy(self.dsl.EmitStrategy.onWindowClose())
        return windowed

    def suppressed(self, table: Any, emit: str) -> Any:
        """Make a windowed table emit only closed windows, unless the table's stream already emits only closed
        windows.
        """
        if emit == "close" and self.dialect.suppress:
            suppressed = self.dsl.Suppressed
            return table.suppress(suppressed.untilWindowCloses(suppressed.BufferConfig.unbounded()))
        return table

    def joined(self, join: str, left: Any, right: Any, *more: Any) -> Any:
        """Join two streams or tables."""
        method = {"inner": "join", "left": "leftJoin", "outer": "outerJoin"}[join]
        return getattr(left, method)(right, *more)

    def stores_of_stream_join(self, size_ms: int, retention_ms: int) -> list[Any]:
        """Return the argument that keeps a stream-stream join's records in memory, for releases without a setting.

        Args:
            size_ms: The largest distance between the records of a pair (ms).
            retention_ms: The time for which a record is stored (ms).
        """
        if self.dialect.stores != "in memory" or not ignores_stream_joins(self.version):
            return []
        size, retention = self.milliseconds(size_ms), self.milliseconds(retention_ms)
        stores = self.jvm.org.apache.kafka.streams.state.Stores
        sides = [stores.inMemoryWindowStore(name, retention, size, True) for name in ("left", "right")]
        return [getattr(self.dsl.StreamJoined, "with")(*sides)]

    def grouped_by_first(self, table: Any) -> Any:
        """Group a table by the first of two texts in its values' JSON arrays; the second text is the value."""
        functions = self.functions
        pair = functions.static(f"{STREAMS}.KeyValue", "pair", f"{STREAMS}.KeyValue", "Object", "Object")
        pair = functions.filtered(pair, 0, self.text_at(0), self.text_at(1))
        selector = functions.arranged(pair, functions.type(f"{STREAMS}.KeyValue", "Object", "Object"), 1, 1)
        selector = functions.retyped(selector, "Object", "Object", "Object")
        group_by = functions.implementing(f"{DSL}.KeyValueMapper", selector)
        with_strings = getattr(self.dsl.Grouped, "with")(self.string, self.string)
        return table.groupBy(group_by, with_strings)
