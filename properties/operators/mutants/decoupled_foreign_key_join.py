"""Mutants of the foreign-key join that differ only while messages wait, which happens only if the join runs as three
queries.

Source: The bugs are described in `docs/facts.md`, "Bugs that shipped" and "Races of the foreign-key join".
"""

from __future__ import annotations

from ....spark_impl.foreign_keys.referring import ReferredState
from ....spark_impl.foreign_keys.stages import (
    Instruction,
    ReceiverLogic,
    ResponderLogic,
    SenderLogic,
    Subscription,
    foreign_key_stages,
)
from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput
from ...registration.mutants import mutants_of
from .making import logics_in, returning

IN_THREE_QUERIES = "in three queries"
"""The profile of the histories for these mutants: every definition, with a schedule of delivery."""


class AsksTheOldKey(SenderLogic):
    """A changed foreign key requests a response from both the old and the new key (KAFKA-18713)."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        both = Instruction.DELETE_KEY_AND_PROPAGATE
        return [*(one._replace(instruction=both, digest=digest) for one in asked[:-1]), *asked[-1:]]


UnsubscribeNotSent = returning(
    SenderLogic,
    "A changed foreign key is not unsubscribed, which no result shows (KAFKA-9244)",
    subscriptions=lambda found: found[-1:],
)


class DeletedRowSilent(SenderLogic):
    """A deleted row is unsubscribed without a response."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        silent = Instruction.DELETE_KEY_NO_PROPAGATE
        return [one._replace(instruction=silent) for one in asked] if digest is None else asked


class AnswersDeletesTwice(ResponderLogic):
    """A delete gets two responses (KAFKA-16394)."""

    def take(self, key: Key, state: ReferredState, row: Arrived, clock: int) -> list[LogicOutput]:
        emitted = super().take(key, state, row, clock)
        deleted = row.side != "right" and row.value[2] == Instruction.DELETE_KEY_AND_PROPAGATE
        return emitted * 2 if deleted else emitted


NoHashCheck = returning(
    ReceiverLogic, "A response to an older value is joined with the current value", is_stale=lambda found: False
)

MUTANTS = mutants_of(
    "foreign_key_join",
    foreign_key_stages,
    IN_THREE_QUERIES,
    logics_in(globals(), SenderLogic, ResponderLogic, ReceiverLogic),
    scheduled=True,
)
