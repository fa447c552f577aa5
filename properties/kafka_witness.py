"""The witness that runs the real Kafka Streams, in its TopologyTestDriver, one record at a time.

Every history has a driver of its own, for stream time never goes back; topologies are built once for each operator and
options. Keys are strings, values JSON text. What Kafka Streams has no counterpart for is refused with the reason.

Source: KIP-94, KIP-213, join semantics; what 4.3.1 makes of them is told in `facts/kafka_streams`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..reference.aggregates import Aggregate, TableAggregate
from ..reference.errors import BadInput
from ..reference.histories import LARGEST_TIMESTAMP_MS, Cut, Delivery, Heartbeat, History
from ..reference.joins import ForeignKeyJoin, StreamStreamJoin, StreamTableJoin, TableTableJoin
from ..reference.operators import operator_named
from ..reference.play import Entry
from ..reference.records import Change, Key, Record, Value, Window
from ..reference.windows import SessionWindows, WindowedTable
from .kafka_functions import Functions
from .kafka_jvm import KafkaJvm, kafka_jvm
from .outcomes import Grain, Outcome

_STREAMS = "org.apache.kafka.streams"
_DSL = f"{_STREAMS}.kstream"
_DRIVER = f"{_STREAMS}.TopologyTestDriver"
_STRING_SERDE = "org.apache.kafka.common.serialization.Serdes$StringSerde"
_SETTINGS = {
    "application.id": "streamproof",
    "bootstrap.servers": "localhost:1",  # demanded, and never spoken to
    "default.key.serde": _STRING_SERDE,
    "default.value.serde": _STRING_SERDE,
    "dsl.store.suppliers.class": f"{_STREAMS}.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers",
    "statestore.cache.max.bytes": "0",
    "metric.reporters": "",
    # Unmatched and closed rows are told at most once a second of the wall clock, which stands still in a test driver.
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
    "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
}

Send = tuple[str, Key | None, str | None, int]
Told = tuple[str | None, str | None, int]


@dataclass(frozen=True)
class Dialect:
    """How Kafka Streams is set up where its own defaults give another answer than its documents.

    Attributes:
        exact_retention: Keep windows for the declared retention, by default gap + grace or size + grace as in Kafka: it
            then forgets a session one step before it closes it, and tells closed windows never. Otherwise sessions
            are kept for 1 ms more, under which it is right, and closed windows for as long as it takes to tell them.
        own_clocks: Leave each of two joined windowed aggregates to its own stream time, as Kafka does. Otherwise every
            record moves both, by a record of a reserved key on the other side.
        suppress: Tell closed windows through `suppress(untilWindowCloses)` rather than `EmitStrategy.onWindowClose`.
    """

    exact_retention: bool = False
    own_clocks: bool = False
    suppress: bool = False


PLAIN = Dialect()


def answer(histories: Sequence[History], dialect: Dialect = PLAIN) -> list[Outcome]:
    """Give what the real Kafka Streams says came out of each history, arrival by arrival.

    Returns:
        Outcomes in the order of the histories, at grain `ARRIVAL`; Kafka tells dropped records as a metric only, so
        they aren't among the entries. Of `sum`, `min` and `max` Kafka keeps the members in their order, and they are
        folded here with the named aggregate; a sum of floats may differ in the last digit from a sum of sums.

    Raises:
        BadInput: Kafka has no counterpart for a history's operator, options, clock or lines; the message says why.
        MissingTool: The jars of Kafka Streams can't be had, or there is no Java to run them.
    """
    for history in histories:
        why = refusal(history)
        if why is not None:
            raise BadInput(f"{history.name}: {why}")
    if not histories:
        return []
    jvm = kafka_jvm()
    return [_play(jvm, history, dialect) for history in histories]


# What Kafka has no counterpart for.


def refusal(history: History) -> str | None:
    """Say why Kafka Streams can't answer a history, or None where it can.

    Raises:
        BadInput: The history isn't one: its operator or options are unknown or refused, or the operator can't take a
            record.
    """
    name = history.operator
    definition = operator_named(name).declare(history.options)
    _check_records(history, definition)
    if history.clock != "stream_time":
        return f"kafka has no {history.clock} clock: its clock is stream time, which moves with every record"
    if any(isinstance(line, Delivery) for line in history.lines):
        return "kafka has no deliveries: its test driver hands every message on at once"
    if not isinstance(definition, tuple(_TOPOLOGIES)):
        return f"kafka has no {name}: use another witness"
    return next(_refusals(definition, history.records), None)


def _refusals(definition: Any, records: Sequence[Record]) -> Iterator[str]:
    match definition:
        case SessionWindows(late="own"):
            yield "kafka has no late 'own': it tests lateness on the merged session"
        case WindowedTable(with_="table" | "stream_lookup" | "table_lookup"):
            yield f"kafka has no join of a windowed table with {definition.with_!r}: use none or windowed_table"
        case WindowedTable(to_stream=str()):
            yield f"kafka has no to_stream {definition.to_stream!r}: leave it out"
        case WindowedTable() if definition.shift_ms:
            yield "kafka has no shift_ms: it joins windowed tables on the same windows alone"
        case StreamStreamJoin(join="left", emit="arrival"):
            yield "kafka has no emit 'arrival': both sides drive its left join; use eager or close"
        case ForeignKeyJoin(protocol="answer"):
            yield "kafka has no protocol 'answer': it follows KIP-213's instructions, protocol kip"
        case ForeignKeyJoin(delivery="manual"):
            yield "kafka has no manual delivery: its test driver hands every message on at once"
        case ForeignKeyJoin(join="left", null_foreign_key="ignore"):
            if any(
                record.input == "left"
                and record.key is not None
                and record.value is not None
                and definition.foreign_key_of(record.value) is None
                for record in records
            ):
                yield "kafka has no left join that ignores null foreign keys: say null_foreign_key keep"
        case StreamStreamJoin(null_key="drop") | StreamTableJoin(null_key="drop") if definition.join != "inner":
            sides = ("left", "right") if definition.join == "outer" else ("left",)
            if any(record.key is None and record.value is not None and record.input in sides for record in records):
                yield f"kafka has no {definition.join} join that drops null keys: say null_key keep"


def _check_records(history: History, definition: Any) -> None:
    arrivals = (line for line in history.lines if not isinstance(line, Cut))
    for arrival, record in enumerate(arrivals):
        if not isinstance(record, Record):
            continue
        try:
            if record.input not in definition.inputs:
                raise BadInput(f"unknown input {record.input!r}: use {' or '.join(definition.inputs)}")
            definition.check(record)
        except BadInput as error:
            raise BadInput(f"{history.name}: arrival {arrival}: {error}") from None


# Topologies: the inputs by name, and a KTable or KStream as the result.


class _Builder:
    """Builds one topology, and knows the JVM's classes and functions that it is built of."""

    def __init__(self, functions: Functions, dialect: Dialect) -> None:
        self.functions = functions
        self.dialect = dialect
        self.jvm = functions.gateway.jvm
        self.dsl = self.jvm.org.apache.kafka.streams.kstream
        serdes = self.jvm.org.apache.kafka.common.serialization.Serdes
        self.string, self.long = serdes.String(), serdes.Long()
        self.properties = self.jvm.java.util.Properties()
        for name, value in _SETTINGS.items():
            self.properties.put(name, value)
        streams = self.jvm.org.apache.kafka.streams
        self.streams_builder = streams.StreamsBuilder(streams.TopologyConfig(streams.StreamsConfig(self.properties)))

    def stream(self, name: str) -> Any:
        return self.streams_builder.stream(name)

    def table(self, name: str) -> Any:
        return self.streams_builder.table(name)

    def grouped(self, name: str) -> Any:
        return self.stream(name).groupByKey()

    def milliseconds(self, duration: int) -> Any:
        return self.jvm.java.time.Duration.ofMillis(duration)

    def template(self, interface: str, pattern: str, parameters: int) -> Any:
        functions = self.functions
        return functions.implementing(f"{_DSL}.{interface}", functions.template(pattern, parameters))

    def joiner(self, between: str = ",", start: str = "[", end: str = "]") -> Any:
        """Joins two JSON texts into a JSON array; a missing side is null."""
        return self.template("ValueJoiner", f"{start}%1$s{between}%2$s{end}", 2)

    def nothing(self) -> Any:
        """The initializer of a list of members, each of which ends with a line break."""
        handles = self.functions.handles
        return self.functions.implementing(f"{_DSL}.Initializer", handles.constant(self.functions.kind("Object"), ""))

    def append(self) -> Any:
        return self.template("Aggregator", "%3$s%2$s\n", 3)

    def without_first(self) -> Any:
        """Takes the first member that equals a value away: `replaceFirst` of its line by nothing."""
        functions = self.functions
        quoted = functions.static("java.util.regex.Pattern", "quote", "String", "String")
        line = functions.then(quoted, functions.template("(?m)^%s\n", 1))
        replaced = functions.method("String", "replaceFirst", "String", "String", "String")
        replaced = functions.filtered(functions.bound(replaced, 2, ""), 1, line)
        replaced = functions.retyped(replaced, "Object", "Object", "Object")
        kind = functions.type("Object", "Object", "Object", "Object")
        return functions.implementing(f"{_DSL}.Aggregator", functions.arranged(replaced, kind, 2, 1))

    def text_at(self, place: str | int) -> Any:
        """The handle that reads a JSON text, and gives the string at that field or place; null where there is null."""
        functions, node = self.functions, "com.fasterxml.jackson.databind.JsonNode"
        reading = functions.method("com.fasterxml.jackson.databind.ObjectMapper", "readTree", node, "String")
        reading = reading.bindTo(self.jvm.com.fasterxml.jackson.databind.ObjectMapper())
        kind = "String" if isinstance(place, str) else "int"
        at = functions.bound(functions.method(node, "get", node, kind), 1, place)
        reading = functions.then(reading, at, functions.method(node, "textValue", "String"))
        return functions.retyped(reading, "Object", "Object")

    def aggregated(self, windowed: Any, aggregate: Aggregate, merge: bool, retention_ms: int) -> Any:
        """The windowed aggregate: a count, or else the list of members, to be folded in Python."""
        counted = aggregate.name == "count"
        kept = getattr(self.dsl.Materialized, "with")(self.string, self.long if counted else self.string)
        kept = kept.withRetention(self.milliseconds(retention_ms))
        if counted:
            return windowed.count(kept)
        merger = [self.template("Merger", "%2$s%3$s", 3)] if merge else []
        return windowed.aggregate(self.nothing(), self.append(), *merger, kept)

    def retention(self, emit: str, declared: int, enough: int | None = None) -> int:
        """How long windows are kept (ms): as declared, or else as long as Kafka needs to be right."""
        if self.dialect.exact_retention:
            return declared
        if emit == "close" and not self.dialect.suppress:
            # onWindowClose tells a window only while the store has it, which a leap of stream time may end.
            return LARGEST_TIMESTAMP_MS
        return declared if enough is None else enough

    def told_as(self, windowed: Any, emit: str) -> Any:
        if emit == "close" and not self.dialect.suppress:
            return windowed.emitStrategy(self.dsl.EmitStrategy.onWindowClose())
        return windowed

    def suppressed(self, table: Any, emit: str) -> Any:
        if emit == "close" and self.dialect.suppress:
            suppressed = self.dsl.Suppressed
            return table.suppress(suppressed.untilWindowCloses(suppressed.BufferConfig.unbounded()))
        return table


