"""The witness on the message-passing model of an operator, which delivers messages in the order of a history's
deliveries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ...reference.core.play import play
from ..outcomes.outcomes import Grain, Outcome
from ..registration.registration import registered, registration_of
from .base import Witness
from .run_options import PLAIN, RunOptions


@dataclass(frozen=True)
class ProtocolWitness(Witness):
    """The message-passing model of an operator."""

    name = "protocol"
    grain = Grain.ARRIVAL

    def refuses(self, history: History) -> str | None:
        """Refuse the histories of operators without messages."""
        if registration_of(history.operator).protocol is not None:
            return None
        names = ", ".join(name for name, registration in registered().items() if registration.protocol is not None)
        return f"protocol plays the messages of {names}, but {history.operator} has none"

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return the outcome of each history, by arrival.

        Raises:
            BadInput: The operator of a history has no messages.
        """
        outcomes = []
        for history in histories:
            protocol = registration_of(history.operator).protocol
            if protocol is None:
                raise BadInput(f"{history.name}: {self.refuses(history)}: use another witness")
            outcomes.append(Outcome.of_play(history.name, play(history, protocol.model)))
        return outcomes
