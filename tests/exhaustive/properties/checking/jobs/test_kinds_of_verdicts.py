"""Jobs as people write them, by the kind of mistake that a verdict can make: right jobs are held, wrong jobs aren't.

Each kind comes from a public script or report that once got the wrong verdict; wrong and right jobs stand side by side.
"""

from __future__ import annotations

import functools
import json
import sqlite3
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest
from check_job_setup import but_for
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import BooleanType, DoubleType, StringType
from streamproof import (
    Inconclusive,
    Input,
    Sink,
    Violated,
    Watermark,
    as_batch,
    check_job,
    invariants,
    session_windows,
)

EVENTS = Input("id string, at timestamp, state string", key="id", name="events")
DEATHS = ("a restart", "a crash")
Write = Callable[[DataFrame, int, str], None]


def sink(write: Write) -> Sink:
    """A sink of JSON: a function for `foreachBatch`, which is given the target, too."""

    def start(events: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        Path(target).mkdir(parents=True, exist_ok=True)
        writer = events.writeStream.option("checkpointLocation", checkpoint)
        return writer.foreachBatch(lambda rows, batch: write(rows, batch, target)).start()

    return Sink.json(start)


def with_trigger(events: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
    """A sink whose trigger waits an hour."""
    Path(target).mkdir(parents=True, exist_ok=True)
    writer = events.writeStream.option("checkpointLocation", checkpoint).trigger(processingTime="1 hour")
    return writer.foreachBatch(lambda rows, batch: by_a_pure_cache(rows, batch, target)).start()


def put(target: str, name: Any, rows: list[dict[str, Any]]) -> None:
    """Replace a file of the target by rows."""
    Path(target, f"{name}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


# Memory: what a process that has died has lost.


def once_by(seen: Callable[[], set[Any]], remember: Callable[[set[Any]], None]) -> Write:
    """Write the first row of each id, by a memory: it forgets in a restart, and an id comes twice."""

    def write(rows: DataFrame, batch: int, target: str) -> None:
        new = {row.id for row in rows.collect()} - seen()
        if new or not Path(target, f"{batch}.json").exists():
            put(target, batch, [{"id": name} for name in sorted(new)])
        remember(new)

    return write


GLOBAL: set[str] = set()
REBOUND: frozenset[str] = frozenset()
NESTED: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))


def rebind(new: set[str]) -> None:
    global REBOUND
    REBOUND |= new


class Registry:
    ids: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        self.own: set[str] = set()

    def seen(self) -> set[str]:
        return self.own

    def remember(self, new: set[str]) -> None:
        self.own = self.own | new


@functools.lru_cache
def cached() -> set[str]:
    return set()


def with_default(new: set[str] = set(), known: set[str] = set()) -> set[str]:  # noqa: B006
    known |= new
    return known


def of_function() -> set[str]:
    return of_function.__dict__.setdefault("ids", set())


def rebound_in_a_closure() -> Write:
    known: set[str] = set()

    def remember(new: set[str]) -> None:
        nonlocal known
        known = known | new

    return once_by(lambda: known, remember)


def highest_number() -> Write:
    """Skip the batches up to the highest that this process has written: the number is lost, the file is replaced."""
    highest = [-1]

    def write(rows: DataFrame, batch: int, target: str) -> None:
        if batch > highest[0]:
            with Path(target, "all.json").open("a") as file:
                file.writelines(json.dumps({"id": row.id}) + "\n" for row in rows.collect())
        highest[0] = batch

    return write


def from_target(rows: DataFrame, batch: int, target: str) -> None:
    """Know the ids that the target has from earlier batches: what is in memory is what is there."""
    files = [path for path in sorted(Path(target).glob("*.json")) if int(path.stem) < batch]
    known = {json.loads(line)["id"] for path in files for line in path.read_text().splitlines()}
    put(target, batch, [{"id": name} for name in sorted({row.id for row in rows.collect()} - known)])


@functools.lru_cache
def upper(text: str) -> str:
    return text.upper()


def by_a_pure_cache(rows: DataFrame, batch: int, target: str) -> None:
    put(target, batch, [{"id": row.id, "state": upper(row.state or "")} for row in rows.collect()])


COUNTS = {"batches": 0}


def with_a_count_for_the_log(rows: DataFrame, batch: int, target: str) -> None:
    COUNTS["batches"] += 1
    put(target, batch, [{"id": row.id} for row in rows.collect()])


MEMORIES: dict[str, Write] = {
    "a global set": once_by(lambda: GLOBAL, lambda new: GLOBAL.update(new)),
    "a global that is bound again": once_by(lambda: {*REBOUND}, rebind),
    "nested dicts": once_by(lambda: NESTED["a"]["b"], lambda new: NESTED["a"]["b"].update(new)),
    "an attribute of a class": once_by(lambda: Registry.ids, lambda new: Registry.ids.update(new)),
    "an attribute of an object": once_by((registry := Registry()).seen, registry.remember),
    "a cached function": once_by(cached, lambda new: cached().update(new)),
    "a default argument": once_by(with_default, with_default),
    "an attribute of a function": once_by(of_function, lambda new: of_function().update(new)),
    "a variable of a closure": rebound_in_a_closure(),
    "the number of the last batch": highest_number(),
}
NO_MEMORY: dict[str, Write] = {
    "ids read from the target": from_target,
    "a cache of a pure function": by_a_pure_cache,
    "a count for the log": with_a_count_for_the_log,
}

# Deaths: what a dead process leaves.


@contextmanager
def transaction(target: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(Path(target, "out.db"), isolation_level=None)) as database:
        database.execute("CREATE TABLE IF NOT EXISTS rows (batch, id)")
        database.execute("CREATE TABLE IF NOT EXISTS done (batch)")
        database.execute("BEGIN IMMEDIATE")
        yield database
        database.execute("COMMIT")


def insert(database: sqlite3.Connection, rows: DataFrame, batch: int) -> None:
    for row in rows.collect():
        database.execute("INSERT INTO rows VALUES (?, ?)", (batch, row.id))


def guarded(rows: DataFrame, batch: int, target: str) -> None:
    with transaction(target) as database:
        if not database.execute("SELECT 1 FROM done WHERE batch = ?", (batch,)).fetchone():
            insert(database, rows, batch)
            database.execute("INSERT INTO done VALUES (?)", (batch,))


def replaced(rows: DataFrame, batch: int, target: str) -> None:
    with transaction(target) as database:
        database.execute("DELETE FROM rows WHERE batch = ?", (batch,))
        insert(database, rows, batch)


LOCK = threading.Lock()


def under_a_lock(rows: DataFrame, batch: int, target: str) -> None:
    with LOCK:
        replaced(rows, batch, target)


def guard_first(rows: DataFrame, batch: int, target: str) -> None:
    with transaction(target) as database:
        known = database.execute("SELECT 1 FROM done WHERE batch = ?", (batch,)).fetchone()
        database.execute("INSERT INTO done VALUES (?)", (batch,))
    if not known:
        with transaction(target) as database:
            insert(database, rows, batch)


def committed_in_finally(rows: DataFrame, batch: int, target: str) -> None:
    """A process that dies before `finally` has committed nothing: neither the guard nor a part of the rows."""
    database = sqlite3.connect(Path(target, "out.db"))
    try:
        database.execute("CREATE TABLE IF NOT EXISTS rows (batch, id)")
        database.execute("CREATE TABLE IF NOT EXISTS done (batch)")
        if not database.execute("SELECT 1 FROM done WHERE batch = ?", (batch,)).fetchone():
            database.execute("INSERT INTO done VALUES (?)", (batch,))
            insert(database, rows, batch)
    finally:
        database.commit()
        database.close()


def committed_by_row(rows: DataFrame, batch: int, target: str) -> None:
    for row in rows.collect():
        with transaction(target) as database:
            database.execute("INSERT INTO rows VALUES (?, ?)", (batch, row.id))


def skipped_if_there(rows: DataFrame, batch: int, target: str) -> None:
    """Skip a batch of which a row is there: a death between two rows loses the rest."""
    with transaction(target) as database:
        known = database.execute("SELECT 1 FROM rows WHERE batch = ?", (batch,)).fetchone()
    if not known:
        committed_by_row(rows, batch, target)


def database_sink(write: Write) -> Sink:
    started = sink(write)

    def rows_of(folder: Path) -> list[dict[str, Any]]:
        path = folder / "out.db"
        if not path.exists():
            return []
        with closing(sqlite3.connect(path)) as database:
            return [{"batch": batch, "id": name} for batch, name in database.execute("SELECT * FROM rows")]

    def start(events: DataFrame, folder: Path) -> StreamingQuery:
        return started.start(events, str(folder), str(folder / "checkpoint"))

    return Sink(start, rows_of)


SURVIVING: dict[str, Write] = {
    "rows and their guard in one transaction": guarded,
    "rows of the batch replaced in one transaction": replaced,
    "a transaction under a lock": under_a_lock,
    "guard and rows, and a commit in finally": committed_in_finally,
}
DYING: dict[str, Write] = {
    "the guard before the rows": guard_first,
    "a commit for each row": committed_by_row,
    "a batch that is skipped if a row is there": skipped_if_there,
}

# Columns that have other values in each run.


def stamped(column: Any) -> Callable[[DataFrame], DataFrame]:
    return lambda events: events.select("id", "at", column().alias("stamp"))


@F.pandas_udf(StringType())
def random_text(ids: pd.Series) -> pd.Series:
    return ids.map(lambda _: str(uuid.uuid4()))


@F.udf(DoubleType())
def now(_: str) -> float:
    return datetime.now(UTC).timestamp()


def stamped_by_the_sink(rows: DataFrame, batch: int, target: str) -> None:
    found = [{"id": row.id, "at": str(datetime.now(UTC)), "by": str(uuid.uuid4())} for row in rows.collect()]
    put(target, batch, found)


UNSTABLE: dict[str, Any] = {
    "the time of processing": stamped(F.current_timestamp),
    "the date of processing": stamped(lambda: F.date_format(F.now(), "ss.SSSSSS")),
    "a UUID": stamped(lambda: F.expr("uuid()")),
    "a random number": stamped(lambda: F.round(F.rand() * 1000)),
    "a number of the partition": stamped(F.spark_partition_id),
    "the name of a file": stamped(F.input_file_name),
    "a UUID of a pandas function": stamped(lambda: random_text("id")),
    "the time of a Python function": stamped(lambda: now("id")),
    "times and UUIDs of a sink": sink(stamped_by_the_sink),
}

# Relations that don't stream, and the key under another name.

BLOCKED = [{"uid": "a"}, {"uid": "b"}]
LOOKUPS: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    "an anti join": lambda events, blocked: events.join(blocked, events.id == blocked.uid, "left_anti"),
    "an anti join, the other way round": lambda e, b: e.join(F.broadcast(b), F.col("uid") == F.col("id"), "left_anti"),
    "a left join, and those without": lambda e, b: e.join(b, e.id == b.uid, "left").where("uid IS NULL").drop("uid"),
    "NOT IN": lambda e, b: of_sql(e, b, "id NOT IN (SELECT uid FROM blocked)"),
    "NOT EXISTS": lambda e, b: of_sql(e, b, "NOT EXISTS (SELECT 1 FROM blocked WHERE uid = id)"),
    "a renamed column": lambda e, b: e.join(
        b.withColumnRenamed("uid", "who"), F.col("id") == F.col("who"), "left_anti"
    ),
    "a null-safe equality": lambda e, b: e.join(b, e.id.eqNullSafe(b.uid), "left_anti"),
}


