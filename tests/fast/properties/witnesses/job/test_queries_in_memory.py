"""The queries of jobs, from their first batch to their output, in a Spark without a JVM that keeps checkpoints."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from memory_spark import Session, memory_session
from streamproof import BadInput, Input, Sink
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job import other_pyspark, other_pyspark_main
from streamproof.properties.witnesses.job.clock import TIME
from streamproof.properties.witnesses.job.other_pyspark import PySparkProcess
from streamproof.properties.witnesses.job.query import declaration, job_query
from streamproof.properties.witnesses.job.query.deaths import DEATHS
from streamproof.properties.witnesses.job.query.declaration import NAMED_SOURCES
from streamproof.properties.witnesses.job.query.progress import Times
from streamproof.properties.witnesses.job.query.runnable import Earlier, Feed
from streamproof.properties.witnesses.job.query.sink_query import MOST_ROWS
from streamproof.properties.witnesses.job.query.upgrades import NotContinued
from streamproof.properties.witnesses.job.running import REPEATED, RESTORED, QueryOutput, Runner
from streamproof.properties.witnesses.run_options import BEFORE, MIDDLE, Crash, RunOptions
from streamproof.properties.witnesses.spark.engine import PreparedQuery
from streamproof.properties.witnesses.spark.failures import QueryFailed
from streamproof.properties.witnesses.spark.session import use_own_session
from streamproof.reference.core.errors import StreamproofError

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
SOURCES = [given.source for given in resolve_all([CLICKS], 0)]
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
Batch = list[tuple[str, int, int]]
BATCHES: list[Batch] = [[("a", 0, 1), ("b", 100, 2)], [("a", 200, 3), ("c", 3, 4)], [("d", 300, 5)]]
"""Users, seconds and amounts: the third row of `a` comes again, and `c` comes late."""
FIRST_OF_USERS = [["a", "b"], [], ["d"]]


@pytest.fixture(autouse=True)
def session(tmp_path: Path) -> Iterator[Session]:
    with memory_session(tmp_path) as session:
        yield session


def us(seconds: int) -> int:
    return round((START + timedelta(seconds=seconds)).timestamp()) * 1_000_000


CLOCK = [us(100), us(200), us(300)]


def tables(*batches: Batch) -> list[dict[str, pa.Table]]:
    names = ("user", "at", "amount")
    rows = [[dict(zip(names, (u, START + timedelta(seconds=s), n), strict=True)) for u, s, n in one] for one in batches]
    return [{"clicks": pa.Table.from_pylist(one, SOURCES[0].wire_schema)} for one in rows]


def copied(clicks: Any) -> Any:
    return clicks


def first_of_users(clicks: Any) -> Any:
    return clicks.withWatermark("at", "10 seconds").dropDuplicates(["user"])


def ran(job: Any, batches: Sequence[Batch] = BATCHES, clock: Sequence[int] = CLOCK, **how: Any) -> QueryOutput:
    earlier = how.pop("earlier", None)
    times = how.pop("times_ms", ())
    return Runner(job, SOURCES, earlier=earlier).run(tables(*batches), clock, RunOptions(**how), times)


def users(output: QueryOutput) -> list[list[str]]:
    return [[row["user"] for row in rows] for rows in output.batches]


CRASHES = [Crash(0, True, BEFORE), Crash(0), Crash(1), Crash(1, False), Crash(2)]


@pytest.mark.parametrize(
    ("how", "covered", "happened"),
    [
        ({}, set(), []),
        ({"stop_after": (0,)}, {RESTORED}, []),
        ({"stop_after": (1, 0, 1)}, {RESTORED}, []),
        ({"stop_after": (2,)}, set(), []),
        ({"crash_in": (Crash(0),)}, {REPEATED}, [(Crash(0), True)]),
        ({"crash_in": (Crash(1, False),)}, {RESTORED}, [(Crash(1, False), False)]),
        (
            {"crash_in": tuple(CRASHES)},
            {REPEATED, RESTORED},
            [(at, at.data and at.batch != 1) for at in CRASHES],
        ),
    ],
)
def test_a_query_that_stops_or_dies_emits_each_row_once_and_says_what_it_met(
    how: Any, covered: set[str], happened: Any
) -> None:
    output = ran(first_of_users, **how)
    assert users(output) == FIRST_OF_USERS
    assert [[row["user"] for row in part] for part in output.parts] == [["a", "b"], [], [], [], ["d"], []]
    assert ({*output.covered}, [*output.crashed]) == (covered, happened)
    assert (output.stateful, output.dropped, output.ahead, output.died_at) == (True, 1, False, "")


def test_rows_come_from_the_first_restart_on_only_if_there_was_state_before(session: Session) -> None:
    assert ran(first_of_users, [*BATCHES[:2], []], stop_after=(1,)).covered == frozenset()  # no rows after the stop
    assert ran(copied, stop_after=(0,)).covered == frozenset()  # it keeps no state
    assert not ran(copied).stateful


def test_under_another_trigger_the_last_batch_alone_has_a_micro_batch_without_data() -> None:
    output = ran(first_of_users, trigger="available_now")
    assert users(output) == FIRST_OF_USERS
    assert [len(part) for part in output.parts] == [2, 0, 1, 0]
    assert len(ran(copied, trigger="available_now").parts) == 3


def test_without_a_clock_rows_alone_move_the_watermark() -> None:
    late = [[("a", 0, 1)], [("b", 500, 1)], [("c", 100, 1)]]
    assert users(ran(first_of_users, late, ())) == [["a"], ["b"], []]
    assert users(ran(first_of_users, late[:1] + late[2:], [us(400), us(400)])) == [["a"], []]


def test_a_watermark_that_stays_behind_the_clock_fails_the_check_and_one_ahead_returns_no_rows() -> None:
    ahead = ran(first_of_users, [[("a", 900, 1)], [("b", 950, 1)]], [us(0), us(0)])
    assert (ahead.ahead, ahead.batches) == (True, [[], []])

    def behind(clicks: Any) -> Any:
        watermarked = type(clicks).withWatermark
        return watermarked(clicks, "at", "10 seconds").where("at > 5").dropDuplicates(["user"])

    def filtered(jdf: Any, condition: Any) -> Any:
        return replace(jdf, rows=lambda run: setattr(run, "latest_us", None) or [])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("memory_spark.JFrame.filter", filtered)
        with pytest.raises(StreamproofError, match="the job's watermark has reached only None, and the check moved"):
            ran(behind)


def test_what_a_job_sets_is_noted_and_taken_back(session: Session) -> None:
    def setting(clicks: Any) -> Any:
        clicks.sparkSession.conf.set("spark.own", "1")
        return clicks

    session.conf.set("spark.of.user", "2")
    output = ran(setting, settings={"spark.of.user": "3", "spark.of.check": "4"})
    assert output.settings == {"spark.own": "1"}
    assert session.settings.values == {"spark.of.user": "2"}


def test_a_query_that_fails_is_not_taken_for_one_that_dies() -> None:
    def failing(clicks: Any) -> Any:
        frame = first_of_users(clicks)
        frame._jdf = replace(frame._jdf, rows=lambda run: 1 // 0)
        return frame

    for how in ({}, {"crash_in": (Crash(0),)}):
        with pytest.raises(QueryFailed, match="the Spark query failed: ZeroDivisionError: integer division or modulo"):
            ran(failing, **how)


def test_queries_that_a_job_starts_itself_are_refused(session: Session) -> None:
    def starting(clicks: Any) -> Any:
        first_of_users(clicks).writeStream.format("noop").start()
        return clicks

    with pytest.raises(BadInput, match=r"starting .* started a query, and the check would see none: return its"):
        ran(starting)
    assert not any(query.is_active for query in session.started)


def test_sources_have_names_where_checkpoints_know_them_by_name(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[str] = []

    def name(reader: Any, given: str) -> Any:
        named.append(given)
        return reader

    reader = type(session.readStream)
    monkeypatch.setattr(reader, "name", name, raising=False)

    def two_watermarks(clicks: Any) -> Any:
        one, other = (clicks.withWatermark("at", f"{number} seconds") for number in (10, 20))
        return one.unionByName(other)

    ran(copied)
    assert named == []
    ran(two_watermarks, settings={NAMED_SOURCES: "true"}, stop_after=(0,))
    once = ["clicks", f"{TIME}_1", f"{TIME}_2"]
    assert named == once * 2
    monkeypatch.delattr(reader, "name")
    ran(copied, settings={NAMED_SOURCES: "true"})


def test_a_job_is_declared_once_for_all_that_its_declaration_depends_on() -> None:
    declared: list[str] = []

    def noting(clicks: Any) -> Any:
        declared.append("again")
        return first_of_users(clicks)

    runner = Runner(noting, SOURCES)
    found = runner.declare()
    assert (found.names, found.columns) == (["user", "at", "amount"], ["user", "at", "amount"])
    assert (found.watermarks.count, found.watermarks.without_clock, found.plan.delays_us) == (1, False, [10_000_000])
    assert (found.divergences, found.grouping) == ([], None)
    assert found.schema is not None
    assert found.schema.names == found.names
    for same in (RunOptions(stop_after=(1,)), RunOptions(crash_in=(Crash(0),)), RunOptions(partitions=1)):
        assert runner.declare(same) is found
    assert declared == ["again"]
    assert runner.declare(RunOptions(settings={"spark.a": "1"})) is not found
    assert declared == ["again"] * 2


def test_a_job_is_run_as_a_batch_over_frames_that_do_not_stream() -> None:
    def doubled(clicks: Any, names: Any) -> Any:
        assert not clicks.isStreaming
        return clicks.unionByName(clicks)

    runner = Runner(doubled, SOURCES, static={"names": pa.table({"user": ["a"]})})
    (batch,) = tables(BATCHES[0])
    assert [row["user"] for row in runner.as_batch(batch)] == ["a", "b", "a", "b"]


def test_the_columns_of_schemas_and_the_plans_of_all_queries_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    original, schema_of = declaration.plan_of, PreparedQuery.schema_of

    def reading(analyzed: Any, *how: str) -> Any:
        read.append("plan")
        return original(analyzed)

    def schema(self: Any, *given: Any) -> Any:
        read.append("schema")
        return schema_of(self, *given)

    monkeypatch.setattr(declaration, "plan_of", reading)
    monkeypatch.setattr(PreparedQuery, "schema_of", schema)
    runner = Runner(first_of_users, SOURCES)
    for how in (RunOptions(), RunOptions(stop_after=(0,))):
        runner.run(tables(*BATCHES), CLOCK, how)
    assert read == ["schema", "schema", "plan"]
    runner.run(tables(*BATCHES), CLOCK, RunOptions(settings={"spark.sql.session.timeZone": "UTC"}))
    assert read == ["schema", "schema", "plan", "schema", "schema"]


# Sinks.


def appending(rows: Any, batch: int, to: Path) -> None:
    with to.open("a") as file:
        for row in rows.toArrow().to_pylist():
            file.write(json.dumps([batch, row["user"]]) + "\n")


def read_lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "out"
    lines = path.read_text().splitlines() if path.exists() else []
    return [dict(zip(("batch", "user"), json.loads(line), strict=True)) for line in lines]


def started(write: Callable[[Any, int, Path], None], made: Callable[[Any], Any] = first_of_users) -> Sink:
    def start(clicks: Any, folder: Path) -> Any:
        writer = made(clicks).writeStream.foreachBatch(lambda rows, batch: write(rows, batch, folder / "out"))
        return writer.option("checkpointLocation", str(folder / "checkpoint")).start()

    return Sink(start, read_lines)


def once(rows: Any, batch: int, to: Path) -> None:
    done = to.read_text() if to.exists() else ""
    if f"[{batch}," not in done:
        lines = [json.dumps([batch, row["user"]]) for row in rows.toArrow().to_pylist()]
        to.write_text(done + "".join(f"{line}\n" for line in lines))


def test_a_sink_returns_what_its_target_has_at_the_end() -> None:
    output = ran(started(appending))
    assert (users(output), output.parts, output.crashed) == ([["a", "b", "d"]], [], [])
    assert (output.triggers, output.divergences, output.plan.delays_us) == ([], [], [10_000_000])


def test_a_sink_that_appends_has_the_rows_of_a_repeated_micro_batch_twice() -> None:
    for crash, wanted in (
        (Crash(0), ["a", "b", "a", "b", "d"]),
        (Crash(0, True, BEFORE), ["a", "b", "d"]),
        (Crash(2), ["a", "b", "d", "d"]),
    ):
        output = ran(started(appending), crash_in=(crash,), is_sink=True)
        assert users(output) == [wanted]
        assert crash in [at for at, _ in output.crashed]
    assert users(ran(started(once), crash_in=(Crash(0), Crash(2)), is_sink=True)) == [["a", "b", "d"]]


def test_a_sink_that_no_crash_reaches_repeats_each_micro_batch_by_its_commit() -> None:
    """Spark's own file sink has no function that could die: its commit is removed, and it starts again."""

    def start(clicks: Any, folder: Path) -> Any:
        writer = first_of_users(clicks).writeStream.format("parquet")
        return writer.option("checkpointLocation", str(folder / "checkpoint")).start(str(folder / "out"))

    def read(folder: Path) -> list[dict[str, Any]]:
        logs = sorted((folder / "out" / "_spark_metadata").glob("[0-9]*"), key=lambda path: int(path.name))
        names = [json.loads(log.read_text().splitlines()[1])["path"].rpartition("/")[2] for log in logs]
        return [row for name in names for row in pa.parquet.read_table(folder / "out" / name).to_pylist()]

    crashes = (Crash(0), Crash(0, True, MIDDLE), Crash(0, False), Crash(1), Crash(1, False), Crash(2), Crash(2, False))
    output = ran(Sink(start, read), crash_in=crashes, is_sink=True)
    assert users(output) == [["a", "b", "d"]]
    assert output.crashed[:3] == [(Crash(0, True, MIDDLE, 1), True), (Crash(0), True), (Crash(0, False), False)]
    assert output.crashed[3:] == [(at, at == Crash(2)) for at in crashes[3:]]
    assert output.covered == {REPEATED, RESTORED}
    assert output.died_at.startswith("after the sink had written its files, and before its log")


