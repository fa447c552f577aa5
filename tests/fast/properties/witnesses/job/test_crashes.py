"""What a job's query notes where it dies."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from streamproof import BadInput, Input, Sink
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.clock import Watermarks
from streamproof.properties.witnesses.job.plan.plans import Plan, WatermarkColumn
from streamproof.properties.witnesses.job.plan.tables import TablesUsed
from streamproof.properties.witnesses.job.query import declaration, job_query, sink_query
from streamproof.properties.witnesses.job.query.deaths import JobDeaths, _spread
from streamproof.properties.witnesses.job.query.declaration import JobDeclaration
from streamproof.properties.witnesses.job.query.job_query import JobQuery
from streamproof.properties.witnesses.job.query.progress import Committed, Times
from streamproof.properties.witnesses.job.query.runnable import Earlier
from streamproof.properties.witnesses.job.query.sink_query import MOST_ROWS, SinkQuery
from streamproof.properties.witnesses.job.query.upgrades import NotContinued, UpgradeRun
from streamproof.properties.witnesses.run_options import MIDDLE, WITHIN, Crash, RunOptions
from streamproof.properties.witnesses.spark.failures import QueryFailed
from streamproof.properties.witnesses.spark.platform.callbacks import Callbacks
from streamproof.reference.core.errors import StreamproofError

CRASHES = [Crash(0, True, "before its output"), Crash(0), Crash(1)]


@pytest.fixture
def query() -> SinkQuery:
    query: Any = SinkQuery.__new__(SinkQuery)
    query.deaths, query.repartitioned = JobDeaths(CRASHES), -1
    return query  # type: ignore[no-any-return]


@pytest.fixture
def deaths(query: SinkQuery) -> JobDeaths:
    return query.deaths


def test_a_micro_batch_is_run_for_its_rows_in_the_first_of_its_crashes_alone(deaths: JobDeaths) -> None:
    runs: list[int] = []

    def rows_of(batch_id: int) -> Any:
        return SimpleNamespace(isEmpty=lambda: bool(runs.append(batch_id)) or batch_id == 1)

    for crash in CRASHES:
        deaths.died(crash, rows_of(crash.batch), crash.batch)
    assert runs == [0, 1]
    assert deaths.happened == [(CRASHES[0], True), (CRASHES[1], True), (CRASHES[2], False)]


def test_a_crash_takes_back_the_commit_and_one_in_the_middle_half_of_the_tasks_state_too(
    query: SinkQuery, tmp_path: Path
) -> None:
    query.checkpoint, query.deaths.with_rows = tmp_path, {1}
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
    assert (query.deaths.happened, [*(tmp_path / "commits").iterdir()]) == (
        [(Crash(1), True)],
        [tmp_path / "commits/0"],
    )
    assert left() == states
    (tmp_path / "commits/1").touch()
    assert query.repeat(Crash(1, True, MIDDLE, 1), 1)
    assert left() == states - {"state/0/1/2.delta", "state/0/3/2.delta"}
    assert query.repeat(Crash(0, False), 0)
    assert not query.repeat(Crash(0, False), 0)
    query.deaths.lost_state, query.callbacks = 0, Callbacks()
    query.times = Times((), (), (), (), query.place)
    query.stop(SimpleNamespace(stop=lambda: None, _jsq=SimpleNamespace(recentProgress=list)))  # type: ignore[arg-type]
    assert "state/0/1/1.delta" not in left()


def test_the_steps_of_a_function_are_counted_where_there_are_rows_for_it_may_return_early_without(
    query: SinkQuery, deaths: JobDeaths
) -> None:
    query.steps, query.batches = 1, [{}, {}]
    deaths.planned = [Crash(batch, True, moment) for batch in (0, 1) for moment in (MIDDLE, WITHIN)]
    deaths.asked, deaths.with_rows = {0, 1}, {1}
    done: list[str] = []

    def write(rows: Any, batch: int) -> None:
        if batch == 0:
            return
        done.append("a")
        done.append("b")

    dying = deaths.dying(write, query.place)
    rows: Any = None
    dying(rows, 0)
    assert (deaths.steps_left, deaths.planned) == (None, [Crash(1, True, MIDDLE), Crash(1, True, WITHIN)])
    dying(rows, 1)
    assert deaths.steps_left == {MIDDLE: [1, 2], WITHIN: []}
    assert (done, deaths.planned) == (["a", "b"], [Crash(1, True, MIDDLE)])


@pytest.mark.parametrize(
    ("steps", "places"),
    [
        (2, [(0, True), (0, False), (1, True), (1, False), (1, False), (1, False)]),
        (1, [(0, True), (1, True), (1, False), (1, False)]),
    ],
)
def test_each_micro_batch_belongs_to_a_batch_and_has_its_rows_or_none(
    query: SinkQuery, deaths: JobDeaths, steps: int, places: list[tuple[int, bool]]
) -> None:
    query.steps, query.batches = steps, [{}, {}]
    assert [query.place(number) for number in range(len(places))] == places
    deaths.planned = [
        Crash(batch, data, moment) for batch in (0, 1) for data in (True, False) for moment in (MIDDLE, WITHIN)
    ]
    deaths.planned *= 2
    crashes = [
        [Crash(batch, data, moment) for moment in (MIDDLE, WITHIN)] for batch in (0, 1) for data in (True, False)
    ]
    wanted = crashes if steps == 2 else [crashes[0], crashes[1] + crashes[2], crashes[3]]
    assert deaths.by_micro_batch(steps) == [*enumerate(wanted)]


def test_an_upgraded_query_has_one_more_micro_batch_once_its_state_was_repartitioned() -> None:
    query: Any = JobQuery.__new__(JobQuery)
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
        query.checkpoint, query.deaths.writes_rows = folder, True
        query.drained = self.drained
        (folder / "commits").mkdir()

    asked: list[Any]

    def drained(self) -> bool:
        self.asked.append(self.query.deaths.dies_in)
        if not self.dies:
            (self.query.checkpoint / "commits" / str(self.query.deaths.dies_in[0])).touch()
        return True


def test_a_writer_of_rows_dies_after_each_number_of_rows_and_its_state_is_lost(
    query: SinkQuery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = Writing(query, tmp_path)
    undone: list[Any] = []
    monkeypatch.setattr(sink_query, "undo_state", lambda checkpoint, number: undone.append((checkpoint, number)))
    query.die_in_rows(3, [Crash(1, False, MIDDLE), Crash(1, False, MIDDLE, 7)])
    steps = [*range(1, MOST_ROWS + 1), 7]
    assert writing.asked == [(3, step) for step in steps]
    assert query.deaths.happened == [(Crash(1, False, MIDDLE, step), True) for step in steps]
    assert (query.deaths.with_rows, undone, query.deaths.dies_in) == ({3}, [(tmp_path, 3)] * 3, None)
    assert query.deaths.died_at.startswith("after 7 of a partition's rows")


@pytest.mark.parametrize("why", ["it writes no rows", "it has died of itself", "it has no rows there"])
def test_a_writer_that_has_not_died_as_planned_is_not_noted(query: SinkQuery, tmp_path: Path, why: str) -> None:
    writing = Writing(query, tmp_path, dies=why != "it has no rows there")
    query.deaths.writes_rows = why != "it writes no rows"
    query.deaths.count = int(why == "it has died of itself")
    query.die_in_rows(3, [Crash(1, False, MIDDLE)])
    assert (writing.asked, query.deaths.happened, query.deaths.with_rows) == ([(3, 1)], [], set())


def test_the_next_step_within_a_write_is_the_first_that_is_left(deaths: JobDeaths) -> None:
    planned = [Crash(0, True, WITHIN), Crash(0, True, MIDDLE)]
    deaths.steps_left, deaths.asked, deaths.with_rows = {MIDDLE: [4], WITHIN: [2, 5]}, {0}, {0}
    found = [deaths.next_in_the_middle(planned, 0) for _ in range(4)]
    assert found == [*(Crash(0, True, moment, step) for moment, step in ((WITHIN, 2), (WITHIN, 5), (MIDDLE, 4))), None]
    assert deaths.next_in_the_middle([Crash(0, True, WITHIN, 9)], 0) == Crash(0, True, WITHIN, 9)
    deaths.steps_left = {MIDDLE: [4]}
    assert deaths.next_in_the_middle(planned[1:], 1) == Crash(0, True, MIDDLE, 4)  # nothing is known of it yet
    deaths.steps_left, deaths.asked = {MIDDLE: [4]}, {1}
    assert deaths.next_in_the_middle(planned[1:], 1) is None  # it has no rows


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
    mode: Any, rows: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    query: Any = JobQuery.__new__(JobQuery)
    query.deaths, query.repartitioned = JobDeaths(), -1
    query.run, query.steps, query.batches = RunOptions(mode=mode), 2, [{}, {}]
    monkeypatch.setattr(job_query, "rows_of", lambda table, *where: table)
    query.tables = {2: ["c"], 0: ["a"], 1: ["b"]}
    assert query.rows() == (rows, [["a"], ["b"], ["c"]])
    assert query.deaths.with_rows == {0, 1, 2}
    query.tables, query.deaths.with_rows = {0: ["a"], 1: []}, set()
    query.rows()
    assert query.deaths.with_rows == {0}


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
    said: str | None, trigger: Any, ahead: bool | None
) -> None:
    query: Any = JobQuery.__new__(JobQuery)
    query.times = Times((), (), (9_000_000, 10_000_999), (), query.place)
    query.declaration = SimpleNamespace(delays_us=[1_000_000, 3_000_000])
    query.run, query.follows_clock, query.runnable = RunOptions(trigger=trigger), True, SimpleNamespace(job=None)
    query.times.committed = Committed({"eventTime": {} if said is None else {"watermark": said}})
    if ahead is None:
        with pytest.raises(StreamproofError, match=f"the job's watermark has reached only {said}, and the check moved"):
            query.is_ahead()
    else:
        assert query.is_ahead() is ahead
    query.runnable.job = Sink(write, write)  # its last batch may run under an earlier watermark
    assert query.is_ahead() is bool(ahead)
    query.follows_clock = False  # by the delay of one version, and then of the other
    assert not query.is_ahead()
    query.follows_clock, query.declaration.delays_us = True, []
    assert not query.is_ahead()


def test_a_crash_at_a_step_is_one_of_those_that_are_planned_without(deaths: JobDeaths) -> None:
    deaths.planned = [Crash(0, True, MIDDLE), Crash(0, True, MIDDLE), Crash(0, True, WITHIN, 2)]
    rows: Any = SimpleNamespace(isEmpty=lambda: False)
    deaths.died(Crash(0, True, MIDDLE, 5), rows, 0)
    deaths.died(Crash(0, True, WITHIN, 2), rows, 0)
    assert (deaths.planned, deaths.count) == ([Crash(0, True, MIDDLE)], 2)
    assert deaths.happened == [(Crash(0, True, MIDDLE, 5), True), (Crash(0, True, WITHIN, 2), True)]


def upgraded(stops: tuple[int, ...] = (1,), **more: Any) -> tuple[Any, list[Any]]:
    """Return an upgrade that notes what it runs: the job, its mode and its stops."""
    query: Any = SimpleNamespace(run=RunOptions(stop_after=stops), runnable=SimpleNamespace(job="new"))
    query.first_stop, query.available, query.batches, query.steps = stops[0], 2, [{}] * 4, 2
    ran: list[Any] = []
    query.declaration = SimpleNamespace(take_over=lambda *version: ran.append(version))
    query.run_all = lambda: ran.append(query.run.stop_after)
    upgrade: Any = UpgradeRun(query, Earlier(write, "update", **more))  # type: ignore[arg-type]
    upgrade.run_earlier = lambda: ran.append("earlier")
    upgrade.repartition = ran.append
    return upgrade, ran


def write(rows: Any) -> Any:
    return rows


def test_the_job_goes_on_where_its_earlier_version_has_stopped() -> None:
    upgrade, ran = upgraded((1, 2, 3))
    upgrade.run_all()
    assert ran == ["earlier", ("new", "append"), (2, 3)]
    upgrade, ran = upgraded(repartition=5)
    upgrade.run_all()
    assert ran == ["earlier", 5, ("new", "append"), ()]
    upgrade, ran = upgraded(repartition=5)
    upgrade.query.available = 8  # the earlier version has run all batches
    upgrade.run_all()
    assert ran == ["earlier"]


def test_a_version_that_fails_is_named_and_the_later_one_with_its_cause() -> None:
    failing = QueryFailed("the query failed: no such column")

    def fail() -> None:
        raise failing

    upgrade, _ = upgraded()
    upgrade.run_earlier = fail
    with pytest.raises(QueryFailed, match=r"^write \(.*\): the query failed: no such column$") as old:
        upgrade.run_all()
    assert not isinstance(old.value, NotContinued)
    upgrade, _ = upgraded()
    upgrade.query.run_all = fail
    for cause, said in (("", "the query failed: no such column"), ("no such column", "no such column")):
        failing.cause = cause
        with pytest.raises(NotContinued, match=r"^the query failed: no such column$") as new:
            upgrade.run_all()
        assert new.value.cause == said


def taking_up(plan: Plan, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Any:
    """Return the declaration of a job over clicks that takes up its plan."""
    sources = [
        given.source for given in resolve_all([Input("user string, at timestamp", key="user", name="clicks")], 0)
    ]
    one: Any = JobDeclaration.__new__(JobDeclaration)
    one.job, one.plan, one.delays_us, one.run = write, Plan(), [], RunOptions(**more)
    one.runnable, one.static = SimpleNamespace(sources=sources, static={}), ()
    monkeypatch.setattr(JobDeclaration, "plan_of", lambda self, analyzed: plan)
    monkeypatch.setattr(declaration, "tables_used", lambda plan, static: TablesUsed())
    return one


def test_a_plan_that_goes_by_a_time_that_the_check_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    by_timers = Plan(frozenset({"Project"}), by_processing_time=True)
    with pytest.raises(BadInput, match=r"^write .* has timeouts or timers of processing time: give"):
        taking_up(by_timers, monkeypatch).take_up(None, Watermarks())
    taking_up(by_timers, monkeypatch, processing_time=True).take_up(None, Watermarks())
    for given, is_taken in (("at", True), ("other", False)):
        times = [WatermarkColumn(given, given, ("user", "at"), 5)]
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
        assert one.delays_us == []


@pytest.mark.parametrize(
    ("active", "ended", "own", "said"),
    [
        ("", "", 0, ""),
        ("0", "", 0, ""),
        ("01", "1", 1, ""),
        ("0", "1", 1, ""),
        ("1", "", 0, "started a query, and the check would see none: return its DataFrame"),
        ("", "1", 0, "started a query, and the check would see none"),
        ("012", "3", 1, "started 3 queries, and the check would see 1"),
    ],
)
def test_queries_that_a_job_starts_beside_its_own_are_stopped_and_refused(
    active: str, ended: str, own: int, said: str
) -> None:
    query: Any = JobDeclaration.__new__(JobDeclaration)
    stopped: list[str] = []
    made = {name: SimpleNamespace(id=name, stop=lambda name=name: stopped.append(name)) for name in {*active, *ended}}
    query.before = {"0"}
    query.spark = SimpleNamespace(streams=SimpleNamespace(active=[made[one] for one in active]))
    query.queries, query.job = [made[one] for one in ended], write
    if not said:
        query.refuse_others(own)
        assert stopped == []
        return
    with pytest.raises(BadInput, match=said):
        query.refuse_others(own)
    assert stopped == [one for one in active if one != "0"]


def test_a_repartitioning_that_spark_refuses_is_refused_with_its_reason() -> None:
    class Session:
        version = "4.2.0"

        @property
        def _streamingCheckpointManager(self) -> Any:
            raise PySparkException("the state has 5 partitions.\nsee the manual")

    def job() -> None: ...

    query: Any = SimpleNamespace(spark=Session(), checkpoint=Path("c"), declaration=SimpleNamespace(job=job))
    upgrade = UpgradeRun(query, Earlier(write))
    with pytest.raises(BadInput, match=r"^repartition=5: Spark refuses .*: the state has 5 partitions: give another"):
        upgrade.repartition(5)
    query.spark = SimpleNamespace(version="4.1.0")
    with pytest.raises(BadInput, match=r"^repartition=5: PySpark 4\.1\.0 can't repartition state: use 4\.2 or newer$"):
        upgrade.repartition(5)
