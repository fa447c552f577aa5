"""The law *changelog*: The law *changelog*: Spark emits the same changes as the reference."""

from __future__ import annotations

from collections.abc import Sequence

from ....reference.core.history import History
from ....reference.core.play import Played
from ...outcomes.outcomes import Difference, Outcome, differences
from ...witnesses.spark.answers import StoredState
from .judging import OutcomeLaw


class Changelog(OutcomeLaw):
    """Compares Spark's changelog with the reference's as lists, because maps would hide duplicate and swapped
    tombstones.
    """

    name = "changelog"
    between = ("reference", "spark")
    says = "the changelog is the reference's, as ordered lists per key and batch"

    def differences(
        self, history: History, played: Played, outcome: Outcome, left: Sequence[StoredState]
    ) -> Sequence[Difference]:
        """Return the differences between Spark and the reference in the ordered changes of each key in each batch."""
        return differences(Outcome.of_play(history.name, played), outcome)
