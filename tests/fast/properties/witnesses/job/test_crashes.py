"""What a job's query notes where it dies."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import BadInput, Input
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job import running
from streamproof.properties.witnesses.job.clock import Watermarks
from streamproof.properties.witnesses.job.committed import Committed
from streamproof.properties.witnesses.job.plan.plans import EventTime, Plan
from streamproof.properties.witnesses.job.plan.tables import TablesUsed
from streamproof.properties.witnesses.job.running import (
    MOST_ROWS,
    Earlier,
    JobQuery,
    NotContinued,
    UpgradedQuery,
    _spread,
)
from streamproof.properties.witnesses.run_options import MIDDLE, WITHIN, Crash, RunOptions
from streamproof.properties.witnesses.spark.failures import QueryFailed
from streamproof.properties.witnesses.spark.platform.callbacks import Callbacks
from streamproof.reference.core.errors import StreamproofError

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

    assert query.repeat(Crash(1), 1)
    assert (query.happened, [*(tmp_path / "commits").iterdir()]) == ([(Crash(1), True)], [tmp_path / "commits/0"])
    assert left() == states
    (tmp_path / "commits/1").touch()
    assert query.repeat(Crash(1, True, MIDDLE, 1), 1)
    assert left() == states - {"state/0/1/2.delta", "state/0/3/2.delta"}
    assert query.repeat(Crash(0, False), 0)
    assert not query.repeat(Crash(0, False), 0)
    query.lost_state, query.callbacks, query.times_ms, query.committed = 0, Callbacks(), (), Committed()
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


@pytest.mark.parametrize(
    ("steps", "places"),
    [
        (2, [(0, True), (0, False), (1, True), (1, False), (1, False), (1, False)]),
        (1, [(0, True), (1, True), (1, False), (1, False)]),
    ],
)
def test_each_micro_batch_belongs_to_a_batch_and_has_its_rows_or_none(
    query: JobQuery, steps: int, places: list[tuple[int, bool]]
) -> None:
    query.steps, query.batches = steps, [{}, {}]
    assert [query.place(number) for number in range(len(places))] == places
    query.planned = [
        Crash(batch, data, moment) for batch in (0, 1) for data in (True, False) for moment in (MIDDLE, WITHIN)
    ]
    query.planned *= 2
    crashes = [
        [Crash(batch, data, moment) for moment in (MIDDLE, WITHIN)] for batch in (0, 1) for data in (True, False)
    ]
    wanted = crashes if steps == 2 else [crashes[0], crashes[1] + crashes[2], crashes[3]]
    assert query.by_micro_batch() == [*enumerate(wanted)]


def test_an_upgraded_query_has_one_more_micro_batch_once_its_state_was_repartitioned() -> None:
    query: Any = UpgradedQuery.__new__(UpgradedQuery)
    query.steps, query.batches, query.repartitioned = 2, [{}, {}, {}], -1
    assert [query.place(number) for number in range(4)] == [(0, True), (0, False), (1, True), (1, False)]
    query.repartitioned = 1
    assert [query.place(number) for number in (0, 1, 2, 3, 4)] == [
        (0, True),
        (0, False),
        (0, False),
        (1, True),
        (1, False),
    ]


class Writing:
    """A query of a writer of rows that commits each micro-batch, unless it dies in it."""

    def __init__(self, query: Any, folder: Path, dies: bool = True) -> None:
        self.query, self.asked, self.dies = query, [], dies
        query.checkpoint, query.writes_rows, query.dies_in, query.deaths = folder, True, None, 0
        query.drained = self.drained
        (folder / "commits").mkdir()

    asked: list[Any]

    def drained(self) -> bool:
        self.asked.append(self.query.dies_in)
        if not self.dies:
            (self.query.checkpoint / "commits" / str(self.query.dies_in[0])).touch()
        return True


def test_a_writer_of_rows_dies_after_each_number_of_rows_and_its_state_is_lost(
    query: JobQuery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = Writing(query, tmp_path)
    undone: list[Any] = []
    monkeypatch.setattr(running, "undo_state", lambda checkpoint, number: undone.append((checkpoint, number)))
    query.die_in_rows(3, [Crash(1, False, MIDDLE), Crash(1, False, MIDDLE, 7)])
    steps = [*range(1, MOST_ROWS + 1), 7]
    assert writing.asked == [(3, step) for step in steps]
    assert query.happened == [(Crash(1, False, MIDDLE, step), True) for step in steps]
    assert (query.with_rows, undone, query.dies_in) == ({3}, [(tmp_path, 3)] * 3, None)
    assert query.died_at.startswith("after 7 of a partition's rows")


@pytest.mark.parametrize("why", ["it writes no rows", "it has died of itself", "it has no rows there"])
def test_a_writer_that_has_not_died_as_planned_is_not_noted(query: JobQuery, tmp_path: Path, why: str) -> None:
    writing = Writing(query, tmp_path, dies=why != "it has no rows there")
    query.writes_rows = why != "it writes no rows"
    query.deaths = int(why == "it has died of itself")
    query.die_in_rows(3, [Crash(1, False, MIDDLE)])
    assert (writing.asked, query.happened, query.with_rows) == ([(3, 1)], [], set())


def test_the_next_step_within_a_write_is_the_first_that_is_left(query: JobQuery) -> None:
    planned = [Crash(0, True, WITHIN), Crash(0, True, MIDDLE)]
    query.steps_left, query.asked, query.with_rows = {MIDDLE: [4], WITHIN: [2, 5]}, {0}, {0}
    found = [query.next_in_the_middle(planned, 0) for _ in range(4)]
    assert found == [*(Crash(0, True, moment, step) for moment, step in ((WITHIN, 2), (WITHIN, 5), (MIDDLE, 4))), None]
    assert query.next_in_the_middle([Crash(0, True, WITHIN, 9)], 0) == Crash(0, True, WITHIN, 9)
    query.steps_left = {MIDDLE: [4]}
    assert query.next_in_the_middle(planned[1:], 1) == Crash(0, True, MIDDLE, 4)  # nothing is known of it yet
    query.steps_left, query.asked = {MIDDLE: [4]}, {1}
    assert query.next_in_the_middle(planned[1:], 1) is None  # it has no rows


@pytest.mark.parametrize(
    ("count", "most", "numbers"),
    [(0, 6, []), (1, 6, [1]), (5, 6, [1, 2, 3, 4, 5]), (6, 6, [1, 3, 5]), (13, 6, [1, 4, 7, 10, 13]), (3, 1, [1])],
)
def test_steps_are_spread_over_all_of_them(count: int, most: int, numbers: list[int]) -> None:
    assert _spread(count, most) == numbers


@pytest.mark.parametrize(
    ("mode", "rows"), [("append", [["a", "b"], ["c"]]), ("update", [["a", "b"], ["c"]]), ("complete", [["b"], ["c"]])]
)
def test_the_rows_of_a_batch_are_those_of_both_of_its_micro_batches_or_of_the_last_table(
    query: JobQuery, mode: Any, rows: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    query.job, query.run, query.steps, query.batches = None, RunOptions(mode=mode), 2, [{}, {}]  # type: ignore[assignment]
    query.run_all = query.refuse_other_times = lambda: None  # type: ignore[method-assign]
    query.is_ahead_of_clock = lambda: False  # type: ignore[method-assign]
    query.output_of = lambda batches, parts: (batches, parts)  # type: ignore[method-assign,assignment,return-value]
    monkeypatch.setattr(running, "rows_of", lambda table, *where: table)
    query.tables = {2: ["c"], 0: ["a"], 1: ["b"]}  # type: ignore[dict-item]
    assert query.output() == (rows, [["a"], ["b"], ["c"]])
    assert query.with_rows == {0, 1, 2}
    query.tables, query.with_rows = {0: ["a"], 1: []}, set()  # type: ignore[dict-item]
    query.output()
    assert query.with_rows == {0}


@pytest.mark.parametrize(
    ("said", "trigger", "ahead"),
    [
        ("1970-01-01T00:00:07.000Z", "default", False),
        ("1970-01-01T00:00:07.001Z", "default", True),
        ("+56791-06-09T00:00:00.000Z", "default", True),
        ("1970-01-01T00:00:06.999Z", "available_now", False),
        ("1970-01-01T00:00:06.999Z", "default", None),
        (None, "default", None),
    ],
)
def test_the_watermark_must_have_reached_the_clock_less_its_delay(
    query: JobQuery, said: str | None, trigger: Any, ahead: bool | None
) -> None:
    query.clock, query.delays_us, query.job = (9_000_000, 10_000_999), [1_000_000, 3_000_000], None  # type: ignore[assignment]
    query.run = RunOptions(trigger=trigger)
    query.committed = Committed({"eventTime": {} if said is None else {"watermark": said}})
    if ahead is None:
        with pytest.raises(
            StreamproofError, match=f"the job's watermark has only reached {said} where the check moved"
        ):
            query.is_ahead_of_clock()
    else:
        assert query.is_ahead_of_clock() is ahead
    query.delays_us = ()
    assert not query.is_ahead_of_clock()


def test_a_crash_at_a_step_is_one_of_those_that_are_planned_without(query: JobQuery) -> None:
    query.planned = [Crash(0, True, MIDDLE), Crash(0, True, MIDDLE), Crash(0, True, WITHIN, 2)]
    rows: Any = SimpleNamespace(isEmpty=lambda: False)
    query.died(Crash(0, True, MIDDLE, 5), rows, 0)
    query.died(Crash(0, True, WITHIN, 2), rows, 0)
    assert (query.planned, query.deaths) == ([Crash(0, True, MIDDLE)], 2)
    assert query.happened == [(Crash(0, True, MIDDLE, 5), True), (Crash(0, True, WITHIN, 2), True)]


def upgraded(stops: tuple[int, ...] = (1,), **more: Any) -> tuple[Any, list[Any]]:
    """Return a query that notes what it runs: the job, its mode and its stops."""
    query: Any = UpgradedQuery.__new__(UpgradedQuery)
    ran: list[Any] = []
    earlier = Earlier(write, "update", **more)  # type: ignore[arg-type]
    query.runner, query.job, query.run = SimpleNamespace(earlier=earlier), "new", RunOptions(stop_after=stops)
    query.first_stop, query.available, query.batches, query.steps = stops[0], 2, [{}] * 4, 2
    query.run_earlier = lambda earlier: ran.append(earlier)
    query.repartition = ran.append
    return query, ran


def write(rows: Any) -> Any:
    return rows


def test_the_job_goes_on_where_its_earlier_version_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_all(self: Any) -> None:
        ran.append((self.job, self.mode, self.run.stop_after))

    monkeypatch.setattr(JobQuery, "run_all", run_all)
    query, ran = upgraded((1, 2, 3))
    query.run_all()
    assert ran == [query.runner.earlier, ("new", "append", (2, 3))]
    query, ran = upgraded(repartition=5)
    query.run_all()
    assert ran == [query.runner.earlier, 5, ("new", "append", ())]
    query, ran = upgraded(repartition=5)
    query.available = 8  # the earlier version has run all batches
    query.run_all()
    assert ran == [query.runner.earlier]


def test_a_version_that_fails_is_named_and_the_later_one_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = QueryFailed("the query failed: no such column")

    def fail(*given: Any) -> None:
        raise failing

    query, _ = upgraded()
    query.run_earlier = fail
    with pytest.raises(QueryFailed, match=r"^write \(.*\): the query failed: no such column$") as old:
        query.run_all()
    assert not isinstance(old.value, NotContinued)
    query, _ = upgraded()
    monkeypatch.setattr(JobQuery, "run_all", fail)
    for cause, said in (("", "the query failed: no such column"), ("no such column", "no such column")):
        failing.cause = cause
        with pytest.raises(NotContinued, match=r"^the query failed: no such column$") as new:
            query.run_all()
        assert new.value.cause == said


def taking_up(plan: Plan, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Any:
    """Return a query of a job over clicks that takes up its plan."""
    sources = [
        given.source for given in resolve_all([Input("user string, at timestamp", key="user", name="clicks")], 0)
    ]
    one: Any = JobQuery.__new__(JobQuery)
    one.job, one.plan, one.delays_us, one.run = write, Plan(), (), RunOptions(**more)
    one.runner, one.static = SimpleNamespace(sources=sources, static={}), ()
    monkeypatch.setattr(JobQuery, "plan_of", lambda self, analyzed: plan)
    monkeypatch.setattr(running, "tables_used", lambda plan, static: TablesUsed())
    return one


def test_a_plan_that_goes_by_a_time_that_the_check_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    by_timers = Plan(frozenset({"Project"}), by_processing_time=True)
    with pytest.raises(BadInput, match=r"^write .* has timeouts or timers of processing time: say in"):
        taking_up(by_timers, monkeypatch).take_up(None, Watermarks())
    taking_up(by_timers, monkeypatch, processing_time=True).take_up(None, Watermarks())
    for given, is_taken in (("at", True), ("other", False)):
        times = [EventTime(given, given, ("user", "at"), 5)]
        one = taking_up(Plan(frozenset({"Project"}), event_times=times, delays_us=[5]), monkeypatch)
        if is_taken:
            one.take_up(None, Watermarks(1))
            assert one.delays_us == [5]
        else:
            with pytest.raises(BadInput, match="has its watermark on 'other', and the event time of its input is 'at'"):
                one.take_up(None, Watermarks(1))
    for watermarks in (Watermarks(), Watermarks(1, without_clock=True)):
        one = taking_up(Plan(frozenset({"Project"}), delays_us=[5]), monkeypatch)
        one.take_up(None, watermarks)
        assert one.delays_us == ()


@pytest.mark.parametrize(
    ("active", "ended", "own", "said"),
    [
        ("", "", 0, ""),
        ("0", "", 0, ""),
        ("01", "1", 1, ""),
        ("0", "1", 1, ""),
        ("1", "", 0, "started a query, of which the check would see none: return its DataFrame"),
        ("", "1", 0, "started a query, of which the check would see none"),
        ("012", "3", 1, "started 3 queries, of which the check would see 1"),
    ],
)
def test_queries_that_a_job_starts_beside_its_own_are_stopped_and_refused(
    active: str, ended: str, own: int, said: str, query: JobQuery
) -> None:
    stopped: list[str] = []
    made = {name: SimpleNamespace(id=name, stop=lambda name=name: stopped.append(name)) for name in {*active, *ended}}
    query.before = {"0"}
    query.spark = SimpleNamespace(streams=SimpleNamespace(active=[made[one] for one in active]))  # type: ignore[assignment]
    query.queries, query.job = [made[one] for one in ended], write  # type: ignore[misc, assignment]
    if not said:
        query.refuse_others(own)
        assert stopped == []
        return
    with pytest.raises(BadInput, match=said):
        query.refuse_others(own)
    assert stopped == [one for one in active if one != "0"]
