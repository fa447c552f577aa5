"""What a run on a broker left in its topics, read as a trace: without a broker."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.models.broker.recording import recorded, require_recordable
from streamproof.properties.witnesses.kafka_broker.application import INNER_BY_LEFT, LEFT, Settings
from streamproof.properties.witnesses.kafka_broker.clients import Received
from streamproof.reference.core.errors import BadInput
from streamproof.specs.traces import UNKNOWN, JoinTrace, parse_trace

A = {"foreign_key": "ré", "value": "a"}
HASHES = {json.dumps(A).encode(): [1, -2]}
HASH = (1).to_bytes(8, "big") + (-2).to_bytes(8, "big", signed=True)


def received(key: str | None, value: bytes | None) -> Received:
    characters: Any = None if key is None else key.encode().decode("latin-1")
    return Received(0, 0, characters, None if value is None else value.decode("latin-1"), 0)


TOPICS = {
    "app-left": [received("l", json.dumps(A).encode()), received("l", None)],
    "app-right": [received("ré", b'"x"')],
    "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-1-topic": [
        received("ré", bytes([1, 3]) + HASH + b"l" + bytes(4)),
        received("ré", bytes([0x81, 1]) + b"l" + bytes(4)),
        received(None, bytes([0x80, 2]) + b"l"),
        received("ré", bytes([1, 0]) + bytes(16) + b"l" + bytes(4)),
    ],
    "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-2-topic": [
        received("l", b"\x00" + HASH + b'"x"'),
        received("l", b"\x80"),
    ],
    "app-KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-3-changelog": [],
    "app-out": [received("l", json.dumps([A, "x"]).encode()), received("l", None)],
}


def trace_of(settings: Settings) -> JoinTrace:
    murmur = SimpleNamespace(hash128=HASHES.__getitem__)
    internals = SimpleNamespace(internals=SimpleNamespace(Murmur3=murmur))
    kafka = SimpleNamespace(streams=SimpleNamespace(state=internals))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(kafka=kafka)))
    clients = SimpleNamespace(jvm=jvm, topics=lambda prefix: sorted(TOPICS), read_raw=TOPICS.__getitem__)
    application: Any = SimpleNamespace(
        name="app", clients=clients, settings=settings, left="app-left", right="app-right", out="app-out"
    )
    return recorded(application)


def test_topics_are_read_as_a_trace() -> None:
    trace = trace_of(Settings())
    assert [str(event) for event in trace.events] == [
        'left l = {"foreign_key": "ré", "value": "a"}',
        "left l = ∅",
        'right ré = "x"',
        'subscription sent, l to ré: PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE, hash of {"foreign_key": "ré", "value": "a"}',
        "subscription sent, l to ré: DELETE_KEY_AND_PROPAGATE, hash of ∅",
        "subscription sent, l to no key: PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE, hash of ∅",
        "subscription sent, l to ré: DELETE_KEY_NO_PROPAGATE",
        'response sent, an unknown key to l: "x", hash of {"foreign_key": "ré", "value": "a"}',
        "response sent, an unknown key to l: ∅, hash of ∅",
        'output l = [{"foreign_key": "ré", "value": "a"}, "x"]',
        "output l = ∅",
    ]
    assert [event.foreign_key for event in trace.events[:2]] == ["ré", None]
    assert trace.events[6].of is UNKNOWN  # a hash of no value that was seen
    assert (trace.order, trace.quiet) == ("topics", True)
    assert parse_trace(trace.to_text()) == trace


@pytest.mark.parametrize(
    ("settings", "join", "protocol"),
    [
        (Settings(), "inner", "kafka 4.3"),
        (Settings(LEFT), "left", "kafka 4.3"),
        (Settings(INNER_BY_LEFT), "inner", "kafka 4.3 answer"),
    ],
)
def test_a_trace_says_whose_instructions_it_has(settings: Settings, join: str, protocol: str) -> None:
    trace = trace_of(settings)
    assert (trace.join, trace.protocol) == (join, protocol)
    assert trace.null_foreign_key == ("keep" if join == "left" else "ignore")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(partitions=2), "topics with one partition.*use --partitions 1"),
        (Settings(cache_bytes=1), "a cache emits only the last of several results.*use --cache-bytes 0"),
    ],
)
def test_what_a_trace_could_not_say_is_refused(settings: Settings, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        require_recordable(settings)


def test_messages_stay_in_their_topics_where_they_are_to_be_read() -> None:
    cluster: Any = SimpleNamespace(client={}, bootstrap="localhost:9092")
    kept = Settings(keeps_messages=True).properties("app", cluster, "/tmp")  # type: ignore[arg-type]
    assert int(kept["repartition.purge.interval.ms"]) > 1_000_000_000
    assert "repartition.purge.interval.ms" not in Settings().properties("app", cluster, "/tmp")  # type: ignore[arg-type]
