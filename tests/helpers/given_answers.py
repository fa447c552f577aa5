"""Runs whose answers are given: what a law's `judge` makes of them is tested without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from streamproof.properties.laws.base import Law, LawResult
from streamproof.properties.laws.runs import CohortRun, Run, Sample, Variant
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.properties.witnesses.spark.answers import Answers, StoredState
from streamproof.properties.witnesses.spark.witness import QueryWitness
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change


@dataclass
class Given:
    """Answers with what is given, by the name of a history."""

    outcomes: Mapping[str, Outcome]
    left: Mapping[str, list[StoredState]] = field(default_factory=dict)

    def answers(self, histories: Sequence[History], options: RunOptions) -> Answers:
        names = [history.name for history in histories]
        outcomes = [self.outcomes[name] for name in names]
        return Answers(outcomes, [self.left.get(name, []) for name in names], [set() for _ in names])


def right_outcome(history: History) -> Outcome:
    """What the reference emits of a history, at the grain of Spark's outcomes."""
    played = play(history)
    entries = [entry._replace(arrival=-1) for entry in played.entries]
    return Outcome(history.name, Grain.BATCH, entries, is_stream=played.definition.is_stream)


def without_last(outcome: Outcome) -> Outcome:
    """An outcome that lacks the last change."""
    last = max(number for number, entry in enumerate(outcome.entries) if isinstance(entry.output, Change))
    return replace(outcome, entries=[*outcome.entries[:last], *outcome.entries[last + 1 :]])


def judged(law: Law, sample: Sample, given: Given, variants: Sequence[Variant] = ()) -> tuple[int, list[str]]:
    """How many histories a law judges in a run with these answers, and the names of those on which it is broken."""
    run = Run(CohortRun(sample, variants, [cast(QueryWitness, given)]), 0)
    result = LawResult(law)
    broken = [violation.case.history.name for violation in law.judge(run, result)]  # type: ignore[arg-type]
    return result.judged, broken
