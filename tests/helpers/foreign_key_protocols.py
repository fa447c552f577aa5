"""The protocol of the foreign-key join with its messages visible, and mutants of it."""

from __future__ import annotations

from typing import Any

from notation import Machine, lines_of, shown, shown_value, steps
from streamproof.reference.core.clocks import StreamTime
from streamproof.reference.core.history import Delivery
from streamproof.reference.core.records import Change, Key, Record, Value
from streamproof.reference.definitions.joins import ForeignKeyJoin
from streamproof.reference.foreign_key_protocol import (
    Instruction,
    Left,
    Protocol,
    Response,
    Right,
    Route,
    Subscription,
    digest_of,
    prefix_of,
)

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


class Unchecked(Left):
    """Skips the check of the hash."""

    def receive(self, response: Response) -> list[Change]:
        return self._emit(response.key, response.value, response.timestamp)


def with_left(left: type[Left]) -> type[Protocol]:
    class Machine(Protocol):
        def __init__(self, join: ForeignKeyJoin, clock: Any) -> None:
            super().__init__(join, clock)
            self.left = left(join)

    Machine.__name__ = left.__name__
    return Machine


def with_right(right: type[Right], left: type[Left] = Left) -> type[Protocol]:
    class Machine(Protocol):
        def __init__(self, join: ForeignKeyJoin, clock: Any) -> None:
            super().__init__(join, clock)
            self.left = left(join)
            self.right = right(join)

    Machine.__name__ = right.__name__
    return Machine


class Hashed(Left):
    """An unsubscribe carries the new value's hash, as in Kafka."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        subscriptions, emitted = super().change(key, new, timestamp)
        return [one._replace(digest=digest_of(new)) for one in subscriptions], emitted


class Resubscribe(Right):
    """KAFKA-9244 with the new hash: an unsubscribe stores it instead of forgetting the row."""

    def receive(self, subscription: Subscription) -> list[Response]:
        foreign_key, key, digest, instruction, _ = subscription
        emitted = super().receive(subscription)
        if instruction is Instruction.DELETE_KEY_NO_PROPAGATE:
            self.subscriptions[prefix_of(foreign_key) + key.encode()] = (key, digest)
        return emitted


class SilentMove(Left):
    """KAFKA-3705: a change to a key without row emits nothing."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        subscriptions, emitted = super().change(key, new, timestamp)
        if len(subscriptions) == 2:
            asked = subscriptions[1]._replace(instruction=Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)
            subscriptions = [subscriptions[0], asked]
        return subscriptions, emitted


class SilentNull(Left):
    """KAFKA-16434: a row whose key becomes null sends nothing."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        subscriptions, emitted = super().change(key, new, timestamp)
        return ([], []) if new is not None and self.join.foreign_key_of(new) is None else (subscriptions, emitted)


class DeafToInserts(Left):
    """KAFKA-16407: a row whose key was null is ignored."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        old = self.table.get(key)
        subscriptions, emitted = super().change(key, new, timestamp)
        return ([], []) if old is not None and self.join.foreign_key_of(old) is None else (subscriptions, emitted)


class WrittenAgain(Left):
    """KAFKA-15303: the hash of an answer is compared with one over other bytes of the same value."""

    def receive(self, response: Response) -> list[Change]:
        left = self.table.get(response.key)
        return super().receive(response) if left is None else []


def written(route: Route) -> str:
    channel, foreign_key, key = route
    return f">{foreign_key}" if channel == "subscription" else f"<{foreign_key}/{key}"
