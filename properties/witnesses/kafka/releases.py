"""What the releases of Kafka Streams show of the divergences, on each kind of store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ....reference.core.history import History
from ...outcomes.outcomes import Outcome, differences
from .divergences import Divergence, answers_of
from .versions import STORES, Stores


@dataclass(frozen=True)
class Answer:
    """What a release says of a divergence's history.

    Attributes:
        stores: What kept its state.
        history: The history.
        reference: What the reference says.
        kafka: What Kafka Streams says; None where it couldn't be asked.
        expected: Whether the release is known to show the divergence.
        why: Why it couldn't be asked.
    """

    stores: Stores
    history: History
    reference: Outcome
    kafka: Outcome | None
    expected: bool
    why: str = ""

    @property
    def shows(self) -> bool | None:
        """Whether it shows the divergence; None where it couldn't be asked."""
        return None if self.kafka is None else bool(differences(self.reference, self.kafka))


def answers(divergence: Divergence, version: str) -> list[Answer]:
    """Return what a release says of a divergence's history, on each kind of store.

    Raises:
        BadInput: The version is no release, or too old.
    """
    found = []
    for stores in STORES:
        reference, kafka, why = answers_of(divergence, stores, version)
        history = divergence.history_on(stores)
        found.append(Answer(stores, history, reference, kafka, divergence.is_in(version), why))
    return found


def cell(asked: Sequence[Answer]) -> str:
    """Return in a word or two on which stores a divergence shows."""
    if any(answer.kafka is None for answer in asked):
        return "?"
    showing = [answer.stores for answer in asked if answer.shows]
    return "yes" if len(showing) == len(asked) else ", ".join(showing) or "no"


def verdict_of(asked: Iterable[Answer]) -> Literal["conforms", "violated", "inconclusive"]:
    """Return whether each answer is as it is known to be; inconclusive where Kafka couldn't be asked."""
    shown = [(answer.shows, answer.expected) for answer in asked]
    if any(shows is not None and shows != expected for shows, expected in shown):
        return "violated"
    return "inconclusive" if any(shows is None for shows, _ in shown) else "conforms"
