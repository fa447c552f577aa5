"""The law *table at every cut*: after every batch, Spark's folded changelog is equal to the meaning (the correct
table).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....reference.core.history import History
from ....reference.core.play import Played
from ...outcomes.outcomes import Difference, Outcome
from ...witnesses.spark.answers import StoredState
from ..folding import by_batch, folded_differences
from .judging import OutcomeLaw


class TableAtEveryCut(OutcomeLaw):
    """Compares the folded changelog with the meaning (the correct table), and ignores the reference's intermediate
    changes.
    """

    name = "table at every cut"
    between = ("reference", "spark")
    says = "the folded changelog is the meaning of the accepted records at every cut"
    follows_changelog = True

    def differences(
        self, history: History, played: Played, outcome: Outcome, left: Sequence[StoredState]
    ) -> Sequence[Difference]:
        """Return the rows that differ between the folded table and the correct table, for the first batch with
        differences.
        """
        return folded_differences(history, played, by_batch(outcome.entries, len(played.steps)))
