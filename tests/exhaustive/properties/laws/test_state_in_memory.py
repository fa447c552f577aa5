"""Nothing is stored once every row of a table is deleted; shared queries are played in memory, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from shared_player import play_in_memory
from streamproof.properties.checking.confirm import confirmed
from streamproof.properties.checking.mutation import witness_of
from streamproof.properties.checking.pools import pools_on_spark
from streamproof.properties.checking.samples import random_sample
from streamproof.properties.generators.cohorts import clock_schedule
from streamproof.properties.generators.tables import changes_of_rows, emptied, rows_stored
from streamproof.properties.laws.all import ON_SPARK, asked_of
from streamproof.properties.laws.base import LawResult, Verdict
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.on_spark.state import DELETED, STORED, StateLaw
from streamproof.properties.laws.runs import CohortRun, Pool, Sample
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.spark.witness import SPARK, QueryWitness
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play
from streamproof.spark_impl.runtime.logic import Arrived
from streamproof.spark_impl.table_aggregate import GroupLogic, table_aggregate_stages
from streamproof.spark_impl.table_table_join import TableTableLogic
from streamproof.spark_impl.windowed_table import WindowedLogic

STORES_TABLES = [name for name, one in registered().items() if one.tables is not None]


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    play_in_memory(monkeypatch)


def emptied_samples(operator: str, histories: int = 200) -> list[list[Sample]]:
    """Return the samples of an operator's pools, and at least one of them that is emptied."""
    pools = [*pools_on_spark([registration_of(operator)], histories, 0)]
    assert any(sample.is_emptied for pool in pools for sample in pool)
    return pools


def judged(samples: Sequence[Sample], witness: QueryWitness = SPARK) -> LawResult:
    """Return what the law says of the samples of a pool."""
    result = LawResult(StateLaw())
    for member in Pool(
        [CohortRun(sample, [], [witness]) for sample in samples if StateLaw().is_asked_of(sample)]
    ).members:
        result.goals = tuple(dict.fromkeys((*result.goals, *StateLaw().goals(member.sample))))
        for run in member.shares():
            result.violations.extend(StateLaw().judge(run, result))
    return result


@pytest.mark.parametrize("operator", STORES_TABLES)
def test_nothing_is_stored_once_every_row_is_deleted_but_what_is_declared(operator: str) -> None:
    for pool in emptied_samples(operator):
        samples = [sample for sample in pool if sample.is_emptied]
        if samples:
            result = judged(samples)
            assert (result.verdict, set(result.goals)) == (Verdict.CONFORMS, {STORED, DELETED})
            assert result.judged >= sum(len(sample.histories) for sample in samples) // 5


@pytest.mark.parametrize("operator", STORES_TABLES)
def test_a_history_that_is_emptied_has_no_row_and_the_clock_that_it_had(operator: str) -> None:
    for pool in emptied_samples(operator):
        for history in (history for sample in pool if sample.is_emptied for history in sample.histories[:5]):
            again = emptied(history)
            assert rows_stored(again, play(again)) == []
            assert clock_schedule(again) == clock_schedule(history)
            assert emptied(again) == again


def test_every_row_is_deleted_on_the_input_that_it_came_from() -> None:
    history = parse_history(
        """{"operator": "table_table_join", "options": {}, "clock": "batch"}
{"input": "left", "key": "a", "value": 1, "timestamp": 3}
{"input": "right", "key": "a", "value": 2, "timestamp": 4}
{"input": "left", "key": null, "value": 5, "timestamp": 4}
{"heartbeat": 9}
{"cut": true}
{"input": "right", "key": "b", "value": 3, "timestamp": 5}
{"input": "left", "key": "a", "value": null, "timestamp": 6}
{"heartbeat": 9}
"""
    )
    added = [record for record in emptied(history).records if record not in history.records]
    assert [(one.input, one.key, one.value, one.timestamp) for one in added] == [
        ("right", "a", None, 4),
        ("right", "b", None, 5),
    ]
    assert len(changes_of_rows(history, play(history))) == 4