def of_sql(events: DataFrame, blocked: DataFrame, where: str) -> DataFrame:
    events.createOrReplaceTempView("events_now")
    blocked.createOrReplaceTempView("blocked")
    return events.sparkSession.sql(f"SELECT * FROM events_now WHERE {where}")


def read_in_the_job(events: DataFrame) -> DataFrame:
    blocked = events.sparkSession.createDataFrame(BLOCKED, "uid string")
    return LOOKUPS["an anti join"](events, blocked)


def by_a_list(events: DataFrame) -> DataFrame:
    return events.where(~F.col("id").isin([row["uid"] for row in BLOCKED]))


@F.udf(BooleanType())
def is_free(name: str) -> bool:
    return name not in ("a", "b")


def by_a_function(events: DataFrame) -> DataFrame:
    return events.where(is_free("id"))


def all_events(events: list[dict[str, Any]], *static: Any) -> list[dict[str, Any]]:
    return events


def free_events(events: list[dict[str, Any]], *static: Any) -> list[dict[str, Any]]:
    return [row for row in events if row["id"] not in ("a", "b")]


# Results without the key, models, and events that come again.


def counted_words(events: DataFrame) -> DataFrame:
    words = events.select(F.explode(F.split("state", " ")).alias("word"))
    return words.groupBy("word").count()


