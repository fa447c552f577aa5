"""The divergences of releases of Kafka Streams, on each kind of store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ....reference.core.errors import MissingTool
from ....reference.core.history import History
from ....reference.core.play import play
from ...outcomes.outcomes import Outcome, differences
from .divergences import DIALECTS, KafkaDivergence
from .versions import STORES, Stores, version_in_use
from .witness import KafkaWitness


@dataclass(frozen=True)
class ReleaseAnswer:
    """A release's output for the smallest history of a divergence.

    Attributes:
        stores: The kind of store that contained the release's state.
        history: The history.
        reference: The reference's outcome.
        kafka: The outcome of Kafka Streams (None: Kafka Streams couldn't run).
        expected: Whether the release is known to show the divergence.
        why: The reason why Kafka Streams couldn't run.
    """

    stores: Stores
    history: History
    reference: Outcome
    kafka: Outcome | None
    expected: bool
    why: str = ""

    @property
    def shows(self) -> bool | None:
        """Return whether the release shows the divergence (None: Kafka Streams couldn't run)."""
        return None if self.kafka is None else bool(differences(self.reference, self.kafka))


def answers(divergence: KafkaDivergence, version: str) -> list[ReleaseAnswer]:
    """Return the outcomes of a divergence's history on a release, on each kind of store.

    Raises:
        BadInput: The version isn't a release, or is too old.
    """
    return [answer_of(divergence, stores, version) for stores in STORES]


def answer_of(divergence: KafkaDivergence, stores: Stores = "in memory", version: str | None = None) -> ReleaseAnswer:
    """Return the outcome of a divergence's history on a release (by default the current release), as `answers` does."""
    version = version_in_use() if version is None else version
    history = divergence.history_on(stores)
    reference = Outcome.of_play(history.name, play(history))
    witness = KafkaWitness(replace(DIALECTS[divergence.setting], stores=stores), version)
    answer = ReleaseAnswer(stores, history, reference, None, divergence.is_in(version))
    try:
        return replace(answer, kafka=witness.evaluate([history])[0])
    except MissingTool as missing:
        return replace(answer, why=str(missing))


def cell(asked: Sequence[ReleaseAnswer]) -> str:
    """Name the stores on which a divergence occurs, in one or two words."""
    if any(answer.kafka is None for answer in asked):
        return "?"
    showing = [answer.stores for answer in asked if answer.shows]
    return "yes" if len(showing) == len(asked) else ", ".join(showing) or "no"


def verdict_of(asked: Iterable[ReleaseAnswer]) -> Literal["conforms", "violated", "inconclusive"]:
    """Return a release's verdict: conforms if the release shows exactly its known divergences; inconclusive if Kafka
    couldn't run.
    """
    shown = [(answer.shows, answer.expected) for answer in asked]
    if any(shows is not None and shows != expected for shows, expected in shown):
        return "violated"
    return "inconclusive" if any(shows is None for shows, _ in shown) else "conforms"