def _session_windows(builder: _Builder, windows: SessionWindows) -> Any:
    # Kept for just gap + grace, a stored session becomes invisible one step before the operator closes it; kept much
    # longer, it is revised when closed.
    retention = builder.retention(windows.emit, windows.retention_ms, windows.gap_ms + windows.grace_ms + 1)
    gap, grace = builder.milliseconds(windows.gap_ms), builder.milliseconds(windows.grace_ms)
    windowed = builder.grouped("events").windowedBy(builder.dsl.SessionWindows.ofInactivityGapAndGrace(gap, grace))
    windowed = builder.told_as(windowed, windows.emit)
    return builder.suppressed(builder.aggregated(windowed, windows.aggregate, True, retention), windows.emit)


def _windowed_table(builder: _Builder, windows: WindowedTable) -> Any:
    size, grace = builder.milliseconds(windows.size_ms), builder.milliseconds(windows.grace_ms)
    times = builder.dsl.TimeWindows.ofSizeAndGrace(size, grace).advanceBy(builder.milliseconds(windows.step_ms))

    def table(name: str) -> Any:
        windowed = builder.told_as(builder.grouped(name).windowedBy(times), windows.emit)
        retention = builder.retention(windows.emit, windows.size_ms + windows.grace_ms)
        return builder.suppressed(builder.aggregated(windowed, windows.aggregate, False, retention), windows.emit)

    if windows.with_ is None:
        return table("events")
    return _joined(windows.join, table("events"), table("right"), builder.joiner("\t", "", ""))