def hours(events: DataFrame) -> DataFrame:
    return events.withWatermark("at", "5 minutes").groupBy("id", F.window("at", "1 hour")).count()


def hours_without_key(events: DataFrame) -> DataFrame:
    return events.withWatermark("at", "5 minutes").groupBy(F.window("at", "1 hour")).count().select("window", "count")


def hours_under_another_name(events: DataFrame) -> DataFrame:
    return hours(events).select(F.col("id").alias("who"), "window", "count")


def as_json(events: DataFrame) -> DataFrame:
    return events.select(F.to_json(F.struct("id", "state")).alias("value"))


def sessions(events: DataFrame) -> DataFrame:
    gaps = events.withWatermark("at", "5 minutes").groupBy("id", F.session_window("at", "10 minutes"))
    return gaps.count().select("id", "session_window", "count")


def words_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    words = [word for row in events if row["state"] is not None for word in row["state"].split(" ")]
    return [{"word": word, "count": words.count(word)} for word in {*words}]


def json_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = [{name: row[name] for name in ("id", "state") if row[name] is not None} for row in events]
    return [{"value": json.dumps(row, separators=(",", ":"), ensure_ascii=False)} for row in rows]


def silent(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    if state.hasTimedOut:
        (last,) = state.get
        state.remove()
        yield pd.DataFrame({"id": [key[0]], "last_ms": [last]})
        return
    times = [time.value // 1_000_000 for frame in frames for time in frame["at"]]
    last = max([*times, *(state.get if state.exists else ())])
    state.update((last,))
    state.setTimeoutTimestamp(max(last + 600_000, state.getCurrentWatermarkMs() + 1))


def silences(events: DataFrame) -> DataFrame:
    timed = events.select("id", "at").withWatermark("at", "5 minutes").groupBy("id")
    by_event_time = GroupStateTimeout.EventTimeTimeout
    return timed.applyInPandasWithState(silent, "id string, last_ms long", "last long", "append", by_event_time)


class Silences:
    """A right model of it: late rows are dropped, and a timeout comes only when the watermark is later."""

    def __init__(self) -> None:
        self.watermark, self.last, self.until = Watermark("5 minutes"), {}, {}
        self.came: dict[str, int] = {}

    def arrive(self, row: dict[str, Any]) -> None:
        if row["at"] is not None and not self.watermark.is_late(row["at"]):
            last_ms = (row["at"] - EPOCH) // timedelta(milliseconds=1)
            self.came[row["id"]] = max(last_ms, self.came.get(row["id"], last_ms), self.last.get(row["id"], last_ms))

    def advance(self, clock: datetime) -> list[dict[str, Any]]:
        for name, last_ms in self.came.items():
            self.last[name] = last_ms
            self.until[name] = max(last_ms + 600_000, self.watermark.now_ms + 1)
        self.came = {}
        self.watermark.advance(clock)
        times = {name: EPOCH + timedelta(milliseconds=ms) for name, ms in self.until.items()}
        done = [name for name, time in times.items() if self.watermark.has_timed_out(time)]
        return [{"id": name, "last_ms": self.last.pop(name)} for name in done if self.until.pop(name)]


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Hours:
    """A model of hours, whose watermark is Spark's, or a mistaken one."""

    watermark: ClassVar[Callable[[], Any]] = lambda: Watermark("5 minutes")

    def __init__(self) -> None:
        self.open: dict[tuple[str, datetime], int] = {}
        self.now = type(self).watermark()

    def arrive(self, row: dict[str, Any]) -> None:
        if row["at"] is not None:
            start = row["at"].replace(minute=0, second=0, microsecond=0)
            if not self.now.is_late(start + timedelta(hours=1)):
                self.open[row["id"], start] = self.open.get((row["id"], start), 0) + 1

    def advance(self, clock: datetime) -> list[dict[str, Any]]:
        self.now.advance(clock)
        closed = [key for key in self.open if self.now.has_closed(key[1] + timedelta(hours=1))]
        return [
            {"id": key[0], "window": {"start": key[1], "end": key[1] + timedelta(hours=1)}, "count": self.open.pop(key)}
            for key in closed
        ]


class LateByAnHour(Hours):
    watermark = lambda: Watermark("65 minutes")  # noqa: E731


def deduplicated(events: DataFrame) -> DataFrame:
    return events.withWatermark("at", "5 minutes").dropDuplicates(["id"]).select("id", "state")


def largest(events: DataFrame) -> DataFrame:
    """The largest state of each id: rows may change places, whatever they are."""
    return events.groupBy("id").agg(F.max("state").alias("state"))


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("kind", MEMORIES)
@pytest.mark.in_ci("a global set")
def test_memory_that_a_dead_process_loses_violates(kind: str) -> None:
    with pytest.raises(Violated, match=r"violated: (stopped|dying)"):
        invariants(sink(MEMORIES[kind]), EVENTS, histories=12, without=but_for(*DEATHS))


@pytest.mark.parametrize("kind", NO_MEMORY)
@pytest.mark.in_ci
def test_memory_that_changes_no_row_is_held(kind: str) -> None:
    assert {*invariants(sink(NO_MEMORY[kind]), EVENTS, histories=12, without=but_for(*DEATHS)).laws} == {*DEATHS}


@pytest.mark.parametrize("kind", SURVIVING)
@pytest.mark.in_ci("guard and rows, and a commit in finally")
def test_what_a_dead_process_leaves_is_what_the_next_start_finds(kind: str) -> None:
    assert invariants(database_sink(SURVIVING[kind]), EVENTS, histories=12, without=but_for("a crash")).laws


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("kind", DYING)
@pytest.mark.in_ci
def test_a_sink_that_loses_or_repeats_rows_in_a_death_is_condemned(kind: str) -> None:
    with pytest.raises(Violated, match="violated: dying"):
        invariants(database_sink(DYING[kind]), EVENTS, histories=12, without=but_for("a crash"))


@pytest.mark.parametrize("kind", UNSTABLE)
@pytest.mark.in_ci("a UUID of a pandas function")
def test_a_column_that_has_other_values_in_each_run_condemns_no_job(kind: str) -> None:
    report = invariants(UNSTABLE[kind], EVENTS, histories=12, without=but_for("a restart", "the number of partitions"))
    assert len(report.laws) == 2


@pytest.mark.parametrize("kind", [*LOOKUPS, "read in the job", "a list", "a function"])
@pytest.mark.in_ci("NOT EXISTS")
def test_a_lookup_of_the_key_finds_the_keys_that_are_there(kind: str) -> None:
    others = {"read in the job": read_in_the_job, "a list": by_a_list, "a function": by_a_function}
    given: dict[str, Any] = {"histories": 12, "alone": kind == "a function"}
    given |= {} if kind in others else {"static": {"blocked": BLOCKED}}
    job = others.get(kind) or LOOKUPS[kind]
    check_job(job, EVENTS, expect=free_events, **given)
    with pytest.raises((Violated, Inconclusive), match="violated"):
        check_job(job, EVENTS, expect=all_events, **given)


RIGHT: dict[str, tuple[Any, dict[str, Any]]] = {
    "words without the key": (counted_words, {"expect": words_of, "mode": "complete"}),
    "windows without the key": (hours_without_key, {"expect": as_batch()}),
    "windows under another name": (hours_under_another_name, {"expect": as_batch()}),
    "the key within JSON": (as_json, {"expect": json_of}),
    "sessions": (sessions, {"expect": session_windows("10 minutes", delay="5 minutes")}),
    "a model with Spark's watermark": (hours, {"expect": Hours}),
    "a model with a timeout": (silences, {"expect": Silences, "timeouts": ["10 minutes"], "mode": "append"}),
    "a trigger that waits": (Sink.json(with_trigger), {"expect": lambda events: states(events)}),
}


def states(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": row["id"], "state": (row["state"] or "").upper()} for row in events]


@pytest.mark.parametrize("kind", RIGHT)
@pytest.mark.in_ci("a model with a timeout")
def test_a_right_job_of_another_form_conforms(kind: str) -> None:
    job, given = RIGHT[kind]
    assert check_job(job, EVENTS, histories=30, **given).histories >= 15


def test_a_model_whose_watermark_is_another_is_told_apart() -> None:
    with pytest.raises((Violated, Inconclusive)):
        check_job(hours, EVENTS, histories=30, expect=LateByAnHour)


@pytest.mark.parametrize(
    ("job", "identity", "holds"), [(deduplicated, "id", True), (deduplicated, (), False), (largest, (), True)]
)
@pytest.mark.in_ci
def test_rows_of_one_event_are_copies_where_the_input_says_so(job: Any, identity: Any, holds: bool) -> None:
    events = Input(EVENTS.schema, key="id", name="events", identity=identity)
    given: dict[str, Any] = {"histories": 60, "mode": "update", "unique": ["id"]}
    if holds:
        assert "the order within a batch" in invariants(job, events, **given).laws
    else:
        with pytest.raises(Violated, match="order"):
            invariants(job, events, **given)


def test_there_are_at_least_sixty() -> None:
    looked_up = 2 * (len(LOOKUPS) + 3)
    assert len([*MEMORIES, *NO_MEMORY, *SURVIVING, *DYING, *UNSTABLE, *RIGHT]) + looked_up + 4 >= 60
