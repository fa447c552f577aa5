"""The mutants of `specs/ForeignKeyJoin/ForeignKeyJoin.tla` as mutants on Spark, which send the same messages as in the
specification.

Two mutants of the specification have no counterpart on Spark. A topic keeps the order of its messages, so no stage can
forward messages out of order. Spark finds a foreign key by equality, so there is no prefix scan, with or without a
length.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....spark_impl.foreign_keys.referring import ReferredState
from ....spark_impl.foreign_keys.stages import (
    Instruction,
    LeftState,
    ReceiverLogic,
    ResponderLogic,
    Response,
    SenderLogic,
    Subscribed,
    Subscription,
    foreign_key_stages,
)
from ....spark_impl.runtime.logic import Key
from ...registration.mutants import MakeLogic, name_of
from .decoupled_foreign_key_join import AsksTheOldKey, NoHashCheck, UnsubscribeNotSent
from .foreign_key_join import DeleteSilent, MoveSilent, RightTombstoneSilent


class UnsubscribesWithHash(SenderLogic):
    """A change of foreign key notifies the old foreign key with the new hash."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        return [*(one._replace(digest=digest) for one in asked[:-1]), *asked[-1:]]


class StoresTheHash(ResponderLogic):
    """An unsubscribe message stores its hash, if it has a hash (KAFKA-9244, with `UnsubscribesWithHash`)."""

    def receive(
        self, state: ReferredState, key: Key, digest: bytes | None, instruction: Instruction, timestamp: int
    ) -> tuple[Response, int] | None:
        emitted = super().receive(state, key, digest, instruction, timestamp)
        if digest is not None:
            state.lefts[key] = Subscribed(digest)
        return emitted


class NullKeySilent(ReceiverLogic):
    """A new row without a foreign key has no result."""

    def owes_an_answer(self, state: LeftState) -> bool:
        return self.join.answers_all and state.shown


def _with(**bugs: type) -> MakeLogic:
    return lambda join: foreign_key_stages(join)._replace(**{stage: bug(join) for stage, bug in bugs.items()})


LOGICS: Mapping[str, MakeLogic] = {
    "none": foreign_key_stages,
    "unsubscribe stores the hash": _with(sender=UnsubscribesWithHash, right=StoresTheHash),
    **{
        name_of(bug).replace("_", " "): _with(**{stage: bug})
        for stage, bugs in {
            "sender": (AsksTheOldKey, UnsubscribeNotSent, MoveSilent, DeleteSilent),
            "right": (RightTombstoneSilent,),
            "receiver": (NoHashCheck, NullKeySilent),
        }.items()
        for bug in bugs
    },
}
"""The logics of the stages, for each value of the constant `Mutant` that Spark can represent."""
