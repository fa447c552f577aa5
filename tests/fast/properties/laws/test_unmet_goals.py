"""The goals of a law are unmet where the runs have shown nothing of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from given_answers import Given, right_outcome
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.base import LawResult
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.metamorphic import crash, partitions, restart
from streamproof.properties.laws.runs import CohortRun, Kind, Run, Sample, Variant
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.run_options import Crash, RunOptions
from streamproof.properties.witnesses.spark.answers import Answers
from streamproof.properties.witnesses.spark.witness import QueryWitness
from streamproof.reference.core.play import Entry
from streamproof.reference.core.records import Change

SESSIONS = registration_of("session_windows")
HISTORY = next(draw_histories(HistorySettings("session_windows", SESSIONS.profiles["update"], SCHEDULE), 1, 5))


def emitting(*batches: int) -> Outcome:
    return Outcome("h", Grain.BATCH, [Entry(-1, batch, Change("a", None, 1, 0)) for batch in batches])


def met(law: str, way: RunOptions, *outcomes: Outcome, is_pooled: bool = False, **answers: Any) -> set[str]:
    again = Answers([*outcomes], [], [], **answers)
    sample: Any = SimpleNamespace(is_pooled=is_pooled)
    return {goal for goal, count in LAWS["spark"][law].covered(sample, again, way).items() if count}  # type: ignore[attr-defined]


def test_a_stop_is_met_by_changes_behind_it() -> None:
    stopped = RunOptions(stop_after=(1, 2))
    found = [met("restart", stopped, emitting(batch)) for batch in range(4)]
    assert found == [set(), set(), {restart.ONCE}, {restart.ONCE, restart.TWICE}]
    assert met("restart", stopped, emitting(), emitting(0, 1)) == set()


def test_a_crash_is_met_by_changes_of_the_batch_that_was_repeated_as_often() -> None:
    died = RunOptions(crash_in=(Crash(1), Crash(1)))
    found = [met("replay", died, emitting(1), replayed=replayed) for replayed in range(3)]
    assert found == [set(), {crash.ONCE}, {crash.ONCE, crash.TWICE}]
    assert met("replay", died, emitting(0, 2), replayed=2) == set()
    assert met("replay", RunOptions(crash_in=(Crash(1),)), emitting(1), replayed=2) == {crash.ONCE}


@pytest.mark.parametrize(
    ("is_pooled", "shown", "goals"),
    [
        (False, {"partitions": 1, "emitting": 1}, set()),
        (False, {"partitions": 2, "emitting": 1}, {partitions.TWO, partitions.SEVERAL}),
        (False, {"partitions": 3}, {partitions.SEVERAL}),
        (True, {"partitions": 5, "emitting": 1, "without_keys": 4}, set()),
        (True, {"partitions": 5, "emitting": 2}, {partitions.SEVERAL}),
        (True, {"partitions": 5, "emitting": 2, "without_keys": 1}, {partitions.SEVERAL, partitions.EMPTY}),
    ],
)
def test_partitions_are_several_where_two_of_them_have_keys(is_pooled: bool, shown: Any, goals: set[str]) -> None:
    assert met("partitions", RunOptions(), emitting(), emitting(1), is_pooled=is_pooled, **shown) == goals
    assert met("partitions", RunOptions(), emitting(), is_pooled=is_pooled, **shown) == set()


@pytest.mark.parametrize("outcome", [emitting(), emitting(1)])
def test_a_history_is_run_alone_where_it_emits_something(outcome: Outcome) -> None:
    law = LAWS["spark"]["packing"]
    whole = SimpleNamespace(alone=lambda subject: outcome, runs_alone=0)
    run: Any = SimpleNamespace(whole=whole, subject=0, histories=[HISTORY], outcomes=[outcome])
    result = LawResult(law)
    assert [*law.judge(run, result)] == []  # type: ignore[arg-type]
    assert (result.judged, result.covered) == (1, Counter({"run alone": len(outcome.entries)}))


@pytest.mark.parametrize("changed", [False, True])
def test_a_variant_that_is_its_original_changes_nothing(changed: bool) -> None:
    lines = HISTORY.lines[1:] if changed else HISTORY.lines
    variant = replace(HISTORY, name="variant", lines=lines)
    sample = Sample(SESSIONS, Kind.RANDOM, "update", SESSIONS.profiles["update"], [HISTORY])
    given = Given({one.name: right_outcome(one) for one in (HISTORY, variant)})
    variants = [Variant("order", 0, Case(variant, HISTORY))]
    result = LawResult(LAWS["spark"]["order"])
    [*result.law.judge(Run(CohortRun(sample, variants, [cast(QueryWitness, given)]), 0), result)]  # type: ignore[arg-type]
    shown = sum(count for goal, count in result.covered.items() if goal.startswith("order changed"))
    assert (result.judged, shown) == (1, int(changed))
