"""Builds topologies and Java method handles that run histories in the JVM: the handles send records to a test driver,
and read its output.

Input and output are JSON text, so that many records need only one round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ...registration.kafka import Kafka
from .builder import STREAMS, Builder, KafkaDialect
from .functions import JavaFunctions, filled
from .jvm import KafkaJvm

DRIVER = f"{STREAMS}.TopologyTestDriver"
INPUTS = ("left", "right")
"""The inputs of a table-table join."""
OUTPUT = "out"

_COMMON = "org.apache.kafka.common.serialization"
_MAPPER = "com.fasterxml.jackson.databind.ObjectMapper"


@lru_cache(maxsize=16)
def functions_of(jvm: KafkaJvm) -> JavaFunctions:
    """Return the `JavaFunctions` of a JVM."""
    return JavaFunctions(jvm.gateway)


@lru_cache(maxsize=128)
def topology_of(jvm: KafkaJvm, kafka: Kafka, definition: Any, dialect: KafkaDialect) -> tuple[Any, Any]:
    """Return the topology of a definition, which writes its result to `OUTPUT`, and its properties.

    Args:
        jvm: The JVM.
        kafka: The operator on Kafka Streams.
        definition: The operator's definition.
        dialect: The settings of Kafka Streams.
    """
    builder = Builder(functions_of(jvm), dialect)
    result = kafka.topology(builder, definition)
    stream = result if definition.is_stream else result.toStream()
    if kafka.is_windowed:
        stream = stream.selectKey(builder.template("KeyValueMapper", "%1$s", 2))
    if not kafka.is_text:
        stream = stream.mapValues(builder.template("ValueMapper", "%1$s", 1))
    return builder.built(stream, OUTPUT)


@lru_cache(maxsize=16)
def playing(jvm: KafkaJvm) -> Any:
    """Return a method handle that runs a history, given as JSON, on a new driver, and returns the output as JSON.

    The same in Java: parse the text as a list of rows; for each, `driver.createInputTopic(row[0], …).pipeInput(row[1],
    row[2], row[3])`, then `driver.createOutputTopic("out", …).readRecordsToList()`; close the driver; write.
    """
    functions = functions_of(jvm)
    strings = jvm.gateway.jvm.org.apache.kafka.common.serialization.Serdes.String()
    step = functions.first(
        _piped(functions, strings.serializer()),
        functions.ignoring(_read(functions, OUTPUT, strings.deserializer()), 0, "Object"),
    )
    played = functions.filtered(functions.each(step, DRIVER), 0, parsed(functions))
    answer = "java.util.ArrayList"
    unchanged = functions.ignoring(functions.handles.identity(functions.kind(answer)), 1, "String", DRIVER)
    close = functions.ignoring(functions.method(DRIVER, "close", "void"), 0, "Throwable", answer, "String")
    played = functions.handles.tryFinally(played, functions.first(close, functions.ignoring(unchanged, 0, "Throwable")))
    driver = functions.constructor(DRIVER, f"{STREAMS}.Topology", "java.util.Properties")
    return functions.handles.collectArguments(functions.then(played, written(functions)), 1, driver)


@lru_cache(maxsize=128)
def playing_held(jvm: KafkaJvm, topics: tuple[str, ...]) -> Any:
    """Return a method handle that passes rows, given as JSON, to a driver that doesn't read its internal topics, and
    returns the records of each topic as JSON.

    The maps are the driver's map of the topics that the driver reads, and a copy with all topics. The same in Java: for
    each row `own.put(row[0], all.get(row[0]))`; pipe the row; `own.keySet().retainAll(INPUTS)`; read the records of
    each topic. Keys and values are bytes, each a character of Latin-1.

    Args:
        jvm: The JVM.
        topics: The topics to read, in order.
    """
    functions = functions_of(jvm)
    serializer, deserializer = (latin1(jvm.gateway.jvm, name) for name in ("Serializer", "Deserializer"))
    own, every = "java.util.Map", "java.util.Map"
    kind = functions.type("void", "Object", DRIVER, own, every)

    put = functions.method(own, "put", "Object", "Object", "Object")
    put = functions.handles.collectArguments(put, 2, functions.method(every, "get", "Object", "Object"))
    put = functions.filtered(put, 1, cell(functions, 0, "Object"))
    put = functions.filtered(put, 3, cell(functions, 0, "Object"))
    put = functions.retyped(put, "void", own, "Object", every, "Object")
    put = functions.arranged(put, kind, 2, 0, 3, 0)

    inputs = jvm.gateway.jvm.java.util.Set.of(*INPUTS)
    keys = functions.method(own, "keySet", "java.util.Set")
    retain = functions.bound(
        functions.method("java.util.Set", "retainAll", "boolean", "java.util.Collection"), 1, inputs
    )
    retain = functions.retyped(functions.then(keys, retain), "void", own)
    retain = functions.arranged(retain, kind, 2)

    read = functions.handles.identity(functions.kind("Object[]")).asCollector(functions.kind("Object[]"), len(topics))
    each = [functions.retyped(_read(functions, one, deserializer), "Object", DRIVER) for one in topics]
    read = functions.filtered(read, 0, *each)
    read = functions.arranged(read, functions.type("Object[]", "Object", DRIVER, own, every), *(1 for _ in topics))
    step = functions.first(put, functions.first(_piped(functions, serializer), functions.first(retain, read)))
    played = functions.filtered(functions.each(step, DRIVER, own, every), 0, parsed(functions))
    return functions.then(played, written(functions))


# Method handles that the replays and a broker's clients share.


def latin1(jvm: Any, name: str) -> Any:
    """Return Kafka's `Serializer` or `Deserializer` for bytes, each represented by a character of Latin-1."""
    one = getattr(jvm.org.apache.kafka.common.serialization, f"String{name}")()
    one.configure(filled(jvm.java.util.HashMap(), {f"{name.lower()}.encoding": "ISO-8859-1"}), False)
    return one