def _stream_stream_join(builder: _Builder, join: StreamStreamJoin) -> Any:
    before, after = builder.milliseconds(join.before_ms), builder.milliseconds(join.after_ms)
    grace = builder.milliseconds(join.grace_ms)
    if join.emit == "eager":
        within = builder.dsl.JoinWindows.of(before).after(after).grace(grace)
    else:
        within = builder.dsl.JoinWindows.ofTimeDifferenceAndGrace(before, grace).after(after)
    return _joined(join.join, builder.stream("left"), builder.stream("right"), builder.joiner(), within)


def _stream_table_join(builder: _Builder, join: StreamTableJoin) -> Any:
    return _joined(join.join, builder.stream("left"), builder.table("right"), builder.joiner())


def _table_table_join(builder: _Builder, join: TableTableJoin) -> Any:
    return _joined(join.join, builder.table("left"), builder.table("right"), builder.joiner())


def _foreign_key_join(builder: _Builder, join: ForeignKeyJoin) -> Any:
    extractor = builder.functions.implementing("java.util.function.Function", builder.text_at(join.foreign_key))
    return _joined(join.join, builder.table("left"), builder.table("right"), extractor, builder.joiner())


def _table_aggregate(builder: _Builder, grouping: TableAggregate) -> Any:
    functions = builder.functions
    pair = functions.static(f"{_STREAMS}.KeyValue", "pair", f"{_STREAMS}.KeyValue", "Object", "Object")
    # A value comes as the JSON array of its group and its member's text, see `_sent_value`.
    pair = functions.filtered(pair, 0, builder.text_at(0), builder.text_at(1))
    selector = functions.arranged(pair, functions.type(f"{_STREAMS}.KeyValue", "Object", "Object"), 1, 1)
    selector = functions.retyped(selector, "Object", "Object", "Object")
    group_by = functions.implementing(f"{_DSL}.KeyValueMapper", selector)
    with_strings = getattr(builder.dsl.Grouped, "with")(builder.string, builder.string)
    grouped = builder.table("events").groupBy(group_by, with_strings)
    if grouping.aggregate.name == "count":
        return grouped.count()
    return grouped.aggregate(builder.nothing(), builder.append(), builder.without_first())


