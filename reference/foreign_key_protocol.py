"""The foreign-key join as a protocol: two sides send messages, which may wait in channels.

A left change sends subscriptions to right keys. A right key sends responses to subscriptions, and to its subscribers
after every change of its row. Messages on one route keep their order; messages on different routes may overtake each
other. With manual delivery each message waits until a history line delivers it; with immediate delivery no message
waits. Source: KIP-213, "Workflow", "Original Value Hash", "Tombstones & Foreign Key Changes"; `docs/facts.md`.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import deque
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from .core.clocks import Clock
from .core.errors import BadInput
from .core.records import Change, Dropped, Key, Output, Record, Value
from .definitions.joins import ForeignKeyJoin


class Instruction(StrEnum):
    """The instruction of a subscription to a right key (KIP-213, `SubscriptionWrapper`)."""

    DELETE_KEY_NO_PROPAGATE = "DELETE_KEY_NO_PROPAGATE"
    DELETE_KEY_AND_PROPAGATE = "DELETE_KEY_AND_PROPAGATE"
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"


class Subscription(NamedTuple):
    """A message from a left row to its present or former right key; `digest` is the hash of the left value, if any."""

    foreign_key: Key
    key: Key
    digest: bytes | None
    instruction: Instruction
    timestamp: int


class Response(NamedTuple):
    """A message from a right key to a left row: the right value or None, and the subscription's digest."""

    foreign_key: Key
    key: Key
    digest: bytes | None
    value: Value
    timestamp: int


Route: TypeAlias = tuple[str, Key, Key | None]


def digest_of(value: Value) -> bytes | None:
    """Return the hash of a left value's canonical JSON; equal values have equal hashes."""
    return (
        None if value is None else hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()
    )


def prefix_of(foreign_key: Key) -> bytes:
    """Return the prefix of the combined keys of a foreign key: `{4-byte length}{foreign key}`."""
    return struct.pack(">i", len(foreign_key.encode())) + foreign_key.encode()


class Left:
    """The left side: it stores the left table, sends subscriptions, and joins the responses."""

    def __init__(self, join: ForeignKeyJoin) -> None:
        self.join = join
        self.table: dict[Key, Value] = {}
        self.shown: set[Key] = set()

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        """Change a row; return the subscriptions to send, and the changes that need no response.

        Args:
            key: The left key.
            new: The row's new value; None deletes it.
            timestamp: The time of the change (ms).
        """
        old = self.table.pop(key, None)
        if new is not None:
            self.table[key] = new
        before, after = self.join.foreign_key_of(old), self.join.foreign_key_of(new)

        def ask(foreign_key: Key, instruction: Instruction) -> Subscription:
            # The hash identifies a row in a response, and this unsubscription gets none.
            silent = instruction is Instruction.DELETE_KEY_NO_PROPAGATE
            return Subscription(foreign_key, key, None if silent else digest_of(new), instruction, timestamp)

        if after is None:
            if before is not None:
                return [ask(before, Instruction.DELETE_KEY_AND_PROPAGATE)], []
            return [], self._emit(key, None, timestamp) if self._owes_an_answer(key, new) else []
        moved = before not in (None, after)
        always = moved or self.join.answers_all
        asked = ask(
            after,
            Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
            if always
            else Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE,
        )
        return ([ask(before, Instruction.DELETE_KEY_NO_PROPAGATE)] if moved and before is not None else []) + [
            asked
        ], []

    def _owes_an_answer(self, key: Key, new: Value) -> bool:
        # Without a foreign key no right key responds, so the left side emits the response that every change must get.
        return self.join.answers_all and (key in self.shown or (new is not None and self.join.keeps_null))

    def receive(self, response: Response) -> list[Change]:
        """Join a response with the current left row; ignore a stale response, which refers to an earlier left value."""
        if digest_of(self.table.get(response.key)) != response.digest:
            return []
        return self._emit(response.key, response.value, response.timestamp)

    def _emit(self, key: Key, right: Value, timestamp: int) -> list[Change]:
        left = self.table.get(key)
        joins = self.join.keeps_null or self.join.foreign_key_of(left) is not None
        if left is None or (right is None and not (self.join.join == "left" and joins)):
            self.shown.discard(key)
            return [Change(key, None, None, timestamp)]
        self.shown.add(key)
        return [Change(key, None, [left, right], timestamp)]