def test_a_leak_is_shrunk_to_a_row_and_its_deletion() -> None:
    witness = witness_of("table_table_join", "deleted_rows_stored")
    violations = [one for pool in emptied_samples("table_table_join") for one in judged(pool, witness).violations]
    smallest, unconfirmed = confirmed(StateLaw(), violations[0], witness)
    assert not unconfirmed
    assert len(smallest.case.history.records) <= 2
    (comparison,) = StateLaw().recheck([Case(smallest.case.history)], witness)
    assert comparison.differences
    (comparison,) = StateLaw().recheck([Case(smallest.case.history)])
    assert not comparison.differences


def test_what_an_operator_is_declared_to_store_hides_nothing_else() -> None:
    class StampKept(GroupLogic):
        """An emptied group keeps its last member."""

        def subtracted(self, key: Any, value: Any, member: Any) -> Any:
            return super().subtracted(key, value, member) or 1

    def stages(groups: Any) -> Any:
        return table_aggregate_stages(groups)._replace(groups=StampKept(groups))

    class RowKept(WindowedLogic):
        """A deleted row of the table is stored for ever."""

        def take_right(self, state: Any, row: Arrived, edge: int) -> Any:
            before = state.row
            emitted = super().take_right(state, row, edge)
            state.row = before if state.row is None else state.row
            return emitted

    for operator, logic in (("table_aggregate", stages), ("windowed_table", RowKept)):
        witness = replace(SPARK, logic=logic, mutant="it")
        assert any(judged(pool, witness).violations for pool in emptied_samples(operator))


def test_a_state_that_is_never_read_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class StoresNothing(TableTableLogic):
        def pack(self, state: Any) -> Any:
            return None

    (pool, *_) = emptied_samples("table_table_join")
    result = judged(pool, replace(SPARK, logic=StoresNothing, mutant="it"))
    assert (result.verdict, result.missing) == (Verdict.INCONCLUSIVE, [STORED])


def test_the_state_is_read_in_one_pool_of_what_the_clock_means_nothing_to() -> None:
    for operators in (["table_table_join"], ["foreign_key_join"], ["table_table_join", "window_aggregate"]):
        pools = list(pools_on_spark([registration_of(one) for one in operators], 20, 0))
        emptied = [[one for one in pool if one.registration.name == operators[0] and one.is_emptied] for pool in pools]
        assert [bool(samples) for samples in emptied] == [True] + [False] * (len(pools) - 1)
        assert Pool([CohortRun(sample) for sample in emptied[0]]).plain.read_state


@pytest.mark.parametrize("operator", STORES_TABLES)
def test_a_sample_of_a_profile_is_emptied_too(operator: str) -> None:
    registration = registration_of(operator)
    for profile, options in registration.profiles.items():
        sample = random_sample(registration, profile, 8, 0)
        definition = registration.declare(options)
        assert sample.is_emptied == bool(registration.tables_stored(definition))
        assert sample.is_emptied == (StateLaw().is_asked_of(sample) and not sample.bounds_state)
        if sample.is_emptied:
            empty = [not rows_stored(one, play(one)) for one in sample.histories]
            assert sum(empty) >= 2
            assert not all(empty)


@pytest.mark.parametrize("operator", registered())
def test_what_is_not_asked_is_named(operator: str) -> None:
    registration = registration_of(operator)
    definitions = [registration.declare(options) for options in registration.profiles.values()]
    asked = [registration.bounds_state(one) or bool(registration.tables_stored(one)) for one in definitions]
    laws, reasons = asked_of(registration, ON_SPARK)
    said = StateLaw().sentence(registration) if any(asked) else reasons["state"]
    assert ("state" in {law.name for law in laws}) == any(asked)
    if not all(asked):
        assert registration.unbounded
        assert registration.unbounded in said
    bare = replace(registration, bounded_state=None, tables=None, unbounded="")
    assert asked_of(bare, ON_SPARK)[1]["state"].startswith("its registration names no definition")


def test_the_sentence_says_what_is_stored_for_ever() -> None:
    said = StateLaw().sentence(registration_of("table_aggregate"))
    assert said.startswith(
        "nothing is stored once every row of its tables is deleted, but an emptied group's aggregate"
    )
    assert "; nothing is stored once" in StateLaw().sentence(registration_of("windowed_table"))
