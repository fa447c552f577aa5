"""What a job's query notes where it dies."""

from __future__ import annotations

from pathlib import Path
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


def test_a_crash_takes_back_the_commit_and_one_in_the_middle_half_of_the_tasks_state_too(
    query: JobQuery, tmp_path: Path
) -> None:
    query.checkpoint, query.with_rows, query.lost_state = tmp_path, {1}, -1
    for name in ("commits/0", "commits/1", "commits/.1.crc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    states = {f"state/0/{partition}/{version}.delta" for partition in range(4) for version in (1, 2, 21)}
    for state in states:
        (tmp_path / state).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / state).touch()

    def left() -> set[str]:
        return {str(path.relative_to(tmp_path)) for path in (tmp_path / "state").rglob("*.delta")}

    assert query.undo_commit(Crash(1), 1)
    assert (query.happened, [*(tmp_path / "commits").iterdir()]) == ([(Crash(1), True)], [tmp_path / "commits/0"])
    assert left() == states
    (tmp_path / "commits/1").touch()
    assert query.undo_commit(Crash(1, True, MIDDLE, 1), 1)
    assert left() == states - {"state/0/1/2.delta", "state/0/3/2.delta"}
    assert query.undo_commit(Crash(0, False), 0)
    assert not query.undo_commit(Crash(0, False), 0)
    query.lost_state, query.callbacks, query.times_ms, query.state_rows = 0, Callbacks(), (), 0
    query.stop(SimpleNamespace(stop=lambda: None, _jsq=SimpleNamespace(recentProgress=list)))  # type: ignore[arg-type]
    assert "state/0/1/1.delta" not in left()


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