class Right:
    """The right side: it stores the right table, and the subscriptions by their combined keys."""

    def __init__(self, join: ForeignKeyJoin) -> None:
        self.join = join
        self.table: dict[Key, tuple[Value, int]] = {}
        self.subscriptions: dict[bytes, tuple[Key, bytes | None]] = {}

    def receive(self, subscription: Subscription) -> list[Response]:
        """Follow a subscription's instruction; return the response, if any."""
        foreign_key, key, digest, instruction, timestamp = subscription
        combined = prefix_of(foreign_key) + key.encode()
        if instruction in (Instruction.DELETE_KEY_NO_PROPAGATE, Instruction.DELETE_KEY_AND_PROPAGATE):
            self.subscriptions.pop(combined, None)
            propagate = instruction is Instruction.DELETE_KEY_AND_PROPAGATE
            # A response to a left change has the later timestamp of both rows; in a left join, the left row's
            # timestamp.
            if self.join.join == "inner":
                timestamp = max(timestamp, self.table.get(foreign_key, (None, 0))[1])
            return [Response(foreign_key, key, digest, None, timestamp)] if propagate else []
        self.subscriptions[combined] = (key, digest)
        if foreign_key in self.table:
            value, stamp = self.table[foreign_key]
            return [Response(foreign_key, key, digest, value, max(timestamp, stamp))]
        propagate = instruction is Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
        return [Response(foreign_key, key, digest, None, timestamp)] if propagate else []

    def change(self, foreign_key: Key, value: Value, timestamp: int) -> list[Response]:
        """Change a row; return the responses to its subscribers, in the order of the left keys.

        Args:
            foreign_key: The right key.
            value: The row's new value; None deletes it.
            timestamp: The time of the change (ms).
        """
        self.table.pop(foreign_key, None)
        if value is not None:
            self.table[foreign_key] = (value, timestamp)
        scanned = sorted(combined for combined in self.subscriptions if combined.startswith(prefix_of(foreign_key)))
        return [Response(foreign_key, *self.subscriptions[combined], value, timestamp) for combined in scanned]


class Protocol:
    """The state machine with messages: both sides of the join, and the channels between them."""

    def __init__(self, join: ForeignKeyJoin, clock: Clock) -> None:
        self.join = join
        self.clock = clock
        self.left = Left(join)
        self.right = Right(join)
        self.waiting: dict[Route, deque[Subscription | Response]] = {}  # without empty routes

    def arrive(self, record: Record) -> list[Output]:
        """Change a row; with manual delivery the resulting messages wait in their channels."""
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        emitted: list[Change] = []
        if record.input == "left":
            subscriptions, emitted = self.left.change(record.key, record.value, record.timestamp)
            self._send(*subscriptions)
        else:
            self._send(*self.right.change(record.key, record.value, record.timestamp))
        if self.join.delivery == "immediate":
            while self.waiting:
                emitted += self.deliver(*next(iter(self.waiting)))
        return [*emitted]

    def deliver(self, channel: str, foreign_key: Key, key: Key | None) -> list[Change]:
        """Deliver the oldest message that waits on a route.

        Args:
            channel: `subscription` or `response`.
            foreign_key: The right key that receives or sends the message.
            key: The left key that receives a response; None for a subscription.

        Raises:
            BadInput: No message waits on the route; the error lists the routes on which messages wait.
        """
        route = (channel, foreign_key, key)
        if route not in self.waiting:
            routes = "; ".join(" ".join(filter(None, other)) for other in self.waiting) or "none"
            asked = " ".join(filter(None, route))
            raise BadInput(f"no message waits on {asked}: deliver from a route with messages ({routes})")
        message = self.waiting[route].popleft()
        if not self.waiting[route]:
            del self.waiting[route]
        if isinstance(message, Response):
            return self.left.receive(message)
        self._send(*self.right.receive(message))
        return []

    def _send(self, *messages: Subscription | Response) -> None:
        for message in messages:
            to_right = isinstance(message, Subscription)
            route = ("subscription", message.foreign_key, None) if to_right else ("response", *message[:2])
            self.waiting.setdefault(route, deque()).append(message)

    def advance(self) -> list[Output]:
        """Return no changes: the clock alone changes no result."""
        return []
