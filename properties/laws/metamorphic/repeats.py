"""The law *repeats*: sending every record twice changes the result as the operator's registration declares."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ....reference.core.history import History
from ...generators.cohorts import record_batches
from ...outcomes.outcomes import Difference, Grain, Outcome, canonical, result_differences
from ...registration.registration import Registration
from ..case import Case
from ..runs import Sample
from .variants import VariantLaw, with_batches


class Repeats(VariantLaw):
    """Compares the outcome of a history in which each record arrives twice with the outcome that the registration
    derives.
    """

    name = "repeats"
    says = "sending every record twice changes the result as declared"
    needs = "repeats"
    reason = "its registration doesn't declare how a repeated record changes the result"

    def may_vary(self, sample: Sample, history: History) -> bool:
        """Return whether the law applies to a history: it has no late data, and the registration declares the effect of
        repeated records.
        """
        repeats = sample.registration.repeats
        if repeats is None or not super().may_vary(sample, history):
            return False
        definition = sample.declared(history)
        nothing = Outcome("", Grain.BATCH, is_stream=definition.is_stream)
        return repeats(definition, nothing, nothing) is not None

    def vary(self, history: History, generator: random.Random) -> Iterator[History]:
        """Repeat each record of a history."""
        batches = record_batches(history)
        yield with_batches(history, self.name, [[twice for one in batch for twice in (one, one)] for batch in batches])

    def differences(
        self, registration: Registration, case: Case, original: Outcome, variant: Outcome
    ) -> list[Difference]:
        """Compare the outcome of the repeated records with the outcome that the registration derives from the
        original.
        """
        definition = registration.declare(case.history.options)
        assert registration.repeats is not None
        results = registration.repeats(definition, original, variant)
        if results is None:
            return []
        expected, actual = (canonical(result, definition.unordered) for result in results)
        return result_differences(case.history.name, None, expected, actual)