def parsed(functions: JavaFunctions) -> Any:
    """Return a method handle that parses a text of JSON as a list."""
    mapper = functions.gateway.jvm.com.fasterxml.jackson.databind.ObjectMapper()
    parse = functions.method(_MAPPER, "readValue", "Object", "String", "Class").bindTo(mapper)
    return functions.retyped(functions.bound(parse, 1, functions.kind("java.util.List")), "Iterable", "String")


def written(functions: JavaFunctions) -> Any:
    """Return a method handle that writes an object as JSON."""
    mapper = functions.gateway.jvm.com.fasterxml.jackson.databind.ObjectMapper()
    return functions.method(_MAPPER, "writeValueAsString", "String", "Object").bindTo(mapper)


def cell(functions: JavaFunctions, index: int, kind: str) -> Any:
    """Return a method handle that reads a cell of a row."""
    got = functions.bound(functions.method("java.util.List", "get", "Object", "int"), 1, index)
    if kind in ("long", "Long"):
        got = functions.then(got, functions.method("Number", "longValue", "long"))
    return functions.retyped(got, kind, "Object")


def row_of(functions: JavaFunctions, record_kind: str, fields: Sequence[tuple[str, str]]) -> Any:
    """Return a method handle that calls the given methods of a record, and returns an array of the results."""
    array = functions.kind("Object[]")
    row = functions.handles.identity(array).asCollector(array, len(fields))
    cells = (functions.retyped(functions.method(record_kind, *one), "Object", "Object") for one in fields)
    row = functions.filtered(row, 0, *cells)
    return functions.arranged(row, functions.type("Object[]", "Object"), *(0 for _ in fields))


def _piped(functions: JavaFunctions, serializer: Any) -> Any:
    """Return a method handle that passes a row to the row's topic in the driver."""
    input_kind = f"{STREAMS}.TestInputTopic"
    input_topic = functions.method(
        DRIVER, "createInputTopic", input_kind, "String", f"{_COMMON}.Serializer", f"{_COMMON}.Serializer"
    )
    input_topic = functions.bound(input_topic, 2, serializer, serializer)
    pipe = functions.method(input_kind, "pipeInput", "void", "Object", "Object", "long")
    pipe = functions.handles.collectArguments(pipe, 0, input_topic)
    cells = [cell(functions, *one) for one in ((0, "String"), (1, "Object"), (2, "Object"), (3, "long"))]
    pipe = functions.filtered(pipe, 1, *cells)
    return functions.arranged(pipe, functions.type("void", "Object", DRIVER), 1, 0, 0, 0, 0)


def _read(functions: JavaFunctions, topic: str, deserializer: Any) -> Any:
    """Return a method handle that lists the records that the driver has sent to a topic: key, value, timestamp."""
    output_kind, record_kind = f"{STREAMS}.TestOutputTopic", f"{STREAMS}.test.TestRecord"
    emitted = row_of(functions, record_kind, [("key", "Object"), ("value", "Object"), ("timestamp", "Long")])
    output_topic = functions.method(
        DRIVER, "createOutputTopic", output_kind, "String", f"{_COMMON}.Deserializer", f"{_COMMON}.Deserializer"
    )
    return functions.then(
        functions.bound(output_topic, 1, topic, deserializer, deserializer),
        functions.method(output_kind, "readRecordsToList", "java.util.List"),
        functions.each(emitted),
    )
