"""The law *keys*: a key's output is the same without the records that can't affect this key."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....reference.core.history import History
from ....reference.core.records import Dropped, Key, Output
from ...generators.cohorts import record_batches
from ...outcomes.outcomes import Difference, Outcome, differences
from ...registration.registration import KeyIndependence, Registration, registration_of
from ..base import CannotRecheck
from ..case import Case
from ..runs import Kind, Sample
from .variants import VariantLaw, require_original, with_batches


class KeysLaw(VariantLaw):
    """Compares a history with a variant that contains only the records that can affect one key."""

    name = "keys"
    says = "a key's output is the same without the records that don't concern it"
    shows_order = True

    def not_checked(self, registration: Registration) -> str | None:
        return None if registration.key_independence else "its registration doesn't say which records concern a key"

    def may_vary(self, sample: Sample, history: History) -> bool:
        """Return whether the law applies to a history: under stream time it doesn't, because other keys' records move
        the clock too.
        """
        known = sample.registration.key_independence is not None
        return known and sample.kind not in (Kind.WITHOUT_LATE_DATA, Kind.IN_TIME) and history.clock == "batch"

    def vary(self, history: History, generator: random.Random) -> Iterator[History]:
        """Draw a key of a history, and leave out all records that can't affect this key."""
        keys = independence_of(history).keys(history)
        if keys:
            yield concerning(history, generator.choice(keys))

    def cases_of(self, history: History) -> list[Case]:
        """Return a case for each key of a history: the history reduced to the records that can affect the key."""
        return [Case(concerning(history, key), history) for key in independence_of(history).keys(history)]

    def differences(
        self, registration: Registration, case: Case, original: Outcome, variant: Outcome
    ) -> list[Difference]:
        """Compare the key's changes, batch by batch."""
        independence, definition = independence_of(case.history), registration.declare(case.history.options)
        history = require_original(self, case)
        keys = [key for key in independence.keys(history) if concerning(history, key).lines == case.history.lines]
        if not keys:
            raise CannotRecheck(
                "the history isn't its original reduced to the records of a key: the history or the original "
                "was changed"
            )

        def of_key(outcome: Outcome, key: Key) -> Outcome:
            def is_its(output: Output) -> bool:
                if output.key is None or isinstance(output, Dropped):  # a dropped record has its input's key
                    return output.key == key
                return independence.is_of(definition, output.key, key)

            return replace(outcome, entries=[one for one in outcome.entries if is_its(one.output)])

        found: Sequence[list[Difference]] = [differences(of_key(original, key), of_key(variant, key)) for key in keys]
        return [difference for of_one in found for difference in of_one]


def independence_of(history: History) -> KeyIndependence:
    """Return how an operator's keys depend on each other, which determines the records that can affect a key."""
    independence = registration_of(history.operator).key_independence
    assert independence is not None
    return independence


def concerning(history: History, key: Key) -> History:
    """Return the history without the records that can't affect a key, under the same clock."""
    concerns = independence_of(history).concerns(history, key)
    return with_batches(
        history, KeysLaw.name, [[record for record in batch if concerns(record)] for batch in record_batches(history)]
    )