def test_a_writer_of_rows_dies_after_each_number_of_them() -> None:
    class Writer:
        def __init__(self, path: Path) -> None:
            self.path = path

        def open(self, partition: int, batch: int) -> bool:
            self.batch = batch
            return True

        def process(self, row: Any) -> None:
            with self.path.open("a") as file:
                file.write(json.dumps([self.batch, row["user"]]) + "\n")

        def close(self, error: Any) -> None:
            pass

    def start(clicks: Any, folder: Path) -> Any:
        writer = first_of_users(clicks).writeStream.foreach(Writer(folder / "out"))
        return writer.option("checkpointLocation", str(folder / "checkpoint")).start()

    output = ran(Sink(start, read_lines), crash_in=(Crash(0, True, MIDDLE),), is_sink=True)
    assert [at.step for at, _ in output.crashed] == [*range(1, MOST_ROWS + 1)]
    assert {at[:3] for at, _ in output.crashed} == {(0, True, MIDDLE)}
    ((*rows,),) = users(output)
    assert ({*rows}, len(rows) > 3) == ({"a", "b", "d"}, True)


def test_a_function_dies_at_its_steps_and_what_it_has_not_written_comes_again() -> None:
    def stepping(rows: Any, batch: int, to: Path) -> None:
        found = rows.toArrow().to_pylist()
        for row in found:
            with to.open("a") as file:
                file.write(json.dumps([batch, row["user"]]) + "\n")

    output = ran(started(stepping), crash_in=(Crash(0), Crash(0, True, MIDDLE)), is_sink=True)
    steps = [at.step for at, _ in output.crashed if at.moment == MIDDLE]
    assert 1 < len(steps) <= DEATHS[MIDDLE]
    assert steps == sorted(steps)
    assert output.died_at.startswith("before line")
    ((*rows,),) = users(output)
    assert rows.count("a") > 1
    alone = ran(started(stepping), crash_in=(Crash(0, True, MIDDLE, 1),), is_sink=True)
    assert (users(alone), [at.step for at, _ in alone.crashed]) == ([["a", "b", "d"]], [1])