def _joined(join: str, left: Any, right: Any, *more: Any) -> Any:
    method = {"inner": "join", "left": "leftJoin", "outer": "outerJoin"}[join]
    return getattr(left, method)(right, *more)


_TOPOLOGIES: dict[type, Callable[[_Builder, Any], Any]] = {
    SessionWindows: _session_windows,
    WindowedTable: _windowed_table,
    StreamStreamJoin: _stream_stream_join,
    StreamTableJoin: _stream_table_join,
    TableTableJoin: _table_table_join,
    ForeignKeyJoin: _foreign_key_join,
    TableAggregate: _table_aggregate,
}


# Playing: a history goes into the JVM as one JSON text, and its outputs come back as one.


@dataclass(frozen=True)
class _Sent:
    """A history as Kafka is to see it.

    Attributes:
        sends: What is piped in, in order: input, key, value as text, timestamp.
        steps: Of each, the arrival and the batch that it belongs to.
        reserved: The key of the records that only move stream time; their outputs aren't the history's.
    """

    sends: list[Send]
    steps: list[tuple[int, int]]
    reserved: Key

    @classmethod
    def of(cls, history: History, definition: Any, dialect: Dialect) -> _Sent:
        keys = {record.key for record in history.records}
        reserved = "heartbeat"
        while reserved in keys:
            reserved += "'"
        sent = cls([], [], reserved)
        clocks = _clocks(definition)
        arrival = batch = 0
        for line in history.lines:
            if isinstance(line, Cut):
                batch += 1
                continue
            assert not isinstance(line, Delivery)
            beats = clocks if isinstance(line, Heartbeat) else ()
            if isinstance(line, Record) and isinstance(definition, WindowedTable) and not dialect.own_clocks:
                beats = tuple(name for name in clocks if name != line.input and line.key is not None)
            sent.sends.extend((name, reserved, "0", line.timestamp) for name in beats)
            if isinstance(line, Record):
                sent.sends.append((line.input, line.key, _sent_value(definition, line), line.timestamp))
            sent.steps.extend([(arrival, batch)] * (len(sent.sends) - len(sent.steps)))
            arrival += 1
        return sent


