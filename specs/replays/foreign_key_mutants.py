"""Mutants of the reference's protocol that send the same messages as the mutants of `ForeignKeyJoin.tla`.

Most mutants are bugs of a Kafka release (`docs/facts.md`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...reference.core.clocks import Clock
from ...reference.core.records import Change, Key, Value
from ...reference.definitions.joins import ForeignKeyJoin
from ...reference.foreign_key_protocol import (
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


class NoHashCheck(Left):
    """The left side joins a response even if the response's hash belongs to another value."""

    def receive(self, response: Response) -> list[Change]:
        return self._emit(response.key, response.value, response.timestamp)


class AsksTheOldKey(Left):
    """A change of foreign key also requests a response from the old key (KAFKA-18713)."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        sent, emitted = super().change(key, new, timestamp)
        asks = Instruction.DELETE_KEY_AND_PROPAGATE
        return [*(one._replace(instruction=asks, digest=digest_of(new)) for one in sent[:-1]), *sent[-1:]], emitted


class UnsubscribeNotSent(Left):
    """The left side doesn't notify the old key of a change of foreign key (KAFKA-9244)."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        sent, emitted = super().change(key, new, timestamp)
        return sent[-1:], emitted


class UnsubscribesWithHash(Left):
    """The left side notifies the old key of a change of foreign key with the new hash."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        sent, emitted = super().change(key, new, timestamp)
        return [*(one._replace(digest=digest_of(new)) for one in sent[:-1]), *sent[-1:]], emitted


class StoresTheHash(Right):
    """An unsubscribe stores its hash, if any (KAFKA-9244, with `UnsubscribesWithHash`)."""

    def receive(self, subscription: Subscription) -> list[Response]:
        emitted = super().receive(subscription)
        foreign_key, key, digest, *_ = subscription
        if digest is not None:
            self.subscriptions[prefix_of(foreign_key) + key.encode()] = (key, digest)
        return emitted


class MoveSilent(Left):
    """A change to a missing foreign key gets no response (KAFKA-3705)."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        sent, emitted = super().change(key, new, timestamp)
        if len(sent) < 2:
            return sent, emitted
        return [sent[0], sent[1]._replace(instruction=Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)], emitted


class DeleteSilent(Left):
    """A row that is deleted, or loses its foreign key, gets no response (KAFKA-16434)."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        sent, emitted = super().change(key, new, timestamp)
        silent = Instruction.DELETE_KEY_NO_PROPAGATE
        return [one._replace(instruction=silent) for one in sent] if self.join.foreign_key_of(
            new
        ) is None else sent, emitted


class NullKeySilent(Left):
    """The left join emits nothing for a new row without a foreign key."""

    def _owes_an_answer(self, key: Key, new: Value) -> bool:
        return self.join.answers_all and key in self.shown


class NoPrefixLength(Right):
    """The scan of `r1` also finds the subscriptions to `r10`."""

    def change(self, foreign_key: Key, value: Value, timestamp: int) -> list[Response]:
        emitted = super().change(foreign_key, value, timestamp)
        for combined, (key, digest) in self.subscriptions.items():
            other = combined[len(prefix_of("")) : len(combined) - len(key.encode())].decode()
            if other.startswith(foreign_key) and other != foreign_key:
                emitted.append(Response(other, key, digest, value, timestamp))
        return emitted


class RightTombstoneSilent(Right):
    """The right side doesn't notify subscribers of a deleted right row."""

    def change(self, foreign_key: Key, value: Value, timestamp: int) -> list[Response]:
        emitted = super().change(foreign_key, value, timestamp)
        return [] if value is None else emitted


class RoutesOutOfOrder(Protocol):
    """A route may deliver any waiting message, not only the oldest."""

    def overtake(self, route: Route, index: int) -> None:
        """Move the message at an index to the head of its route."""
        messages = self.waiting[route]
        message = messages[index]
        del messages[index]
        messages.appendleft(message)


def _with(left: type[Left] = Left, right: type[Right] = Right) -> type[Protocol]:
    class Mutated(Protocol):
        def __init__(self, join: ForeignKeyJoin, clock: Clock) -> None:
            super().__init__(join, clock)
            self.left, self.right = left(join), right(join)

    return Mutated


MUTANTS: Mapping[str, type[Protocol]] = {
    "none": Protocol,
    "no hash check": _with(NoHashCheck),
    "routes out of order": RoutesOutOfOrder,
    "asks the old key": _with(AsksTheOldKey),
    "unsubscribe not sent": _with(UnsubscribeNotSent),
    "unsubscribe stores the hash": _with(UnsubscribesWithHash, StoresTheHash),
    "move silent": _with(MoveSilent),
    "delete silent": _with(DeleteSilent),
    "null key silent": _with(NullKeySilent),
    "no prefix length": _with(right=NoPrefixLength),
    "right tombstone silent": _with(right=RightTombstoneSilent),
}
"""The protocol for each value of the constant `Mutant`."""
