"""The witness that plays the messages of an operator, under a history's schedule of delivery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...reference.core.clocks import Clock
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
        return f"protocol plays the messages of {names}, and {history.operator} has none"

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return what comes out of each history, by arrival.

        Raises:
            BadInput: A history is another operator's, which has no messages.
        """
        for history in histories:
            if (reason := self.refuses(history)) is not None:
                raise BadInput(f"{history.name}: {reason}: use another witness")
        return [Outcome.of_play(history.name, play(history, _model_of(history.operator))) for history in histories]


def _model_of(operator: str) -> Callable[[Any, Clock], Any]:
    protocol = registration_of(operator).protocol
    assert protocol is not None
    return protocol.model
