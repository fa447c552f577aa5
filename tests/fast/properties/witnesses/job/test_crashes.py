"""What a job's query notes where it dies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.witnesses.job.running import JobQuery
from streamproof.properties.witnesses.run_options import MIDDLE, WITHIN, Crash
from streamproof.properties.witnesses.spark.platform.callbacks import Callbacks

CRASHES = [Crash(0, True, "before its output"), Crash(0), Crash(1)]


@pytest.fixture
def query() -> JobQuery:
    query: Any = JobQuery.__new__(JobQuery)
    query.planned, query.happened, query.with_rows, query.asked = [*CRASHES], [], set(), set()
    query.deaths = 0
    return query  # type: ignore[no-any-return]


def test_a_micro_batch_is_run_for_its_rows_in_the_first_of_its_crashes_alone(query: JobQuery) -> None:
    runs: list[int] = []

    def rows_of(batch_id: int) -> Any:
        return SimpleNamespace(isEmpty=lambda: bool(runs.append(batch_id)) or batch_id == 1)

    for crash in CRASHES:
        query.died(crash, rows_of(crash.batch), crash.batch)
    assert runs == [0, 1]
    assert query.happened == [(CRASHES[0], True), (CRASHES[1], True), (CRASHES[2], False)]


def test_the_steps_of_a_function_are_counted_where_there_are_rows_for_it_may_return_early_without(
    query: JobQuery,
) -> None:
    query.steps, query.batches, query.steps_left = 1, [{}, {}], None
    query.planned = [Crash(batch, True, moment) for batch in (0, 1) for moment in (MIDDLE, WITHIN)]
    query.callbacks = Callbacks()
    query.asked, query.with_rows = {0, 1}, {1}
    done: list[str] = []

    def write(rows: Any, batch: int) -> None:
        if batch == 0:
            return
        done.append("a")
        done.append("b")

    dying = query.dying(write)
    rows: Any = None
    dying(rows, 0)
    assert (query.steps_left, query.planned) == (None, [Crash(1, True, MIDDLE), Crash(1, True, WITHIN)])
    dying(rows, 1)
    assert query.steps_left == {MIDDLE: [1, 2], WITHIN: []}
    assert (done, query.planned) == (["a", "b"], [Crash(1, True, MIDDLE)])
