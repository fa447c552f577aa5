"""The law *order*: the result doesn't depend on an order of arrival that the definition declares as irrelevant."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ....reference.core.history import History
from ...generators.cohorts import record_batches
from ...outcomes.outcomes import Difference, Outcome
from ...registration.registration import FreeOrder, Registration
from ...witnesses.run_options import RunOptions
from ..case import Case
from ..variation import CHANGED, Invariant, Variation
from .variants import VariantLaw, same_changes, same_result, shuffled, split, with_batches


class OrderLaw(VariantLaw, Invariant):
    """Shuffles the records whose order is irrelevant by definition; the batches keep their sizes."""

    name, of_jobs = "order", "the order within a batch"
    given = "reversed"

    def sentence(self, registration: Registration) -> str:
        definitions = [registration.declare(options) for options in registration.profiles.values()]
        asked = dict.fromkeys(
            registration.free_order(definition).value
            for name, definition in zip(registration.profiles, definitions, strict=True)
            if name in registration.without_late_data or not registration.by_clock(definition)
        )
        return f"the order of arrival changes nothing {', or '.join(asked)}"

    def vary(self, history: History, generator: random.Random) -> Iterator[History]:
        """Draw another order of a history's records."""
        sizes = [len(batch) for batch in record_batches(history)]
        yield with_batches(history, self.name, split(shuffled(history, generator), sizes))

    def differences(
        self, registration: Registration, case: Case, original: Outcome, variant: Outcome
    ) -> list[Difference]:
        """Compare the final results; if only the order between keys is irrelevant, compare the ordered changes of each
        key.
        """
        definition = registration.declare(case.history.options)
        if registration.free_order(definition) is FreeOrder.KEYS:
            return same_changes(original, variant)
        return same_result(registration, case, original, variant, registration.keeps_lists_in_order(definition))

    def variation(self, run: RunOptions, given: str) -> Variation:
        """Return a variation that reverses the rows of each batch."""
        return Variation(
            run,
            self.of_jobs,
            given,
            "with the rows of each batch in the opposite order",
            "in the order of arrival",
            "end",
            lambda history: history.with_batches([batch[::-1] for batch in history.batches]),
            goals=(CHANGED,),
        )
