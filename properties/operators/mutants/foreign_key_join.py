"""Mutants of the foreign-key join on Spark; most bugs were in a release (`docs/facts.md`, "Bugs that shipped").

Bugs that show only while messages wait, such as KAFKA-18713, need several queries: see `decoupled_foreign_key_join`.
"""

from __future__ import annotations

from typing import Any

from ....spark_impl.foreign_keys.referring import ReferredState, ValueAt
from ....spark_impl.foreign_keys.stages import (
    Instruction,
    ReceiverLogic,
    ResponderLogic,
    Response,
    SenderLogic,
    Subscription,
    foreign_key_stages,
)
from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput
from ...registration.mutants import mutants_of
from . import decoupled_foreign_key_join
from .making import SharingState, logics_in, mixed, returning


class StaySubscribed(SenderLogic):
    """A changed foreign key is subscribed again instead of unsubscribed (KAFKA-9244 with the new hash)."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        again = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE
        return [*(one._replace(instruction=again, digest=digest) for one in asked[:-1]), *asked[-1:]]


class MoveSilent(SenderLogic):
    """A row that moves to a foreign key without a right row gets no response, so the old result stays (KAFKA-3705)."""

    def instruction_for(self, before: Key | None, after: Key) -> Instruction:
        moved = before not in (None, after)
        return Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE if moved else super().instruction_for(before, after)


class DeleteSilent(SenderLogic):
    """A row whose foreign key becomes null is unsubscribed without a response (KAFKA-16434)."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        if after is None:
            return [one._replace(instruction=Instruction.DELETE_KEY_NO_PROPAGATE) for one in asked]
        return asked


class DeafToInserts(SenderLogic):
    """A row whose foreign key was null before is ignored (KAFKA-16407)."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        return [] if before is None else super().subscriptions(before, after, digest)


class ReferenceForgotten(SenderLogic):
    """Every row refers to the first foreign key of its key."""

    def take(self, key: Key, state: list[Key], row: Arrived, clock: int) -> list[LogicOutput]:
        first = state[:1]
        emitted = super().take(key, state, row, clock)
        state[:] = first or state
        return emitted


class RepeatUnsubscribes(SenderLogic):
    """A row that refers to the same foreign key again is unsubscribed."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        if before is not None and before == after:
            return [one._replace(instruction=Instruction.DELETE_KEY_AND_PROPAGATE) for one in asked]
        return asked


StateOfAnotherKey = mixed(SenderLogic, SharingState)


class RightTombstoneSilent(ResponderLogic):
    """A deleted right row isn't reported to its subscribers."""

    def change(self, state: ReferredState, row: Arrived) -> list[LogicOutput]:
        emitted = super().change(state, row)
        return [] if row.value is None else emitted


OneSubscriber = returning(
    ResponderLogic, "A right change reaches only the first subscriber", change=lambda found: found[:1]
)


class OwnTimestamp(ResponderLogic):
    """A response to a left change has only the left row's timestamp."""

    def receive(
        self, state: ReferredState, key: Key, digest: bytes | None, instruction: Instruction, timestamp: int
    ) -> tuple[Response, int] | None:
        emitted = super().receive(state, key, digest, instruction, timestamp)
        return None if emitted is None else (emitted[0], timestamp)


class ForgetsRow(ResponderLogic):
    """A right row isn't saved between batches."""

    def pack(self, state: ReferredState) -> tuple[Any, ...] | None:
        return super().pack(ReferredState(None, state.lefts))

    def unpack(self, fields: tuple[Any, ...]) -> ReferredState:
        found = super().unpack(fields)
        return ReferredState(found.right if isinstance(found.right, ValueAt) else None, found.lefts)


EmittedTwice = returning(
    ReceiverLogic, "Every result is emitted twice, which no table shows (KAFKA-16394)", take=lambda found: found * 2
)
EverythingIsStale = returning(
    ReceiverLogic, "The hash check rejects every response (KAFKA-15303)", is_stale=lambda found: True
)

IN_ONE_QUERY = mutants_of(
    "foreign_key_join", foreign_key_stages, "inner", logics_in(globals(), SenderLogic, ResponderLogic, ReceiverLogic)
)
MUTANTS = {**IN_ONE_QUERY, **decoupled_foreign_key_join.MUTANTS}
