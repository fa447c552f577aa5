"""The protocol of the foreign-key join with its messages visible."""

from __future__ import annotations

from typing import Any

from notation import Machine, lines_of, shown, shown_value, steps
from streamproof.reference.core.clocks import StreamTime
from streamproof.reference.core.history import Delivery
from streamproof.reference.core.records import Change, Key, Record, Value
from streamproof.reference.definitions.joins import ForeignKeyJoin
from streamproof.reference.foreign_key_protocol import Protocol, Response, Subscription, digest_of

JOIN = "foreign_key_join"


def manual(text: str, machine: Machine | None = None, **options: Any) -> list[str]:
    return steps(text, JOIN, machine, delivery="manual", **options)


class Schedule:
    """A protocol of which one sees the messages; a hash is shown as the value that it is of."""

    def __init__(self, machine: type[Protocol] = Protocol, **options: Any) -> None:
        self.protocol = machine(ForeignKeyJoin("fk", delivery="manual", **options), StreamTime())
        self.values: dict[bytes | None, str] = {None: "∅"}
        self.at = 0

    def then(self, text: str) -> list[str]:
        """Play records (all at 0 ms unless they say otherwise) and deliveries; return what comes out."""
        emitted: list[Any] = []
        for line in lines_of(text, "left"):
            if isinstance(line, Delivery):
                emitted += self.protocol.deliver(*line)
            else:
                assert isinstance(line, Record)
                self.values[digest_of(line.value)] = shown_value(line.value) if line.value else "∅"
                emitted += self.protocol.arrive(line)
        return list(map(shown, emitted))

    def drain(self) -> list[str]:
        emitted: list[Change] = []
        while self.protocol.waiting:
            emitted += self.protocol.deliver(*next(iter(self.protocol.waiting)))
        return list(map(shown, emitted))

    @property
    def waiting(self) -> list[str]:
        return [self.written(one) for messages in self.protocol.waiting.values() for one in messages]

    def written(self, message: Subscription | Response) -> str:
        emitted = message.instruction if isinstance(message, Subscription) else message.value
        arrow = ">" if isinstance(message, Subscription) else "<"
        return f"{arrow}{message.foreign_key}/{message.key} {emitted} #{self.values[message.digest]}"

    @property
    def subscribed(self) -> dict[bytes, str]:
        stored = self.protocol.right.subscriptions
        return {combined: self.values[digest] for combined, (_, digest) in stored.items()}

    @property
    def right_rows(self) -> dict[Key, Value]:
        return {key: value for key, (value, _) in self.protocol.right.table.items()}


def played(text: str, machine: type[Protocol], **options: Any) -> tuple[Protocol, list[Change]]:
    """Play a schedule of which the deliveries are left out where nothing waits; return what comes out, too."""
    protocol = machine(ForeignKeyJoin("fk", delivery="manual", **options), StreamTime())
    emitted: list[Any] = []
    for line in lines_of(text):
        if isinstance(line, Record):
            emitted += protocol.arrive(line)
        elif isinstance(line, Delivery) and tuple(line) in protocol.waiting:
            emitted += protocol.deliver(*line)
    return protocol, emitted