def test_a_sink_that_keeps_its_checkpoint_elsewhere_or_starts_another_query_is_refused(
    session: Session, tmp_path: Path
) -> None:
    def elsewhere(clicks: Any, folder: Path) -> Any:
        writer = clicks.writeStream.format("noop")
        return writer.option("checkpointLocation", str(tmp_path / "elsewhere")).start()

    def two(clicks: Any, folder: Path) -> Any:
        for name in "ab":
            writer = clicks.writeStream.format("noop").option("checkpointLocation", str(folder / name))
            query = writer.start()
        return query

    for start, said in ((elsewhere, "keeps its checkpoint in"), (two, "2 queries, and the check would see 1")):
        with pytest.raises(BadInput, match=said):
            ran(Sink(start, read_lines))
        assert not any(query.is_active for query in session.started)


def test_a_trigger_of_a_sink_is_replaced_and_noted() -> None:
    def start(clicks: Any, folder: Path) -> Any:
        writer = clicks.writeStream.foreachBatch(lambda rows, batch: appending(rows, batch, folder / "out"))
        writer = writer.trigger(processingTime="1 hour")
        return writer.option("checkpointLocation", str(folder / "checkpoint")).start()

    output = ran(Sink(start, read_lines))
    assert output.triggers == ["processingTime='1 hour'"]