def _clocks(definition: Any) -> tuple[str, ...]:
    """Give one input for each clock that Kafka keeps: a stream-stream join has one, each windowed aggregate its own."""
    match definition:
        case SessionWindows() | WindowedTable():
            return definition.inputs
        case StreamStreamJoin():
            return ("left",)
        case _:
            return ()


def _text(value: Value) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _sent_value(definition: Any, record: Record) -> str | None:
    if record.value is None:
        return None
    if isinstance(definition, TableAggregate) and record.key is not None:
        group = definition.group(record.value)
        return _text([group, None if group is None else _text(definition.member(record.value))])
    return _text(record.value)


def _play(jvm: KafkaJvm, history: History, dialect: Dialect) -> Outcome:
    definition = operator_named(history.operator).declare(history.options)
    sent = _Sent.of(history, definition, dialect)
    told = json.loads(_player(jvm, definition, dialect).apply(json.dumps(sent.sends)))
    read = _reader(definition)
    entries = [
        Entry(arrival, batch, change)
        for (arrival, batch), outputs in zip(sent.steps, told, strict=True)
        for change in map(read, outputs)
        if change.key != sent.reserved
    ]
    return Outcome(history.name, Grain.ARRIVAL, entries, knows_dropped=False, is_stream=definition.is_stream)


def _reader(definition: Any) -> Callable[[Told], Change]:
    """Give what turns an output into a change."""
    windowed = isinstance(definition, SessionWindows | WindowedTable)

    def read(output: Told) -> Change:
        text, value, timestamp = output
        key, window = _windowed_key(text) if windowed and text is not None else (text, None)
        return Change(key, window, _read_value(definition, key, value), timestamp)

    return read


def _windowed_key(text: str) -> tuple[Key, Window]:
    """Read `[key@start/end]`, where the key may hold anything."""
    key, _, window = text[1:-1].rpartition("@")
    start, _, end = window.partition("/")
    return key, (int(start), int(end))


def _read_value(definition: Any, key: Key | None, text: str | None) -> Value:
    if text is None:
        return None
    if isinstance(definition, WindowedTable) and definition.with_ is not None:
        return [_read_aggregate(definition.aggregate, key, side) for side in text.split("\t")]
    if isinstance(definition, SessionWindows | WindowedTable | TableAggregate):
        return _read_aggregate(definition.aggregate, key, text)
    return json.loads(text)


def _read_aggregate(aggregate: Aggregate, key: Key | None, text: str) -> Value:
    if text == "null" or aggregate.name == "count":
        return json.loads(text)
    # Kafka keeps the members in their order; Python folds them, for arithmetic on JSON takes more than a method handle.
    return aggregate.of(key or "", json.loads(f"[{text[:-1].replace(chr(10), ',')}]"))


@lru_cache(maxsize=1)
def _functions(jvm: KafkaJvm) -> Functions:
    return Functions(jvm.gateway)


@lru_cache(maxsize=128)
def _player(jvm: KafkaJvm, definition: Any, dialect: Dialect) -> Any:
    """Give the java.util.function.Function that plays a history on a new driver: from what is sent to what is told."""
    functions = _functions(jvm)
    builder = _Builder(functions, dialect)
    result = _TOPOLOGIES[type(definition)](builder, definition)
    stream = result if definition.is_stream else result.toStream()
    if isinstance(definition, SessionWindows | WindowedTable):
        stream = stream.selectKey(builder.template("KeyValueMapper", "%1$s", 2))
    if isinstance(definition, SessionWindows | WindowedTable | TableAggregate):
        stream = stream.mapValues(builder.template("ValueMapper", "%1$s", 1))
    stream.to("out", getattr(builder.dsl.Produced, "with")(builder.string, builder.string))
    topology = builder.streams_builder.build(builder.properties)
    play = functions.bound(_playing(jvm), 1, topology, builder.properties)
    return functions.implementing("java.util.function.Function", functions.retyped(play, "Object", "Object"))


