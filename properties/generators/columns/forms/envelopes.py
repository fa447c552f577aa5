"""The record columns of Spark's sources: Kafka, Kinesis, Event Hubs, Pub/Sub, Pulsar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa

from .rows import microseconds
from .times import TIMESTAMP

_TEXTS = pa.map_(pa.string(), pa.string())


class WireMessage(NamedTuple):
    """A record, whatever its source is.

    Attributes:
        key: The record's key; None: no key.
        value: The record's payload.
        topic: The name of the topic or stream.
        partition: The number of the record's partition.
        offset: The record's offset in the partition.
        time: The time when the broker appended the record.
    """

    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    time: datetime


@dataclass(frozen=True)
class Envelope:
    """The format of a source's records.

    Attributes:
        columns: The columns.
        payload: The column of the payload.
        time: The column of the record's own timestamp; None if the source has no timestamp column.
        key: The key's column.
        values: The function that returns a record's values by column.
        places: The columns with a record's position in the stream; if a producer sends the record again, these columns
            differ.
    """

    columns: pa.Schema
    payload: str
    time: str | None
    key: str
    values: Callable[[WireMessage], Mapping[str, Any]]
    places: tuple[str, ...] = ()


def _schema(**kinds: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in kinds.items()])


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode(errors="replace")


def _of_kafka(record: WireMessage) -> Mapping[str, Any]:
    headers = None if record.offset % 3 == 0 else [{"key": "trace", "value": str(record.offset).encode()}]
    return {
        "key": record.key,
        "value": record.value,
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.time,
        "timestampType": 0,
        "headers": headers,
    }


def _of_kinesis(record: WireMessage) -> Mapping[str, Any]:
    return {
        "partitionKey": _text(record.key) or str(record.offset),
        "data": record.value,
        "stream": record.topic,
        "shardId": f"shardId-{record.partition:012d}",
        "sequenceNumber": f"49{record.partition:03d}{record.offset:051d}",
        "approximateArrivalTimestamp": record.time,
    }


def _of_event_hubs(record: WireMessage) -> Mapping[str, Any]:
    return {
        "body": record.value,
        "partition": str(record.partition),
        "offset": str(record.offset * 64),  # in bytes
        "sequenceNumber": record.offset,
        "enqueuedTime": record.time,
        "publisher": None,
        "partitionKey": _text(record.key),
        "properties": {},
        "systemProperties": {},
    }


def _of_pub_sub(record: WireMessage) -> Mapping[str, Any]:
    return {
        "messageId": f"{record.partition}{record.offset:012d}",
        "payload": record.value,
        "attributes": "{}",
        "publishTimestampInMillis": microseconds(record.time) // 1000,
    }


def _of_pulsar(record: WireMessage) -> Mapping[str, Any]:
    return {
        "value": record.value,
        "__key": record.key,
        "__topic": record.topic,
        "__messageId": f"{record.partition}:{record.offset}".encode(),
        "__publishTime": record.time,
        "__eventTime": None,
        "__messageProperties": {},
    }


HEADERS = pa.field("headers", pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
"""The column of Kafka's headers, which Spark adds with the option `includeHeaders`."""
_KAFKA = _schema(
    key=pa.binary(),
    value=pa.binary(),
    topic=pa.string(),
    partition=pa.int32(),
    offset=pa.int64(),
    timestamp=TIMESTAMP,
    timestampType=pa.int32(),
)
_KINESIS = _schema(
    partitionKey=pa.string(),
    data=pa.binary(),
    stream=pa.string(),
    shardId=pa.string(),
    sequenceNumber=pa.string(),
    approximateArrivalTimestamp=TIMESTAMP,
)
_EVENT_HUBS = _schema(
    body=pa.binary(),
    partition=pa.string(),
    offset=pa.string(),
    sequenceNumber=pa.int64(),
    enqueuedTime=TIMESTAMP,
    publisher=pa.string(),
    partitionKey=pa.string(),
    properties=_TEXTS,
    systemProperties=_TEXTS,
)
_PUB_SUB = _schema(
    messageId=pa.string(), payload=pa.binary(), attributes=pa.string(), publishTimestampInMillis=pa.int64()
)
_PULSAR = _schema(
    value=pa.binary(),
    __key=pa.binary(),
    __topic=pa.string(),
    __messageId=pa.binary(),
    __publishTime=TIMESTAMP,
    __eventTime=TIMESTAMP,
    __messageProperties=_TEXTS,
)
ENVELOPES: Mapping[str, Envelope] = {
    "kafka": Envelope(_KAFKA, "value", "timestamp", "key", _of_kafka, ("partition", "offset", "headers")),
    "kinesis": Envelope(
        *(_KINESIS, "data", "approximateArrivalTimestamp", "partitionKey", _of_kinesis), ("shardId", "sequenceNumber")
    ),
    "eventhubs": Envelope(
        *(_EVENT_HUBS, "body", "enqueuedTime", "partitionKey", _of_event_hubs),
        ("partition", "offset", "sequenceNumber"),
    ),
    "pubsub": Envelope(_PUB_SUB, "payload", None, "", _of_pub_sub, ("messageId",)),
    "pulsar": Envelope(_PULSAR, "value", "__publishTime", "__key", _of_pulsar, ("__messageId",)),
}
"""The formats of records, by the format name of Spark's readers."""
