"""The law *schedules on kafka*: after each message delivery, Kafka has emitted the output of the protocol's model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ....reference.core.history import History
from ...registration.registration import Registration
from ...witnesses.by_name import witness_named
from ...witnesses.kafka.versions import name_in_use, version_in_use
from ...witnesses.messages import Staged, staged_by_protocol, staged_differences
from ...witnesses.spark.witness import QueryWitness
from ..base import OWN, BrokenCase, Comparison, LawResult
from ..runs import Kind, ReferenceRun, Sample
from ..scheduling import GOALS, StagedLaw, goals_met
from .kafka import KafkaLaw
from .schedules import under_schedule

RECORDS = 8
"""The largest number of records in a judged history; deliveries triple the history's length."""
HISTORIES = 100
"""The largest number of judged histories of a profile."""


class SchedulesOnKafka(StagedLaw):
    """Runs histories on Kafka under stream time, if Kafka can run at least half of a profile's histories."""

    name = "schedules on kafka"
    between = ("protocol", "kafka")
    says = (
        "under any schedule of delivery, the real Kafka Streams emits and leaves waiting what the protocol does, "
        "except for named divergences"
    )

    def not_checked(self, registration: Registration) -> str | None:
        """Return the reason why the law skips an operator, or None."""
        return super().not_checked(registration) or KafkaLaw().not_checked(registration)

    def is_asked_of(self, sample: Sample) -> bool:
        """Return whether the law judges a sample."""
        return sample.kind is Kind.REFERENCE and KafkaLaw().is_asked_of(sample)

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the goals: messages overtake each other, and messages arrive too late."""
        return sample.goals(GOALS)

    def judge(self, run: ReferenceRun, result: LawResult) -> Iterator[BrokenCase]:  # type: ignore[override]
        """Judge the first histories of a sample, each under a random schedule of delivery that depends only on the
        history.
        """
        kafka = witness_named("kafka")
        short = (one.with_lines(one.records[:RECORDS]) for one in run.histories if one.clock == "stream_time")
        asked = [under_schedule(one) for one in short if kafka.refuses(one) is None][:HISTORIES]
        result.covered.update(run.sample.cover(sum(map(goals_met, asked), Counter())))
        yield from self.judge_staged(asked, self.stage(asked, OWN), result)

    def stage(self, histories: Sequence[History], witness: QueryWitness) -> Sequence[Staged]:
        """Run histories on Kafka's own processors."""
        from ...witnesses.kafka.witness import KafkaWitness

        return KafkaWitness().stage(histories, strict=False)

    def compared(self, history: History, staged: Staged, result: LawResult) -> Comparison:
        """Compare the outcome with the protocol's outcome; count differences that a known divergence explains by its
        name.
        """
        from ...witnesses.kafka.divergences import explained

        expected = staged_by_protocol(history)
        sides = ("the protocol", expected.outcome), (name_in_use(), staged.outcome)
        found = staged_differences(history, staged, expected)
        alike = staged.waiting == expected.waiting
        names = explained(history, staged.outcome, version_in_use()) if found and alike else ()
        result.divergences.update(names)
        return Comparison(*sides, () if names else found)
