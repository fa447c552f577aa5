"""The law *protocol*: if each message is delivered at once, the message protocol emits the reference's changelog."""

from __future__ import annotations

from collections.abc import Sequence

from ....reference.core.history import History
from ....reference.core.play import Played
from ...outcomes.outcomes import Outcome
from ...witnesses.by_name import witness_named
from .judging import ReferenceLaw


class ProtocolLaw(ReferenceLaw):
    """Compares the operator's message protocol with the operator's reference, which sends no messages."""

    name = "protocol"
    between = ("reference", "protocol")
    says = "messages delivered at once emit the reference's changelog"
    needs = "protocol"
    reason = "its registration has no message protocol, because it sends no messages"
    witness = "the protocol"

    def outcomes(self, histories: Sequence[History], played: Sequence[Played]) -> list[Outcome]:
        """Run each history on the message protocol."""
        return witness_named("protocol").evaluate(histories)
