"""The law *kafka*: the real Kafka Streams emits the reference's changelog, except for known divergences."""

from __future__ import annotations

from collections.abc import Sequence

from ....reference.core.history import History
from ....reference.core.play import Played
from ...generators.coverage import coverage_goals, neighbours
from ...outcomes.outcomes import Outcome
from ...witnesses.by_name import witness_named
from ...witnesses.kafka.versions import name_in_use, version_in_use
from ..base import Comparison, LawResult
from ..runs import Kind, ReferenceRun, Sample
from .judging import ReferenceLaw


class KafkaLaw(ReferenceLaw):
    """Runs histories on Kafka step by step, under stream time, if Kafka can run at least half of a profile's
    histories.
    """

    name = "kafka"
    between = ("reference", "kafka")
    kinds: tuple[Kind, ...] = (Kind.REFERENCE,)
    says = "the real Kafka Streams emits the reference's changelog, step by step, except for named divergences"
    needs = "kafka"
    reason = "its registration has no topology of Kafka Streams"
    witness = "Kafka Streams"

    def is_asked_of(self, sample: Sample) -> bool:
        """Return whether Kafka can run at least half of a sample's histories."""
        if not super().is_asked_of(sample):
            return False
        asked = [history for history in sample.histories if history.clock == "stream_time"]
        return 2 * len(self._answered(sample.histories)) >= len(asked) > 0

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the coverage goals under stream time; Kafka Streams reports no dropped record, and refuses some
        histories with nulls.
        """
        goals = coverage_goals(sample.registration, sample.definition, stream_time=True)
        differing = [neighbour.goal for neighbour in neighbours(sample.registration.name, sample.options)]
        return sample.goals([*(goal for goal in goals if "null" not in goal), *differing])

    def served(self, run: ReferenceRun) -> list[tuple[History, Played]]:
        """Return the histories that Kafka can run."""
        answered = {history.name for history in self._answered(run.histories)}
        return [pair for pair in super().served(run) if pair[0].name in answered and pair[0].clock == "stream_time"]

    def outcomes(self, histories: Sequence[History], played: Sequence[Played]) -> list[Outcome]:
        """Run each history on Kafka Streams."""
        return witness_named("kafka").evaluate(histories)

    def compared(self, history: History, played: Played, outcome: Outcome, result: LawResult) -> Comparison:
        """Compare the outcomes; count differences that a known divergence explains by the divergence's name."""
        from ...witnesses.kafka.divergences import explained

        comparison = super().compared(history, played, outcome, result)
        names = explained(history, outcome, version_in_use()) if comparison.differences else ()
        result.divergences.update(names)
        return Comparison(comparison.expected, (name_in_use(), outcome), () if names else comparison.differences)

    def _answered(self, histories: Sequence[History]) -> list[History]:
        kafka = witness_named("kafka")
        return [history for history in histories if history.clock == "stream_time" and kafka.refuses(history) is None]
