"""Seeded bugs of the foreign-key join on Spark, most of them shipped once (facts/bug_museum).

What needs messages that wait, such as KAFKA-18713, can't happen in one query: `decoupled_foreign_key_join` has those.
"""

from __future__ import annotations

from typing import Any

from ...spark_impl.foreign_key_stages import (
    Answer,
    Instruction,
    LeftKept,
    ReceiverLogic,
    RightKept,
    RightLogic,
    RightRow,
    SenderLogic,
    Subscription,
    foreign_key_stages,
)
from ...spark_impl.keyed import Arrived, Key, Told
from . import decoupled_foreign_key_join
from .common import SharingState, staged_mutants_of


class StaySubscribed(SenderLogic):
    """A changed foreign key is subscribed again instead of unsubscribed (KAFKA-9244 with the new hash)."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        again = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE
        return [*(one._replace(instruction=again, digest=digest) for one in asked[:-1]), *asked[-1:]]


class SilentMove(SenderLogic):
    """A move to a foreign key without a row says nothing, so that the old result lives on (KAFKA-3705)."""

    def asks(self, before: Key | None, after: Key) -> Instruction:
        return Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE


class SilentNull(SenderLogic):
    """A foreign key that becomes null is unsubscribed in silence (KAFKA-16434)."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        if after is None:
            return [one._replace(instruction=Instruction.DELETE_KEY_NO_PROPAGATE) for one in asked]
        return asked


class DeafToInserts(SenderLogic):
    """A row whose foreign key was null before is ignored (KAFKA-16407)."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        return [] if before is None else super().subscriptions(before, after, digest)


class TombstoneStays(RightLogic):
    """A deleted right row isn't told to those who refer to it."""

    def change(self, kept: RightKept, row: Arrived) -> list[Told]:
        told = super().change(kept, row)
        return [] if row.value is None else told


class OneSubscriber(RightLogic):
    """A right change reaches the first subscriber alone."""

    def change(self, kept: RightKept, row: Arrived) -> list[Told]:
        return super().change(kept, row)[:1]


class OwnTimestamp(RightLogic):
    """An answer to a left change is stamped by the left row alone."""

    def receive(
        self, kept: RightKept, key: Key, digest: bytes | None, instruction: Instruction, timestamp: int
    ) -> tuple[Answer, int] | None:
        told = super().receive(kept, key, digest, instruction, timestamp)
        return None if told is None else (told[0], timestamp)


class ForgetsRightRow(RightLogic):
    """A right row is not kept from one batch to the next."""

    def pack(self, kept: RightKept) -> tuple[Any, ...] | None:
        return super().pack(RightKept(None, kept.subscribed))

    def unpack(self, fields: tuple[Any, ...]) -> RightKept:
        found = super().unpack(fields)
        return RightKept(found.row if isinstance(found.row, RightRow) else None, found.subscribed)


class ToldTwice(ReceiverLogic):
    """Every result is told twice, which no table shows (KAFKA-16394)."""

    def take(self, key: Key, kept: LeftKept, row: Arrived, clock: int) -> list[Told]:
        return super().take(key, kept, row, clock) * 2


class EverythingIsStale(ReceiverLogic):
    """No response passes the check of the hash (KAFKA-15303)."""

    def is_stale(self, kept: LeftKept, digest: bytes | None) -> bool:
        return True


class ReferenceForgotten(SenderLogic):
    """Every row refers to the first foreign key that its key had."""

    def take(self, key: Key, kept: list[Key], row: Arrived, clock: int) -> list[Told]:
        first = kept[:1]
        told = super().take(key, kept, row, clock)
        kept[:] = first or kept
        return told


class RepeatUnsubscribes(SenderLogic):
    """A row that refers to the same foreign key again is unsubscribed."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        if before is not None and before == after:
            return [one._replace(instruction=Instruction.DELETE_KEY_AND_PROPAGATE) for one in asked]
        return asked


class StateOfAnotherKey(SharingState, SenderLogic):
    """A row meets the state of the key that had the row before."""


IN_ONE_QUERY = staged_mutants_of(
    "foreign_key_join",
    foreign_key_stages,
    {
        StaySubscribed: ("sender", "inner"),
        SilentMove: ("sender", "inner"),
        SilentNull: ("sender", "inner"),
        DeafToInserts: ("sender", "inner"),
        ReferenceForgotten: ("sender", "inner"),
        RepeatUnsubscribes: ("sender", "inner"),
        StateOfAnotherKey: ("sender", "inner"),
        TombstoneStays: ("right", "inner"),
        OneSubscriber: ("right", "inner"),
        OwnTimestamp: ("right", "inner"),
        ForgetsRightRow: ("right", "inner"),
        ToldTwice: ("receiver", "inner"),
        EverythingIsStale: ("receiver", "inner"),
    },
)
MUTANTS = {**IN_ONE_QUERY, **decoupled_foreign_key_join.MUTANTS}
