"""Record a run on a broker: read the records of its topics as a trace for TLC (`specs/traces.py`).

Source: `SubscriptionWrapperSerde` and `SubscriptionResponseWrapperSerde` of Kafka Streams 4.3.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ....reference.core.errors import BadInput
from ....reference.core.records import Value
from ....specs.traces import UNKNOWN, EventKind, JoinTrace, TraceEvent
from ...witnesses.kafka.interleaving import HASH_BYTES, HASH_IS_NULL, INSTRUCTIONS, response_of, utf8_of
from ...witnesses.kafka.versions import asks_as_3_9_0, version_in_use
from ...witnesses.kafka_broker.application import INNER, INNER_BY_LEFT, LEFT, Application, Settings
from ...witnesses.kafka_broker.clients import Received

PROTOCOLS = {INNER: "kafka 4.3", LEFT: "kafka 4.3", INNER_BY_LEFT: "kafka 4.3 answer"}
"""The specification's name for the protocol of each join; `OLDER` is for releases up to 3.9.0, and for 4.0.0."""
OLDER = "kafka 3.9"
_VERSION = 0x7F
_PARTITION_BYTES = 4
_LONG_BYTES = 8


def require_recordable(settings: Settings) -> None:
    """Refuse settings under which the topics don't contain the order of messages, or not every output.

    Raises:
        BadInput: The settings can't be recorded; the message contains the remedy.
    """
    if settings.partitions != 1:
        raise BadInput("a run is recorded from topics with one partition, which keep the order: use --partitions 1")
    if settings.join == INNER_BY_LEFT and asks_as_3_9_0(version_in_use()):
        raise BadInput(
            "no specification covers inner-by-left in releases up to 3.9.0, and 4.0.0: record inner or left, or a "
            "later release"
        )
    if settings.cache_bytes:
        raise BadInput("a cache emits only the last of several results, but a trace needs all: use --cache-bytes 0")


def recorded(application: Application) -> JoinTrace:
    """Return the trace of an application's topics, after all messages have been processed.

    Args:
        application: The application; its topics have one partition, and contain all their messages.
    """
    clients, settings = application.clients, application.settings
    internal = clients.topics(f"{application.name}-")
    subscriptions, responses = (
        clients.read_raw(
            next(name for name in internal if f"-SUBSCRIPTION-{what}-" in name and name.endswith("-topic"))
        )
        for what in ("REGISTRATION", "RESPONSE")
    )
    left = clients.read_raw(application.left)
    hashed = _hashes(left, clients.jvm.org.apache.kafka.streams.state.internals.Murmur3.hash128)
    events = [
        *(_change("left", record, settings.foreign_key) for record in left),
        *(_change("right", record, settings.foreign_key) for record in clients.read_raw(application.right)),
        *(_subscription(record, hashed) for record in subscriptions),
        *(_response(record, hashed) for record in responses),
        *(_output(record) for record in clients.read_raw(application.out)),
    ]
    numbered = [event.numbered(line) for line, event in enumerate(events, 2)]
    join = "left" if settings.join == LEFT else "inner"
    null_foreign_key = "keep" if join == "left" else "ignore"
    protocol = OLDER if asks_as_3_9_0(version_in_use()) else PROTOCOLS[settings.join]
    return JoinTrace(join, protocol, null_foreign_key, "topics", True, tuple(numbered))


def _hashes(left: Sequence[Received], hash128: Callable[[bytes], Sequence[int]]) -> dict[bytes | None, Value]:
    """Return the left values, by the hashes of their bytes."""
    texts = {record.value for record in left if record.value is not None}
    found: dict[bytes | None, Value] = {None: None}
    for text in texts:
        longs = hash128(text.encode("latin-1"))
        digest = b"".join(int(longs[index]).to_bytes(_LONG_BYTES, "big", signed=True) for index in range(2))
        found[digest] = _value(text)
    return found


def _value(text: str | None) -> Value:
    return None if text is None else json.loads(utf8_of(text))


def _change(kind: EventKind, record: Received, foreign_key: str) -> TraceEvent:
    value: Any = _value(record.value)
    names = value.get(foreign_key) if kind == "left" and isinstance(value, dict) else None
    return TraceEvent(0, kind, utf8_of(record.key), foreign_key=names, value=value)


def _subscription(record: Received, hashed: dict[bytes | None, Value]) -> TraceEvent:
    """Parse `{hash is null, version}{instruction}{hash}{left key}{partition}`; version 0 has no partition."""
    assert record.value is not None
    content = record.value.encode("latin-1")
    start = 2 if content[0] & HASH_IS_NULL else 2 + HASH_BYTES
    end = len(content) - (_PARTITION_BYTES if content[0] & _VERSION else 0)
    to = None if record.key is None else utf8_of(record.key)
    of = hashed.get(content[2:start] or None, UNKNOWN)
    asks = INSTRUCTIONS[content[1]].value
    return TraceEvent(0, "subscription sent", content[start:end].decode(), foreign_key=to, instruction=asks, of=of)


def _response(record: Received, hashed: dict[bytes | None, Value]) -> TraceEvent:
    """Parse a response, which doesn't contain its right key."""
    assert record.value is not None
    digest, value = response_of(record.value)
    of = hashed.get(digest, UNKNOWN)
    return TraceEvent(0, "response sent", utf8_of(record.key), foreign_key=UNKNOWN, value=value, of=of)


def _output(record: Received) -> TraceEvent:
    return TraceEvent(0, "output", utf8_of(record.key), value=_value(record.value))
