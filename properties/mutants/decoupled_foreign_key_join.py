"""Seeded bugs of the foreign-key join that need messages that wait: they show in three queries alone.

Source: `facts/bug_museum`, `facts/foreign_key_races`.
"""

from __future__ import annotations

from ...spark_impl.foreign_key_stages import (
    Instruction,
    LeftKept,
    ReceiverLogic,
    RightKept,
    RightLogic,
    SenderLogic,
    Subscription,
    foreign_key_stages,
)
from ...spark_impl.keyed import Arrived, Key, Told
from .common import staged_mutants_of

IN_THREE_QUERIES = "in three queries"
"""The shape of histories that these are held to: every definition, with a schedule of delivery."""


class AsksBoth(SenderLogic):
    """A changed foreign key asks both the old and the new key for an answer (KAFKA-18713)."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        both = Instruction.DELETE_KEY_AND_PROPAGATE
        return [*(one._replace(instruction=both, digest=digest) for one in asked[:-1]), *asked[-1:]]


class NeverUnsubscribes(SenderLogic):
    """A changed foreign key is not unsubscribed, which no result shows (KAFKA-9244)."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        return super().subscriptions(before, after, digest)[-1:]


class SilentDelete(SenderLogic):
    """A deleted row is unsubscribed in silence."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        silent = Instruction.DELETE_KEY_NO_PROPAGATE
        return [one._replace(instruction=silent) for one in asked] if digest is None else asked


class AnswersDeletesTwice(RightLogic):
    """A delete is answered twice (KAFKA-16394)."""

    def take(self, key: Key, kept: RightKept, row: Arrived, clock: int) -> list[Told]:
        told = super().take(key, kept, row, clock)
        deleted = row.side != "right" and row.value["instruction"] == Instruction.DELETE_KEY_AND_PROPAGATE
        return told * 2 if deleted else told


class NoHashCheck(ReceiverLogic):
    """An answer to an older value is joined with the present one."""

    def is_stale(self, kept: LeftKept, digest: bytes | None) -> bool:
        return False


MUTANTS = staged_mutants_of(
    "foreign_key_join",
    foreign_key_stages,
    {
        AsksBoth: ("sender", IN_THREE_QUERIES),
        NeverUnsubscribes: ("sender", IN_THREE_QUERIES),
        SilentDelete: ("sender", IN_THREE_QUERIES),
        AnswersDeletesTwice: ("right", IN_THREE_QUERIES),
        NoHashCheck: ("receiver", IN_THREE_QUERIES),
    },
)
