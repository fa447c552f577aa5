"""The law *fold is meaning*: the changelog that an operator's state machine emits builds up the operator's correct
table, its meaning. Each operator must satisfy this law first.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....reference.core.history import History
from ....reference.core.play import Played
from ...outcomes.outcomes import Difference, Outcome
from ..folding import by_batch, folded_differences
from .judging import ReferenceLaw, meaning_of


class FoldIsMeaning(ReferenceLaw):
    """Compares, after every batch, the folded changelog with the meaning (the correct table) of the records accepted so
    far.
    """

    name = "fold is meaning"
    between = ("reference",)
    says = "the reference's behaviour folds to its meaning after every batch"
    witness = "the meaning"

    def outcomes(self, histories: Sequence[History], played: Sequence[Played]) -> list[Outcome]:
        """Return the meaning (the correct table) of each history after its last batch."""
        return list(map(meaning_of, histories, played))

    def differences(self, history: History, played: Played, outcome: Outcome) -> Sequence[Difference]:
        """Return the differences between the folded changelog and the meaning, for the first batch with a
        difference.
        """
        found = folded_differences(history, played, by_batch(played.entries, len(played.steps)))
        # Swap the sides: `folded_differences` expects the meaning, but reports of this law expect the changelog.
        return [one._replace(expected=one.actual, actual=one.expected) for one in found]