def test_what_a_sink_s_code_keeps_in_memory_is_put_back_before_each_start() -> None:
    seen: list[Any] = []

    def remembering(rows: Any, batch: int, to: Path) -> None:
        seen.append(batch)
        with to.open("a") as file:
            file.write(json.dumps([len(seen), str(batch)]) + "\n")

    output = ran(started(remembering), stop_after=(0,))
    counted = [(row["batch"], row["user"]) for row in output.batches[0]]
    assert counted == [(1, "0"), (2, "1"), (1, "2"), (2, "3"), (3, "4"), (4, "5")]


# Upgrades.


def test_the_earlier_version_runs_until_the_stop_and_the_job_from_its_checkpoint() -> None:
    def first_of_amounts(clicks: Any) -> Any:
        return first_of_users(clicks)

    output = ran(copied, earlier=Earlier(first_of_users), stop_after=(0,))
    assert users(output) == [["a", "b"], ["a", "c"], ["d"]]
    assert users(ran(first_of_amounts, earlier=Earlier(first_of_users), stop_after=(1,))) == FIRST_OF_USERS
    assert users(ran(copied, earlier=Earlier(first_of_users), stop_after=(2,))) == [*FIRST_OF_USERS[:2], ["d"]]
    assert users(ran(copied, earlier=Earlier(first_of_users))) == [["a", "b"], ["a", "c"], ["d"]]  # it never stops
    assert (output.plan.delays_us, output.ahead) == ([], False)


