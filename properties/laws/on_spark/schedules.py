"""The law *schedules* on Spark: after each message, the output and the waiting messages are the same as in the
protocol's model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....reference.core.history import History
from ...witnesses.messages import Staged, staged_by_protocol, staged_differences
from ...witnesses.spark.witness import QueryWitness
from ..base import BrokenCase, Comparison, LawResult
from ..runs import Kind, Sample, StagedRun
from ..scheduling import GOALS, StagedLaw, goals_met


class Schedules(StagedLaw):
    """Runs histories with explicit deliveries message by message, in separate queries that exchange messages."""

    name = "schedules"
    between = ("protocol", "spark")
    kinds = (Kind.SCHEDULED,)
    says = "in three queries, under any schedule, each step emits and leaves waiting what the protocol does"

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the goals: messages overtake each other, and messages arrive too late."""
        return GOALS

    def judge(self, run: StagedRun, result: LawResult) -> Iterator[BrokenCase]:  # type: ignore[override]
        """Judge each history of a run."""
        for history in run.histories:
            result.covered.update(goals_met(history))
        yield from self.judge_staged(run.histories, run.staged, result)

    def stage(self, histories: Sequence[History], witness: QueryWitness) -> Sequence[Staged]:
        """Run histories in an operator's separate queries on Spark, which exchange messages through channels."""
        from ...witnesses.spark.staged import play_staged

        logics = None if witness.logic is None else [witness.logic] * len(histories)
        return play_staged(histories, logics, strict=logics is None)

    def compared(self, history: History, staged: Staged, result: LawResult) -> Comparison:
        """Compare the output and the waiting messages of the three Spark queries with the protocol's model."""
        expected = staged_by_protocol(history)
        sides = ("the protocol", expected.outcome), ("Spark in three queries", staged.outcome)
        return Comparison(*sides, staged_differences(history, staged, expected))
