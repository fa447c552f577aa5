"""The mutants of `specs/ForeignKeyJoin/ForeignKeyJoin.tla` as mutants on Spark, message by message the same.

Two have none. A topic keeps the order of its messages by itself, so no stage can hand them on out of order; and a
foreign key is Spark's own key, which is found by equality: there is no scan of a prefix, with or without its length.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....spark_impl.foreign_key_stages import (
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
from ....spark_impl.runtime.stages import ReferredState
from ...registration.mutants import MakeLogic
from .decoupled_foreign_key_join import AsksBoth, NeverUnsubscribes, NoHashCheck
from .foreign_key_join import SilentNull, TombstoneStays


class UnsubscribesWithHash(SenderLogic):
    """The old key learns of a change of foreign key with the new hash."""

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        asked = super().subscriptions(before, after, digest)
        return [*(one._replace(digest=digest) for one in asked[:-1]), *asked[-1:]]


class StoresTheHash(ResponderLogic):
    """An unsubscribe stores the hash that it brings, if any (KAFKA-9244, with `UnsubscribesWithHash`)."""

    def receive(
        self, state: ReferredState, key: Key, digest: bytes | None, instruction: Instruction, timestamp: int
    ) -> tuple[Response, int] | None:
        emitted = super().receive(state, key, digest, instruction, timestamp)
        if digest is not None:
            state.lefts[key] = Subscribed(digest)
        return emitted


class SilentMoveAlone(SenderLogic):
    """A move to a foreign key without a row says nothing (KAFKA-3705); a left join asks about all else as it should."""

    def instruction_for(self, before: Key | None, after: Key) -> Instruction:
        moved = before not in (None, after)
        return Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE if moved else super().instruction_for(before, after)


class SilentNewNull(ReceiverLogic):
    """A new row without a foreign key has no result."""

    def owes_an_answer(self, state: LeftState) -> bool:
        return self.join.answers_all and state.shown


def _with(**bugs: type) -> MakeLogic:
    return lambda join: foreign_key_stages(join)._replace(**{stage: bug(join) for stage, bug in bugs.items()})


LOGICS: Mapping[str, MakeLogic] = {
    "none": foreign_key_stages,
    "no hash check": _with(receiver=NoHashCheck),
    "asks the old key": _with(sender=AsksBoth),
    "unsubscribe not sent": _with(sender=NeverUnsubscribes),
    "unsubscribe stores the hash": _with(sender=UnsubscribesWithHash, right=StoresTheHash),
    "move silent": _with(sender=SilentMoveAlone),
    "delete silent": _with(sender=SilentNull),
    "null key silent": _with(receiver=SilentNewNull),
    "right tombstone silent": _with(right=TombstoneStays),
}
"""What decides in the stages, for each value of the constant `Mutant` that there can be on Spark."""
