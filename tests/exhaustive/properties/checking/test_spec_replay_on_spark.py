"""Behaviours of TLA+ specifications, replayed on Spark. All of them ride in four queries: three, and one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from foreign_key_models import MODULE, MUTANTS, NOT_ON_SPARK, RACES, counterexample, graph
from pyspark.sql import SparkSession
from streamproof.properties.models import spec_replay
from streamproof.properties.models.spec_replay import ReplayedBehaviour, replay_cases_on_spark, replay_on_spark
from streamproof.properties.outcomes.outcomes import Outcome
from streamproof.properties.witnesses.messages import Staged, staged_by_protocol
from streamproof.properties.witnesses.spark.witness import SparkWitness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History
from streamproof.reference.core.play import Entry, play
from streamproof.reference.core.records import Change
from streamproof.specs.pytla import TlaValue, Trace
from streamproof.specs.replay import ReplayResult

ON_SPARK = [name for name in MUTANTS if name not in NOT_ON_SPARK]


class Plan(NamedTuple):
    """What is replayed on Spark, and under which name."""

    names: list[tuple[str, str]]
    cases: list[ReplayedBehaviour]


def plan() -> Plan:
    """A cover of the left join's edges, the mutants and the races with the right code, and mutants taken for right."""
    states, constants = graph("left")
    named = [(("cover", ""), ReplayedBehaviour(trace, constants)) for trace in states.covering()]
    for name in ON_SPARK:
        trace, mutated, _ = counterexample(f"mutant_{name}")
        named.append((("mutant", name), ReplayedBehaviour(trace, mutated, fused=False)))
        named.append((("taken for right", name), ReplayedBehaviour(trace, {**mutated, "Mutant": "none"}, fused=False)))
    for name in RACES:
        trace, kip, _ = counterexample(name)
        named.append((("race", name), ReplayedBehaviour(trace, kip, fused=False)))
    return Plan([name for name, _ in named], [case for _, case in named])


@pytest.fixture(scope="module")
def replayed(spark: SparkSession) -> tuple[Plan, ReplayResult]:
    planned = plan()
    return planned, replay_cases_on_spark(planned.cases, MODULE)


def disagreements(replayed: tuple[Plan, ReplayResult], kind: str, name: str = "") -> list[str]:
    planned, found = replayed
    numbers = {number for number, named in enumerate(planned.names, 1) if named == (kind, name)}
    assert numbers
    return [str(one) for one in found.disagreements if one.behaviour in numbers]


def test_spark_shares_a_cover_of_every_edge_of_two_left_and_one_right_changes(
    replayed: tuple[Plan, ReplayResult],
) -> None:
    planned, found = replayed
    assert disagreements(replayed, "cover") == []
    covered = {
        (id(before.state), after.action, id(after.state))
        for case in planned.cases[: planned.names.count(("cover", ""))]
        for before, after in zip(case.trace.steps, case.trace.steps[1:], strict=False)
    }
    assert len(covered) == len(graph("left")[0].edges)
    assert found.actions == sum(len(case.trace) - 1 for case in planned.cases)


@pytest.mark.parametrize("name", ON_SPARK)
def test_a_mutants_counterexample_is_the_same_bug_on_spark_and_passes_on_the_right_code(
    replayed: tuple[Plan, ReplayResult], name: str
) -> None:
    assert disagreements(replayed, "mutant", name) == []


@pytest.mark.parametrize("name", ON_SPARK)
def test_the_right_code_on_spark_doesnt_share_a_mutants_counterexample(
    replayed: tuple[Plan, ReplayResult], name: str
) -> None:
    assert disagreements(replayed, "taken for right", name) != []


@pytest.mark.parametrize("name", RACES)
def test_a_race_of_kips_inner_join_ends_stale_on_spark_and_right_under_answer(
    replayed: tuple[Plan, ReplayResult], name: str
) -> None:
    assert disagreements(replayed, "race", name) == []


# The replay itself, with the reference instead of Spark, and with a reference that has a bug.


def race() -> tuple[Trace, Mapping[str, TlaValue]]:
    return counterexample("race_any")[:2]


def as_spark(monkeypatch: pytest.MonkeyPatch, mend: Callable[[History, list[Entry]], list[Entry]]) -> None:
    """Replace Spark by the reference; `mend` alters what it emits."""

    def played(history: History) -> Outcome:
        outcome = Outcome.of_play(history.name, play(history))
        outcome.entries = mend(history, outcome.entries)
        return outcome

    def play_staged(histories: Sequence[History], logics: Any, strict: bool) -> list[Staged]:
        return [Staged(played(history), staged_by_protocol(history).waiting) for history in histories]

    monkeypatch.setattr(spec_replay, "play_staged", play_staged)
    monkeypatch.setattr(SparkWitness, "evaluate", lambda witness, histories: [played(history) for history in histories])


def test_with_the_reference_instead_of_spark_nothing_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    as_spark(monkeypatch, lambda history, entries: entries)
    trace, constants = race()
    replayed = replay_cases_on_spark([ReplayedBehaviour(trace, constants)] * 2, MODULE)
    assert replayed == ReplayResult(2, 2 * (len(trace) - 1), (), {})


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (lambda history: history.has_schedule and history.options["protocol"] == "kip", ""),
        (lambda history: not history.has_schedule, ", in one query"),
        (lambda history: history.options["protocol"] == "answer", ", at the end on the right code"),
    ],
)
def test_a_wrong_result_is_found_in_three_queries_in_one_and_on_the_right_code(
    monkeypatch: pytest.MonkeyPatch, wrong: Callable[[History], bool], where: str
) -> None:
    def mend(history: History, entries: list[Entry]) -> list[Entry]:
        last = len(history.batches) - 1 if not history.has_schedule else 0
        emitted = Entry(len(history.lines) - 1, last, Change("l", None, ["wrong", None], 0))
        return [*entries, emitted] if wrong(history) else entries

    as_spark(monkeypatch, mend)
    trace, constants = race()
    (found,) = replay_cases_on_spark([ReplayedBehaviour(trace, constants)], MODULE).disagreements
    assert (found.what, found.ours) == (f"result l{where}", ["wrong", None])


def test_a_message_that_waits_too_long_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    as_spark(monkeypatch, lambda history, entries: entries)
    honest = spec_replay.play_staged

    def late(*arguments: Any, **options: Any) -> list[Staged]:
        staged = honest(*arguments, **options)
        for one in staged:
            one.waiting[1:] = one.waiting[:-1]
        return staged

    monkeypatch.setattr(spec_replay, "play_staged", late)
    (found,) = replay_on_spark([race()[0]], race()[1], MODULE).disagreements
    assert found.what.startswith("waiting ")


@pytest.mark.parametrize("name", NOT_ON_SPARK)
def test_a_bug_that_spark_cant_have_is_refused(name: str) -> None:
    trace, constants, _ = counterexample(f"mutant_{name}")
    with pytest.raises(
        BadInput, match=rf"^Spark can't have the bug '{constants['Mutant']}': replay its behaviours on the"
    ):
        replay_on_spark([trace], constants, MODULE)


def test_a_module_that_has_no_replay_on_spark_is_refused() -> None:
    with pytest.raises(
        BadInput, match=r"^the behaviours of Life can't be replayed on Spark: use one of ForeignKeyJoin"
    ):
        replay_on_spark([], {}, "Life")
