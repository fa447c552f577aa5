"""The law *schedules* on Spark: whatever waits how long, each step emits and leaves waiting what the protocol does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....reference.core.history import History
from ...witnesses.messages import Staged, staged_by_protocol, staged_differences
from ...witnesses.spark.witness import QueryWitness
from ..base import OWN, Comparison, Law, LawResult, Violation, violations
from ..case import Case
from ..runs import Kind, Sample, StagedRun
from ..scheduling import GOALS, cases_of, goals_met


class Schedules(Law):
    """Histories with manual delivery are played message by message, in the queries between which messages travel."""

    name = "schedules"
    between = ("protocol", "spark")
    says = "in three queries, whatever waits how long, each step emits and leaves waiting what the protocol does"
    needs = "protocol"
    reason = "its registration has no protocol: it sends no messages"

    def is_asked_of(self, sample: Sample) -> bool:
        return sample.kind is Kind.SCHEDULED

    def goals(self, sample: Sample) -> Sequence[str]:
        """Messages must overtake each other, and come too late."""
        return GOALS

    def judge(self, run: StagedRun, result: LawResult) -> Iterator[Violation]:  # type: ignore[override]
        """Judge each history of a run, the shortest first."""
        result.judged += len(run.histories)
        for history in run.histories:
            result.covered.update(goals_met(history))
        judged = zip(run.histories, run.staged, strict=True)
        for history, staged in sorted(judged, key=lambda one: len(one[0].lines)):
            yield from violations([history], [_compared(history, staged)])

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Play the histories again."""
        from ...witnesses.spark.staged import play_staged

        histories = [case.history for case in cases]
        logics = None if witness.logic is None else [witness.logic] * len(histories)
        staged = play_staged(histories, logics, strict=logics is None)
        return [_compared(*pair) for pair in zip(histories, staged, strict=True)]

    def cases_of(self, history: History) -> list[Case]:
        return cases_of(history)


def _compared(history: History, staged: object) -> Comparison:
    assert isinstance(staged, Staged)
    expected = staged_by_protocol(history)
    sides = ("the protocol", expected.outcome), ("Spark in three queries", staged.outcome)
    return Comparison(*sides, staged_differences(history, staged, expected))
