"""The scripts of findings: Python of short lines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Row, streaming
from streamproof.properties.checking.fuzzing.cases import PlanCase
from streamproof.properties.checking.fuzzing.divergences import FILTERED_WATERMARK
from streamproof.properties.checking.fuzzing.judging import BATCH, REFERENCE, REFUSED, Finding
from streamproof.properties.checking.fuzzing.relations import relations
from streamproof.properties.checking.fuzzing.scripts import script_of
from streamproof.properties.generators.plans.drawing import COLUMNS, Query, draw_query
from streamproof.properties.generators.plans.rows import START_US, draw_rows
from streamproof.properties.generators.plans.texts import processor
from streamproof.properties.witnesses.plans.running import HowRun
from streamproof.reference.spark.plans import Deduplication, Limit, Processing, Scan, WithWatermark
from streamproof.reference.spark.processor import Processor

PLAN = Deduplication((WithWatermark((Scan("a", COLUMNS),), "ts", 0),), ("h", "k"))
ROW = {"h": 0, "k": None, "ts": START_US + 500_000, "v": 1}
SMALL = PlanCase(Query(PLAN), ({"a": [ROW]}, {"a": [ROW, ROW]}))


def findings(seed: int) -> Iterator[Finding]:
    """Yield a finding of each relation of a drawn case."""
    generator = random.Random(seed)
    query = draw_query(generator)
    case = PlanCase(query, draw_rows(generator, query, 1).batches)
    if case.columns is None:
        return
    yield Finding(REFERENCE, case, None, case.expected(), (), (FILTERED_WATERMARK,))
    yield from (Finding(one, case) for one in (BATCH, REFUSED))
    yield from (Finding(one, case, other) for one in relations(generator, case) if (other := one.vary(case)))


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_every_script_is_python_of_at_most_120_characters_a_line(first: int) -> None:
    for seed in range(first, first + 10):
        for finding in findings(seed):
            script = script_of(finding)
            compile(script, f"{finding.relation.name} of {seed}", "exec")
            assert max(map(len, script.splitlines())) <= 120


COUNTING = replace(SMALL, query=Query(Processing((PLAN.input,), Processor(("h", "k"), None, "v", 5_000))))


@pytest.mark.parametrize(
    ("case", "alone", "twice", "dies"), [(SMALL, 15, 21, 24), (COUNTING, 25, 31, 34)], ids=["plain", "with a processor"]
)
def test_a_small_script_of_each_relation_is_short(case: PlanCase, alone: int, twice: int, dies: int) -> None:
    for finding in [
        *(Finding(one, case, None, case.expected(), (), (FILTERED_WATERMARK,)) for one in (REFERENCE, BATCH, REFUSED)),
        *(Finding(one, case, one.vary(case)) for one in relations(random.Random(0), case)),
    ]:
        script = script_of(finding)
        most = alone if finding.relation is REFERENCE else dies if "dies" in script else twice
        assert len(script.splitlines()) <= most, finding.relation.name


class FakeState:
    """The state of a key, and its timers, as Spark hands them to a processor."""

    def __init__(self) -> None:
        self.value: tuple[int, ...] | None = None
        self.timers: list[int] = []

    def getValueState(self, name: str, schema: str) -> FakeState:
        return self

    def registerTimer(self, at_ms: int) -> None:
        self.timers.append(at_ms)

    def get(self) -> tuple[int, ...] | None:
        return self.value

    def update(self, value: tuple[int, ...]) -> None:
        self.value = value

    def clear(self) -> None:
        self.value = None


def test_the_processor_of_a_script_counts_until_its_timer_fires() -> None:
    names: dict[str, Any] = {"Row": Row, "streaming": streaming}
    exec(processor(COUNTING.query.plan), names)
    counting, state = names["Counting"](), FakeState()
    counting.init(state)
    times = SimpleNamespace(getCurrentWatermarkInMs=lambda: 100)
    arrives = lambda *rows: [*counting.handleInputRows((0, "a"), iter(rows), times)]  # noqa: E731
    assert [arrives(1, 2), arrives(3)] == [[Row(h=0, k="a", v=2)], [Row(h=0, k="a", v=3)]]
    assert state.timers == [5_100]
    fires = counting.handleExpiredTimer(key=(0, "a"), timerValues=times, expiredTimerInfo=None)  # Spark's names
    assert [*fires] == [Row(h=0, k="a", v=-3)]
    assert arrives(4) == [Row(h=0, k="a", v=1)]
    assert state.timers == [5_100, 5_100]


def test_expected_rows_are_written_as_spark_shows_them() -> None:
    case = replace(SMALL, query=Query(PLAN.input))
    assert '[["{0, null, 00.5, 1}"], ' in script_of(Finding(REFERENCE, case, None, case.expected()))


def test_the_event_time_is_not_pruned_by_the_columns_that_are_compared() -> None:
    script = script_of(Finding(REFERENCE, SMALL, None, SMALL.expected()))
    assert 'dropDuplicates(["h", "k"])\n' in script
    assert "struct(h,k))" in script


def test_of_rows_without_a_compared_column_the_number_is_compared() -> None:
    case = replace(SMALL, query=Query(Limit((PLAN.input,), 1)))
    script = script_of(Finding(REFERENCE, case, None, case.expected()))
    assert '[["{1}"], []]' in script
    assert "struct(1)" in script


def test_restarts_are_shown_beside_a_query_that_keeps_running() -> None:
    relation = next(one for one in relations(random.Random(0), SMALL) if one.name == "restarts")
    other = replace(SMALL, how=HowRun(restarts=frozenset({0})))
    script = script_of(Finding(relation, SMALL, other))
    assert "one := stream(query, {1})" in script
    assert "other := stream(query, {0, 1})" in script
    assert "availableNow" not in script


def test_a_death_is_shown_beside_a_query_that_keeps_running() -> None:
    relation = next(one for one in relations(random.Random(0), SMALL) if one.name == "restarts")
    other = replace(SMALL, how=HowRun(deaths={1: "commits"}))
    script = script_of(Finding(relation, SMALL, other))
    assert "one := stream(query, {1})" in script
    assert "other := stream(query, {1}, dies={1: 'commits'})" in script