def test_a_query_may_choose_where_its_state_is_unless_another_version_goes_on_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chose: list[bool] = []

    def storing(self: Any, result: Any) -> contextlib.AbstractContextManager[None]:
        chose.append(self.owns_checkpoint)
        return contextlib.nullcontext()

    monkeypatch.setattr(declaration.JobDeclaration, "storing", storing)
    ran(first_of_users)
    assert {*chose} == {True}
    chose.clear()
    ran(first_of_users, earlier=Earlier(first_of_users), stop_after=(0,))
    assert {*chose} == {False}


@pytest.mark.parametrize(
    ("owns", "settings", "kind", "chosen"),
    [
        (True, {}, "Deduplicate", True),
        (False, {}, "Deduplicate", False),
        (True, {"spark.sql.streaming.x": "1"}, "Deduplicate", False),
        (True, {"spark.sql.shuffle.partitions": "1"}, "Deduplicate", True),
        (True, {}, "TransformWithStateInPySpark", False),
    ],
)
def test_a_query_has_spark_s_default_store_where_it_may_choose(
    owns: bool, settings: dict[str, str], kind: str, chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declaration, "default_store", lambda: {"a": "b"})
    monkeypatch.setattr(declaration, "with_settings", lambda session, given: contextlib.nullcontext(given))
    monkeypatch.setattr(declaration.connect, "is_asked", lambda: False)
    plan = SimpleNamespace(analyzed=lambda: SimpleNamespace(toString=lambda: kind))
    result: Any = SimpleNamespace(sparkSession=None, _jdf=SimpleNamespace(queryExecution=lambda: plan))
    job: Any = SimpleNamespace(run=RunOptions(settings=settings), owns_checkpoint=owns)
    with declaration.JobDeclaration.storing(job, result) as given:
        assert given == ({"a": "b"} if chosen else None)


def test_each_version_has_its_settings(session: Session) -> None:
    seen: list[Any] = []

    def noting(clicks: Any) -> Any:
        seen.append(clicks.sparkSession.conf.get("spark.version.of", None))
        return clicks

    def earlier(clicks: Any) -> Any:
        return noting(clicks)

    ran(noting, earlier=Earlier(earlier, settings={"spark.version.of": "old"}), stop_after=(0, 1))
    assert seen == ["old", None, None]