@lru_cache(maxsize=1)
def _playing(jvm: KafkaJvm) -> Any:
    """Give the handle (String, Topology, Properties) → String that plays a history on a new driver.

    In Java it would read: parse the text as a list of rows; for each, `driver.createInputTopic(row[0], …).pipeInput(
    row[1], row[2], row[3])`, then `driver.createOutputTopic("out", …).readRecordsToList()`; close the driver; write.
    """
    functions = _functions(jvm)
    common = "org.apache.kafka.common.serialization"
    strings = jvm.gateway.jvm.org.apache.kafka.common.serialization.Serdes.String()
    sending, receiving = strings.serializer(), strings.deserializer()
    mapper_kind = "com.fasterxml.jackson.databind.ObjectMapper"
    mapper = jvm.gateway.jvm.com.fasterxml.jackson.databind.ObjectMapper()
    input_kind, output_kind = f"{_STREAMS}.TestInputTopic", f"{_STREAMS}.TestOutputTopic"
    record_kind = f"{_STREAMS}.test.TestRecord"

    def cell(place: int, kind: str) -> Any:
        got = functions.bound(functions.method("java.util.List", "get", "Object", "int"), 1, place)
        if kind == "long":
            got = functions.then(got, functions.method("Number", "longValue", "long"))
        return functions.retyped(got, kind, "Object")

    input_topic = functions.method(
        _DRIVER, "createInputTopic", input_kind, "String", f"{common}.Serializer", f"{common}.Serializer"
    )
    input_topic = functions.bound(input_topic, 2, sending, sending)
    pipe = functions.method(input_kind, "pipeInput", "void", "Object", "Object", "long")
    pipe = functions.handles.collectArguments(pipe, 0, input_topic)
    pipe = functions.filtered(pipe, 1, cell(0, "String"), cell(1, "Object"), cell(2, "Object"), cell(3, "long"))
    pipe = functions.arranged(pipe, functions.type("void", "Object", _DRIVER), 1, 0, 0, 0, 0)

    told = functions.handles.identity(functions.kind("Object[]")).asCollector(functions.kind("Object[]"), 3)
    parts = [("key", "Object"), ("value", "Object"), ("timestamp", "Long")]
    told = functions.filtered(
        told, 0, *(functions.retyped(functions.method(record_kind, *part), "Object", "Object") for part in parts)
    )
    told = functions.arranged(told, functions.type("Object[]", "Object"), 0, 0, 0)

    output_topic = functions.method(
        _DRIVER, "createOutputTopic", output_kind, "String", f"{common}.Deserializer", f"{common}.Deserializer"
    )
    read = functions.then(
        functions.bound(output_topic, 1, "out", receiving, receiving),
        functions.method(output_kind, "readRecordsToList", "java.util.List"),
        functions.each(told),
    )
    step = functions.first(pipe, functions.ignoring(read, 0, "Object"))
    parse = functions.method(mapper_kind, "readValue", "Object", "String", "Class").bindTo(mapper)
    parse = functions.retyped(functions.bound(parse, 1, functions.kind("java.util.List")), "Iterable", "String")
    played = functions.filtered(functions.each(step, _DRIVER), 0, parse)

    answer = "java.util.ArrayList"
    unchanged = functions.ignoring(functions.handles.identity(functions.kind(answer)), 1, "String", _DRIVER)
    close = functions.ignoring(functions.method(_DRIVER, "close", "void"), 0, "Throwable", answer, "String")
    played = functions.handles.tryFinally(played, functions.first(close, functions.ignoring(unchanged, 0, "Throwable")))
    write = functions.method(mapper_kind, "writeValueAsString", "String", "Object").bindTo(mapper)
    driver = functions.constructor(_DRIVER, f"{_STREAMS}.Topology", "java.util.Properties")
    return functions.handles.collectArguments(functions.then(played, write), 1, driver)
