"""The law *schedules* of the reference: under any schedule of message delivery, the join's result is correct once all
messages are delivered.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from zlib import crc32

from ....reference.core.history import History
from ....reference.core.play import Played, play
from ...outcomes.outcomes import Difference, Outcome, result_differences, untimed
from ..runs import Kind, ReferenceRun, Sample
from ..scheduling import ScheduledLaw, scheduled
from .judging import ReferenceLaw, meaning_of


class SchedulesOfReference(ScheduledLaw, ReferenceLaw):
    """Compares only values, because timestamps depend on the messages' routes; the law needs a protocol that responds
    to every change.
    """

    name = "schedules"
    between = ("reference", "protocol")
    kinds: tuple[Kind, ...] = (Kind.REFERENCE,)
    says = "whatever the schedule of delivery, the join is right once no message waits"
    witness = "the meaning"

    def is_asked_of(self, sample: Sample) -> bool:
        """Return whether the law judges a sample: the protocol, with the sample's options, must respond to every
        change.
        """
        protocol = sample.registration.protocol
        return super().is_asked_of(sample) and protocol is not None and protocol.answers_all(sample.options)

    def served(self, run: ReferenceRun) -> list[tuple[History, Played]]:
        """Return the histories of a run, each under a random schedule of delivery that depends only on the history."""
        asked = [under_schedule(history) for history in run.histories]
        return [(history, play(history)) for history in asked]

    def outcomes(self, histories: Sequence[History], played: Sequence[Played]) -> list[Outcome]:
        """Return the meaning (the correct table) of each history."""
        return list(map(meaning_of, histories, played))

    def differences(self, history: History, played: Played, outcome: Outcome) -> Sequence[Difference]:
        """Return the differences between the values in the folded changelog and in the meaning (the correct table)."""
        return result_differences(history.name, None, untimed(outcome.result), untimed(played.result))


def under_schedule(history: History) -> History:
    """Return a history with explicit deliveries, under a schedule whose seed is the history's text."""
    return scheduled(history, random.Random(crc32(history.to_text().encode())))
