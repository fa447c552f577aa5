"""The law *cuts*: where the cuts between micro-batches fall plays no part when nothing is late."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

from ....reference.core.history import History
from ...generators.cohorts import record_batches
from ...outcomes.outcomes import Difference, Outcome
from ...registration.registration import FreeOrder, Registration
from ..case import Case
from .variants import VariantLaw, free_order, same_changes, same_result, with_batches


class Cuts(VariantLaw):
    """The same records in the same order, in batches of other sizes."""

    name = "cuts"
    says = "where the cuts fall plays no part when nothing is late"

    def vary(self, history: History, generator: random.Random) -> Iterator[History]:
        """Cut a history elsewhere."""
        batches = record_batches(history)
        records = [record for batch in batches for record in batch]
        edges = sorted(generator.randint(0, len(records)) for _ in batches[1:])
        moved = [records[start:end] for start, end in pairwise([0, *edges, len(records)])]
        yield with_batches(history, self.name, moved)

    def differences(
        self, registration: Registration, case: Case, original: Outcome, variant: Outcome
    ) -> list[Difference]:
        """Compare final results; where the clock plays no part, each key's changes in order."""
        if free_order(case.history) is FreeOrder.ANY:
            return same_result(registration, case, original, variant, unordered=False)
        return same_changes(original, variant)
