"""The witness that runs the reference's behaviour of each operator, arrival by arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...reference.core.history import History
from ...reference.core.play import play
from ..outcomes.outcomes import Grain, Outcome
from .base import Witness
from .run_options import PLAIN, RunOptions


@dataclass(frozen=True)
class ReferenceWitness(Witness):
    """The reference's behaviour of each operator; the witness refuses no history."""

    name = "reference"
    grain = Grain.ARRIVAL

    def refuses(self, history: History) -> str | None:
        """Return None, because the reference can run every history."""
        return None

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return the outcome of each history, by arrival."""
        return [Outcome.of_play(history.name, play(history)) for history in histories]
