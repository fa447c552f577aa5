"""The law *fold is meaning*: the first law of every operator."""

from __future__ import annotations

from collections.abc import Sequence

from ....reference.core.history import History
from ....reference.core.play import Played, play
from ...outcomes.outcomes import Difference, Grain, Outcome
from ..folding import by_batch, folded_differences
from .judging import ReferenceLaw, meant


class FoldIsMeaning(ReferenceLaw):
    """After every batch the behaviour's changelog folds to the meaning of what was accepted so far."""

    name = "fold is meaning"
    between = ("reference",)
    says = "the reference's behaviour folds to its meaning after every batch"
    witness = "the meaning"

    def outcomes(self, histories: Sequence[History]) -> list[Outcome]:
        """Return the meaning of each history at its end."""
        return self.outcomes_beside(histories, [play(history) for history in histories])

    def outcomes_beside(self, histories: Sequence[History], played: Sequence[Played]) -> list[Outcome]:
        return [
            Outcome(history.name, Grain.END, final=meant(history, one), is_stream=one.definition.is_stream)
            for history, one in zip(histories, played, strict=True)
        ]

    def differences(self, history: History, played: Played, outcome: Outcome) -> Sequence[Difference]:
        """Return where the folded changelog differs from the meaning after the first batch in which it does."""
        return folded_differences(history, played, by_batch(played.entries, len(played.steps)))
