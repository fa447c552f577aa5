"""A Kafka topic as a store, on a broker that this process starts for all its checks."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from .....reference.core.errors import BadInput
from ....generators.columns.forms.rows import Row
from ....system.arguments import short
from .store import SinkStore

if TYPE_CHECKING:
    from ...kafka_broker.clients import Clients

TopicValue: TypeAlias = Literal["json", "text"]
PARTITIONS = 2


@dataclass(frozen=True)
class TopicStore(SinkStore):
    """A new topic for each query.

    Attributes:
        value: The form of a record's value: a JSON object, whose members are columns, or text, the column `value`.
        once: The columns by which a reader of the topic recognizes a repeated record; empty: readers count repeated
            records, too.
    """

    value: TopicValue = "json"
    once: Sequence[str] = ()
    name = "Sink.kafka"

    @property
    def leaves_nulls_out(self) -> bool:
        return True

    @contextlib.contextmanager
    def at(self, folder: Path) -> Iterator[str]:
        """Create a topic, yield the broker's address and the topic's name, and delete the topic."""
        clients, topic = _clients(), f"streamproof-{uuid.uuid4().hex}"
        clients.create_topics([topic], PARTITIONS)
        try:
            yield f"{clients.cluster.bootstrap}/{topic}"
        finally:
            clients.delete_topics([topic])

    def rows(self, target: str) -> list[Row]:
        """Return a row for each record outside uncommitted transactions; the record's key is the column `key`.

        Raises:
            BadInput: A value isn't a JSON object, or a record lacks a column of `once`.
        """
        _, _, topic = target.rpartition("/")
        found: list[Row] = []
        for record in _clients().read_all(topic, PARTITIONS):
            columns = {"value": record.value} if self.value == "text" else self._parsed(record.value)
            found.append({"key": record.key, **columns})
        names = dict.fromkeys(name for row in found for name in row)
        rows: list[Row] = [{name: row.get(name) for name in names} for row in found]
        if not self.once or not rows:
            return rows
        if unknown := [name for name in self.once if name not in names]:
            raise BadInput(
                f"{self.name}: once has {unknown[0]!r}, and the records have {', '.join(map(repr, names))}: name the "
                "columns by which a reader recognizes a repeated record"
            )
        first: dict[str, Row] = {}
        for row in rows:
            first.setdefault(repr([row[name] for name in self.once]), row)
        return [*first.values()]

    def _parsed(self, value: str | None) -> Row:
        if value is None:
            return {}
        try:
            row = json.loads(value, parse_float=Decimal)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise BadInput(
                f"{self.name}: the topic has the value {short(value)}: write each value as a JSON object, such as "
                'to_json(struct(…)), or give value="text"'
            )
        return row


@functools.cache
def _clients() -> Clients:
    """Return the clients of this process's broker; start the broker first if needed.

    Raises:
        MissingTool: The broker's jars or Java are missing.
        StreamproofError: The broker doesn't start.
    """
    from ...kafka.jvm import kafka_jvm
    from ...kafka_broker.broker import own_broker
    from ...kafka_broker.clients import Clients

    gateway = kafka_jvm().gateway
    broker = contextlib.ExitStack()
    atexit.register(broker.close)
    clients = Clients(gateway, broker.enter_context(own_broker()))
    broker.callback(clients.close)
    return clients
