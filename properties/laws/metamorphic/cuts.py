"""The law *cuts*: without late data, batches of other sizes don't change the result."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from ....reference.core.history import History
from ...generators.cohorts import record_batches
from ...generators.columns.model import JobHistory
from ...outcomes.outcomes import Difference, Outcome
from ...registration.registration import FreeOrder, Registration
from ...witnesses.run_options import RunOptions
from ..case import Case
from ..variation import BATCHES, CHANGED, Invariant, Variation
from .variants import VariantLaw, free_order, same_changes, same_result, with_batches


class Cuts(VariantLaw, Invariant):
    """Compares the same records in the same order, cut into batches of other sizes."""

    name, of_jobs = "cuts", "the cuts between batches"
    says = "other cuts change nothing when nothing is late"

    def vary(self, history: History, generator: random.Random) -> Iterator[History]:
        """Draw other batch sizes for a history."""
        batches = record_batches(history)
        records = [record for batch in batches for record in batch]
        edges = sorted(generator.randint(0, len(records)) for _ in batches[1:])
        moved = [records[start:end] for start, end in pairwise([0, *edges, len(records)])]
        yield with_batches(history, self.name, moved)

    def differences(
        self, registration: Registration, case: Case, original: Outcome, variant: Outcome
    ) -> list[Difference]:
        """Compare the final results; if the operator doesn't depend on the clock, compare the ordered changes of each
        key.
        """
        if free_order(case.history) is FreeOrder.ANY:
            return same_result(registration, case, original, variant, unordered=False)
        return same_changes(original, variant)

    def draw(self, run: RunOptions, seed: int, batches: int) -> int:
        return random.Random(f"{seed} of the invariants").randrange(1, BATCHES)

    def variation(self, run: RunOptions, given: int) -> Variation:
        """Return a variation that merges a history's batches into two, with the only cut before a given batch."""

        def merged(history: JobHistory) -> JobHistory:
            count = len(history.batches)
            # Keep the additional last batch separate, because it closes all windows.
            ends = sorted({min(end, count) for end in (given, BATCHES, count)})
            spans = [*zip([0, *ends], ends, strict=False)]
            rows = tuple(tuple(arrival for batch in history.batches[a:b] for arrival in batch) for a, b in spans)
            clock = tuple(history.clock[b - 1] for _, b in spans) if history.clock else ()
            return replace(history, batches=rows, clock=clock)

        when = f"with a single cut between batches, before batch {given}"
        return Variation(
            run, self.of_jobs, given, when, "with all cuts between batches", "end", merged, goals=(CHANGED,)
        )