def test_a_job_that_fails_on_the_checkpoint_of_its_earlier_version_is_not_continued() -> None:
    def failing(clicks: Any) -> Any:
        frame = copied(clicks)
        frame._jdf = replace(frame._jdf, rows=lambda run: 1 // 0)
        return frame

    with pytest.raises(NotContinued) as later:
        ran(failing, earlier=Earlier(copied), stop_after=(0,))
    assert later.value.cause.startswith("ZeroDivisionError")
    with pytest.raises(QueryFailed, match=r"failing \(.*\): the Spark query") as old:
        ran(copied, earlier=Earlier(failing), stop_after=(0,))
    assert not isinstance(old.value, NotContinued)


class InThread:
    """Stands in for the process of another PySpark: its program runs in a thread, over the same connection."""

    pid = 2**31 - 1  # of no process

    def __init__(self, words: Sequence[Any], **named: Any) -> None:
        descriptor = os.dup(int(words[-1]))

        def program() -> None:
            use_own_session(0)  # so that it waits for no lock of the test's thread
            with contextlib.suppress(SystemExit, OSError):
                other_pyspark_main.main(descriptor)

        self.thread = threading.Thread(target=program, daemon=True)
        self.thread.start()

    def wait(self, seconds: float | None = None) -> None:
        self.thread.join(seconds)
        if self.thread.is_alive():
            raise subprocess.TimeoutExpired("program", seconds or 0)

    def poll(self) -> int:
        self.thread.join()
        return 0


@pytest.fixture
def other(session: Session, monkeypatch: pytest.MonkeyPatch) -> Iterator[PySparkProcess]:
    monkeypatch.setattr(other_pyspark, "spark_session", lambda **given: session)
    monkeypatch.setattr(subprocess, "Popen", InThread)
    monkeypatch.setattr(other_pyspark_main, "_end_with", lambda parent: None)
    with PySparkProcess(Path("python"), "4") as process:
        yield process
    assert not process.process.thread.is_alive()  # type: ignore[attr-defined]


def fails(clicks: Any) -> Any:
    frame = copied(clicks)
    frame._jdf = replace(frame._jdf, rows=lambda run: 1 // 0)
    return frame


def test_another_pyspark_declares_and_runs_a_job(other: PySparkProcess) -> None:
    assert other.version == pyspark.__version__
    runner = Runner(first_of_users, SOURCES, on=other)
    declared = runner.declare()
    assert (declared.columns, declared.plan.delays_us) == (["user", "at", "amount"], [10_000_000])
    output = runner.run(tables(*BATCHES), CLOCK, RunOptions(crash_in=(Crash(0),)))
    assert (users(output), output.crashed) == (FIRST_OF_USERS, [(Crash(0), True)])
    failing = Runner(fails, SOURCES, on=other)
    with pytest.raises(
        QueryFailed, match=rf"^PySpark {re.escape(other.version)}: the Spark query failed: ZeroDiv"
    ) as query:
        failing.run(tables(*BATCHES), CLOCK, RunOptions())
    assert query.value.cause.startswith("ZeroDivisionError")
    with pytest.raises(BadInput, match=r"PySpark .*: .*starts_one .* started a query"):
        Runner(starts_one, SOURCES, on=other).run(tables(*BATCHES), CLOCK, RunOptions())


def starts_one(clicks: Any) -> Any:
    clicks.writeStream.format("noop").start()
    return clicks


def test_another_pyspark_runs_the_earlier_version_and_hands_its_checkpoint_on(other: PySparkProcess) -> None:
    earlier = Earlier(first_of_users, on=other)
    assert earlier.name.endswith(f"on PySpark {other.version}")
    assert users(ran(first_of_users, earlier=earlier, stop_after=(0,))) == FIRST_OF_USERS
    starts: list[str] = []

    def counted(clicks: Any) -> Any:
        starts.append("again")
        return first_of_users(clicks)

    died = ran(counted, earlier=earlier, stop_after=(0,), crash_in=(Crash(0), Crash(2)))
    assert (users(died), died.crashed) == (FIRST_OF_USERS, [(Crash(0), True), (Crash(2), True)])
    assert len(starts) == 2  # the death in the first batch was the earlier version's
    with pytest.raises(QueryFailed, match=r"^fails \(.*\) on PySpark .*: the Spark query failed") as failed:
        ran(copied, earlier=Earlier(fails, on=other), stop_after=(0,))
    assert not isinstance(failed.value, NotContinued)


def test_a_process_that_has_ended_is_named_with_its_last_line(
    other: PySparkProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(modules: Any, content: bytes) -> bytes:
        raise SystemExit

    monkeypatch.setattr(other_pyspark_main, "_answered", ends)
    other.log.write_text("first\n\nthe last line\n")
    with pytest.raises(StreamproofError, match=r"the process of PySpark .* \(python\) ended: the last line$"):
        Runner(copied, SOURCES, on=other).run(tables(*BATCHES), CLOCK, RunOptions())
    other.log.write_text("")
    with pytest.raises(StreamproofError, match=r"ended: it ended with 0$"):
        Runner(copied, SOURCES, on=other).run(tables(*BATCHES), CLOCK, RunOptions())
    with contextlib.suppress(OSError):  # it has no reader
        other.connection.close()  # as `end` does in another thread
    with pytest.raises(StreamproofError, match=r"ended: it ended with 0$"):
        Runner(copied, SOURCES, on=other).run(tables(*BATCHES), CLOCK, RunOptions())


def test_the_least_event_time_of_a_micro_batch_tells_whether_the_job_takes_it_from_elsewhere() -> None:
    def committed(batch: int, least: str | None) -> Any:
        return {"batchId": batch, "eventTime": {} if least is None else {"min": least}}

    times = Times(
        SOURCES, tables(*BATCHES), [us(50), us(-5), us(400)], (), lambda number: (number // 2, not number % 2)
    )
    shown = lambda seconds: (START + timedelta(seconds=seconds)).isoformat()  # noqa: E731
    for batch, least, differs in ((0, 0, False), (0, 1, True), (2, -5, False), (2, 3, True), (1, 7, False)):
        assert times.has_others(committed(batch, shown(least))) is differs, (batch, least)
    assert times.has_others(committed(0, None))
    times.clock = [us(-9), us(-8), us(-7)]  # each batch has a row at its own clock
    assert [times.has_others(committed(2 * batch, shown(batch - 9))) for batch in range(3)] == [False] * 3
    times.clock = []
    assert not times.has_others(committed(2, shown(3)))
    times.batches = tables([], [], [])
    assert not times.has_others(committed(0, None))
    times.sources = SOURCES * 2
    assert times.has_others(committed(0, None))  # of several inputs none tells


def test_a_job_derives_its_event_time_only_where_its_input_has_one() -> None:
    times = [SimpleNamespace(name=name, given=given) for name, given in (("at", "at"), ("made", None))]
    of_payload = [given.source for given in resolve_all([replace(CLICKS, format="kafka", key="user")], 0)]
    for sources, derived, wanted in (
        (SOURCES, times[:1], None),
        (SOURCES, times, "made"),
        (of_payload, times, None),
        ([*SOURCES, *of_payload], times, None),
        ([*SOURCES, *of_payload], [times[1], SimpleNamespace(name="other", given=None)], "made"),
    ):
        plan: Any = SimpleNamespace(event_times=derived)
        assert Runner(copied, sources).derived_time(plan) == wanted


def test_times_of_batches_are_those_of_the_history_or_the_check_refuses() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job_query, "at_times", lambda spark, time_ms: memory_times(asked, time_ms))
        asked: list[int] = []
        with pytest.raises(BadInput, match=r"^pyspark 4\.3\.0 doesn't let a check set a query's clock"):
            ran(copied, times_ms=[1_000, 2_000, 3_000], processing_time=True)
        output = ran(copied, times_ms=[0, 0, 0], processing_time=True)
    assert (users(output), asked) == ([["a", "b"], ["a", "c"], ["d"]], [1_000, 1_000, 2_000, 0, 0, 0])


class memory_times:
    def __init__(self, asked: list[int], time_ms: Callable[[int], int]) -> None:
        asked += [time_ms(number) for number in (0, 1, 2)]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


def test_another_pyspark_runs_a_job_in_as_many_partitions_as_here(
    other: PySparkProcess, monkeypatch: pytest.MonkeyPatch, session: Session
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(other, "ask", lambda request: asked.append(request.feed.run.partitions))
    session.conf.set("spark.sql.shuffle.partitions", "7")
    for partitions in (None, 3):
        other.run(Runner(copied, SOURCES), Feed([], run=RunOptions(partitions=partitions)))
    monkeypatch.setattr(other_pyspark, "partitions_of_users_session", lambda: 5)
    other.run(Runner(copied, SOURCES), Feed([]))
    assert asked == [7, 3, 5]
