"""Variants of the reference's protocol that send the same messages as Kafka Streams.

These variants never replace the reference, which follows the KIP. Source: Kafka Streams 4.3.1 and 3.9.0, package
`kstream.internals.foreignkeyjoin`, the classes `SubscriptionSendProcessorSupplier` and
`SubscriptionReceiveProcessorSupplier`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from ...reference.core.clocks import Clock
from ...reference.core.records import Change, Key, Value
from ...reference.definitions.joins import ForeignKeyJoin
from ...reference.foreign_key_protocol import (
    Instruction,
    Left,
    Protocol,
    Response,
    Right,
    Subscription,
    digest_of,
)
from .foreign_key_mutants import RoutesOutOfOrder

WITHOUT_KEY: Key = "\0"
"""The route of messages about rows without a foreign key, which have no key in Kafka and may overtake each other."""

_LEAVE = Instruction.DELETE_KEY_NO_PROPAGATE
_DELETE = Instruction.DELETE_KEY_AND_PROPAGATE
_ALWAYS = Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
_ONLY = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE

SentInstruction: TypeAlias = tuple[Key | None, Instruction]


class KafkaLeft(Left):
    """The left side of Kafka Streams 4.3; its subscriptions depend only on the foreign keys.

    Attributes:
        as_left: Whether an inner join sends the subscriptions of a left join, so that each change gets a response.
    """

    as_left: ClassVar[bool] = False
    on_leaving: ClassVar[Instruction] = _LEAVE

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        """Change a row; return the subscriptions to send. The left side emits no result before a response."""
        old = self.table.pop(key, None)
        if new is not None:
            self.table[key] = new
        asks = self.asks_as_left if self.as_left or self.join.join == "left" else self.asks_as_inner
        return [
            Subscription(WITHOUT_KEY if to is None else to, key, digest_of(new), instruction, timestamp)
            for to, instruction in asks(old, new)
        ], []

    def asks_as_left(self, old: Value, new: Value) -> list[SentInstruction]:
        """Return the left join's instructions by foreign key (`leftJoinInstructions`)."""
        if old is None and new is None:
            return []
        before, after = self.join.foreign_key_of(old), self.join.foreign_key_of(new)
        return [*([(before, self.on_leaving)] if before not in (None, after) else []), (after, _ALWAYS)]

    def asks_as_inner(self, old: Value, new: Value) -> list[SentInstruction]:
        """Return the inner join's instructions by foreign key (`defaultJoinInstructions`)."""
        before, after = self.join.foreign_key_of(old), self.join.foreign_key_of(new)
        if after is None:
            return [] if before is None else [(before, _DELETE)]
        return [(after, _ONLY)] if before in (None, after) else [(before, _LEAVE), (after, _ALWAYS)]


class AnsweredLeft(KafkaLeft):
    """A left side for inner joins that sends the same subscriptions as for left joins."""

    as_left = True


class OldKafkaLeft(KafkaLeft):
    """The left side of Kafka Streams 3.9.0."""

    on_leaving = _DELETE  # KAFKA-18713

    def asks_as_inner(self, old: Value, new: Value) -> list[SentInstruction]:
        """Return the inner join's instructions by foreign key; a row that loses its key, or had none, is skipped."""
        before, after = self.join.foreign_key_of(old), self.join.foreign_key_of(new)
        if old is None:
            return [] if after is None else [(after, _ONLY)]
        if before is None or (new is not None and after is None):
            return []  # KAFKA-16407 and KAFKA-16434
        if new is None:
            return [(before, _DELETE)]
        return [*([(before, _LEAVE)] if before != after else []), (after, _ALWAYS)]


class KafkaRight(Right):
    """The right side of Kafka Streams: it responds with null to messages without a key, and doesn't store them."""

    def receive(self, subscription: Subscription) -> list[Response]:
        """Follow a subscription's instruction; return the response, if any."""
        if subscription.foreign_key != WITHOUT_KEY:
            return super().receive(subscription)
        return [Response(WITHOUT_KEY, subscription.key, subscription.digest, None, subscription.timestamp)]


class KafkaProtocol(RoutesOutOfOrder):
    """Both sides of Kafka Streams 4.3 with their channels, in which messages without a key overtake each other."""

    left_side: ClassVar[type[KafkaLeft]] = KafkaLeft

    def __init__(self, join: ForeignKeyJoin, clock: Clock) -> None:
        super().__init__(join, clock)
        self.left, self.right = self.left_side(join), KafkaRight(join)


class AnsweredKafkaProtocol(KafkaProtocol):
    """Kafka Streams 4.3, with an inner join that sends the left join's subscriptions."""

    left_side = AnsweredLeft


class OldKafkaProtocol(KafkaProtocol):
    """Kafka Streams 3.9.0."""

    left_side = OldKafkaLeft


KAFKA: Mapping[str, tuple[Literal["kip", "answer"], type[Protocol]]] = {
    "kafka 4.3": ("kip", KafkaProtocol),
    "kafka 4.3 answer": ("answer", AnsweredKafkaProtocol),
    "kafka 3.9": ("kip", OldKafkaProtocol),
}
"""The most similar value of the option, and the protocol, for each Kafka value of the constant `Protocol`."""
