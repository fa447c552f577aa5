"""Runs in production, judged: right ones conform, and a wrong row is found with its batch, its key and its rows."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka_connector import said_with_kafka
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from streamproof import (
    BadInput,
    Inconclusive,
    Input,
    JobReport,
    StreamproofError,
    Violated,
    as_batch,
    replay,
    sql,
    windows,
)
from streamproof.properties.checking.jobs.production import narrowing
from streamproof.properties.system.installed.environments import python_of
from streamproof.properties.witnesses.kafka.jvm import Coordinates, kafka_jars
from streamproof.properties.witnesses.spark.session import with_settings

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
CLICKS = Input("user string, at timestamp, amount int", key="user", name="clicks")
RULE = windows("1 hour", delay="10 minutes", aggregates={"total": ("sum", "amount")})
SQL = sql("""
    SELECT "user", time_bucket(INTERVAL 1 HOUR, "at") AS start, start + INTERVAL 1 HOUR AS "end", sum(amount) AS total
    FROM clicks GROUP BY ALL
""")


TIME = pa.timestamp("us", "UTC")
WRITTEN = pa.schema(
    [("user", pa.string()), ("window", pa.struct([("start", TIME), ("end", TIME)])), ("total", pa.int64())]
)
USERS = [f"u{number}" for number in range(4)]
PLAIN = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1"}
VIEWS = Input("user string, at timestamp, amount int", key="user", name="views")


def read(report: JobReport) -> int:
    """Return how many rows a run has read, by the report on it."""
    return counted(report, "read")


def written(report: JobReport) -> int:
    return counted(report, "written")


def counted(report: JobReport, done: str) -> int:
    found = re.search(rf"([\d,]+) rows? {done}", str(report))
    assert found
    return int(found[1].replace(",", ""))


def totals(clicks: DataFrame) -> DataFrame:
    groups = clicks.withWatermark("at", "10 minutes").groupBy("user", F.window("at", "1 hour"))
    return groups.agg(F.sum("amount").alias("total"))


def largest(clicks: DataFrame) -> DataFrame:
    groups = clicks.withWatermark("at", "10 minutes").groupBy("user", F.window("at", "1 hour"))
    return groups.agg(F.max("amount").alias("total"))


def write_inputs(folder: Path, batches: int) -> None:
    """Write a file a batch; each has half an hour, and some rows of the batch before, of which some of u3 are late."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(batches):
        draw = random.Random(number)
        lines = []
        for _ in range(30):
            user = draw.choice(USERS)
            seconds = max(0, number * 1800 + draw.randrange(-1200 if user == "u3" else -500, 1800))
            at = BEGIN + timedelta(seconds=seconds)
            lines.append(json.dumps({"user": user, "at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "amount": draw.randrange(9)}))
        path = folder / f"part é {number:03}.json"
        path.write_text("\n".join(lines))
        os.utime(path, (1e9 + number, 1e9 + number))  # Spark reads the oldest first


Edit = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


class Run:
    """A run in a folder of its own, with its input, checkpoint and output."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.input, self.checkpoint, self.output = folder, folder / "in", folder / "cp", folder / "out"

    def run(self, spark: SparkSession, job: Callable[[DataFrame], DataFrame], batches: int, **settings: str) -> Run:
        write_inputs(self.input, batches)
        return self.run_on(spark, job, self.input, **settings)

    def run_on(self, spark: SparkSession, job: Callable[..., DataFrame], *inputs: Path, **settings: str) -> Run:
        """Run a job on files that are there."""
        with with_settings(spark, {**PLAIN, **settings}):
            self.start(spark, job, *inputs, availableNow=True).awaitTermination()
        return self

    def start(
        self, spark: SparkSession, job: Callable[..., DataFrame], *inputs: Path, **trigger: Any
    ) -> StreamingQuery:
        reader = spark.readStream.schema("user string, at timestamp, amount int").option("maxFilesPerTrigger", 1)
        writer = job(*(reader.json(str(folder)) for folder in inputs)).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(**trigger)
        return writer.start(str(self.output))

    def files(self) -> dict[Path, tuple[bytes, int]]:
        """Return all files of the run, each with its content and the time of its last change."""
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in self.folder.rglob("*") if path.is_file()}

    def copy(self, folder: Path) -> Run:
        """Return a copy, whose sink names the copied files."""
        shutil.copytree(self.output, folder / "out")
        shutil.copytree(self.checkpoint, folder / "cp")
        shutil.copytree(self.input, folder / "in")
        for log in [*(folder / "out/_spark_metadata").iterdir(), *(folder / "cp/sources/0").iterdir()]:
            if not log.name.startswith("."):
                log.write_text(log.read_text().replace(quote(str(self.folder)), quote(str(folder))))
                (log.parent / f".{log.name}.crc").unlink(missing_ok=True)
        return Run(folder)

    def change(self, edit: Edit) -> tuple[int, dict[str, Any]]:
        """Change the rows of one file of the output, those of u3 last; return its batch and its first row as it was."""
        return next(self._changed(edit))

    def _changed(self, edit: Edit) -> Iterator[tuple[int, dict[str, Any]]]:
        for log in sorted((self.output / "_spark_metadata").iterdir()):
            if log.name.isdecimal() and int(log.name) > 3:
                for entry in map(json.loads, log.read_text().splitlines()[1:]):
                    path = Path(unquote(entry["path"]).removeprefix("file://"))
                    table = pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read().cast(WRITTEN)
                    if table.num_rows:
                        rows = sorted(table.to_pylist(), key=lambda row: row["user"] == "u3")
                        pq.write_table(pa.Table.from_pylist(edit([*map(dict, rows)]), WRITTEN), path)
                        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
                        yield int(log.name), rows[0]

    def forget(self, batches: int) -> Run:
        """Remove the logs of the first batches, as Spark does but for the last hundred."""
        for log in ("offsets", "commits"):
            for number in range(batches):
                (self.checkpoint / log / str(number)).unlink(missing_ok=True)
        return self

    def judged(self, expect: Any = RULE, job: Any = totals, **more: Any) -> JobReport:
        return replay(self.checkpoint, job, CLICKS, output=str(self.output), expect=expect, **more)


@pytest.fixture(scope="module")
def right(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A right run of eight batches, whose logs are whole."""
    return Run(tmp_path_factory.mktemp("right run")).run(spark, totals, 8)


@pytest.fixture(scope="module")
def cut(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A right run of 12 batches, whose checkpoint has the logs of the last few."""
    settings = {"spark.sql.streaming.minBatchesToRetain": "4", "spark.sql.streaming.fileSink.log.cleanupDelay": "0"}
    return Run(tmp_path_factory.mktemp("cut")).run(spark, totals, 12, **settings)


@pytest.mark.parametrize("expect", [RULE, SQL, None, as_batch()], ids=["rule", "sql", "itself", "batch"])
@pytest.mark.in_ci("rule", "sql", "itself")
def test_a_right_run_conforms(right: Run, expect: Any) -> None:
    report = right.judged(expect)
    assert read(report) == 240
    assert written(report) > 5
    assert (report.comparing == "batches") == (expect in (RULE, None))


def add_one(rows: list[dict[str, Any]], one: int = 1) -> list[dict[str, Any]]:
    return [{**rows[0], "total": rows[0]["total"] + one}, *rows[1:]]


@pytest.mark.parametrize("expect", [RULE, SQL, None], ids=["rule", "sql", "itself"])
def test_a_changed_row_is_found_with_its_batch_and_key(
    right: Run, expect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_narrowed = expect is RULE  # the others are narrowed by the same loop
    monkeypatch.setattr(narrowing, "SHRINKING_S", 600 if is_narrowed else 0)  # on a busy machine, too
    run = right.copy(tmp_path / "run")
    batch, row = run.change(add_one)
    with pytest.raises(Violated) as found:
        run.judged(expect)
    first = str(found.value).splitlines()[0]
    assert f"in batch {batch}" in first
    assert f"user {row['user']!r}" in first
    assert f"total {row['total'] + 1}" in first
    assert f"total {row['total']}" in first.partition("expects")[2]
    assert "the sink lost or repeated rows" in str(found.value)
    if is_narrowed:  # the rows of the window, and few others
        arrived = [one.row["at"] for one in found.value.counterexample.history.arrivals]
        start = row["window"]["start"]
        in_window = sum(start <= at < start + timedelta(hours=1) for at in arrived)
        assert 0 < in_window >= len(arrived) / 2


@pytest.mark.parametrize(
    ("edit", "says"),
    [(lambda rows: [rows[0], *rows], " twice, and "), (lambda rows: rows[1:], "wrote no such row")],
    ids=["repeated", "lost"],
)
def test_a_row_that_the_sink_repeats_or_loses_is_found(
    unshrunk: None, right: Run, tmp_path: Path, edit: Callable[[list[Any]], list[Any]], says: str
) -> None:
    run = right.copy(tmp_path / "run")
    batch, row = run.change(edit)
    for expect in (RULE, None):
        with pytest.raises(Violated, match=f"in batch {batch} ") as found:
            run.judged(expect)
        assert says in str(found.value)
        assert f"user {row['user']!r}" in str(found.value)


def test_a_wrong_job_is_wrong_here_too_over_few_rows(spark: SparkSession, tmp_path: Path) -> None:
    run = Run(tmp_path / "run").run(spark, largest, 6)
    with pytest.raises(Violated) as found:
        run.judged(job=largest, folder=tmp_path / "counterexamples")
    assert "The job is wrong here, too" in str(found.value)
    assert len(found.value.counterexample.history.arrivals) <= 3
    assert found.value.path is not None
    with pytest.raises(Violated, match="another version ran"):
        run.judged(expect=None, job=totals)


def test_a_run_whose_first_logs_are_gone(unshrunk: None, cut: Run, tmp_path: Path) -> None:
    assert not (cut.checkpoint / "offsets/0").exists()
    for expect in (RULE, SQL):
        report = cut.judged(expect)
        assert read(report) == 360
        assert report.comparing == "end"
        assert "Not checked: 1 key with rows " in str(report)
    run = cut.copy(tmp_path / "run")
    _, row = run.change(add_one)
    with pytest.raises(Violated, match=f"user '{row['user']}', total {row['total'] + 1}"):
        run.judged()


def test_a_batch_that_is_not_committed_is_left_out(right: Run, tmp_path: Path) -> None:
    run = right.copy(tmp_path / "run")
    commits = sorted((run.checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for commit in commits[-3:]:
        commit.unlink()
    report = run.judged()
    assert f"in batches 0 to {len(commits) - 4}:" in str(report)
    assert 0 < written(report) < written(right.judged())


def test_a_running_query_and_its_files_are_left_as_they_are(right: Run, spark: SparkSession, tmp_path: Path) -> None:
    run = right.copy(tmp_path / "run")
    with with_settings(spark, PLAIN):
        query = run.start(spark, totals, run.input, processingTime="1 second")
    try:
        query.processAllAvailable()
        before = run.files()
        assert read(run.judged()) == 240
        assert query.isActive
        assert run.files() == before
        assert query.id == json.loads((run.checkpoint / "metadata").read_text())["id"]
    finally:
        query.stop()


def test_the_output_as_a_function_is_compared_at_the_end(unshrunk: None, right: Run) -> None:
    def table(spark: SparkSession) -> DataFrame:
        return spark.read.parquet(str(right.output)).select("user", "window.*", "total", F.lit(1).alias("loaded"))

    report = replay(right.checkpoint, totals, CLICKS, output=table, expect=RULE)
    assert report.comparing == "end"
    with pytest.raises(Violated, match=r"the run of totals .* wrote no such row"):
        replay(right.checkpoint, totals, CLICKS, output=lambda spark: table(spark).limit(3), expect=RULE)


@pytest.mark.weekly("CI asks of one source whose first logs are gone")
def test_two_sources_joined_are_judged_if_the_first_logs_are_there(
    unshrunk: None, spark: SparkSession, tmp_path: Path
) -> None:
    write_inputs(tmp_path / "clicks", 5)
    write_inputs(tmp_path / "views", 5)

    def both(clicks: DataFrame, views: DataFrame) -> DataFrame:
        left = clicks.withWatermark("at", "10 minutes").alias("left")
        right = views.withWatermark("at", "10 minutes").alias("right")
        same = F.expr("left.user = right.user AND right.at BETWEEN left.at AND left.at + INTERVAL 5 MINUTES")
        return left.join(right, same).select(
            "left.user", F.col("left.at").alias("clicked"), F.col("right.at").alias("viewed")
        )

    run = Run(tmp_path).run_on(spark, both, tmp_path / "clicks", tmp_path / "views")
    expect = sql("""
        SELECT c."user", c."at" AS clicked, v."at" AS viewed FROM clicks c JOIN views v
        ON c."user" = v."user" AND v."at" BETWEEN c."at" AND c."at" + INTERVAL 5 MINUTES
    """)
    wrong = sql(expect.statement.replace("5 MINUTES", "4 MINUTES"))
    report = replay(run.checkpoint, both, CLICKS, VIEWS, output=str(run.output), expect=expect)
    assert read(report) == 300
    assert written(report) > 50
    with pytest.raises(Violated):
        replay(run.checkpoint, both, CLICKS, VIEWS, output=str(run.output), expect=wrong)
    run.forget(3)
    with pytest.raises(Inconclusive, match=r"no longer has the logs from before batch 3, .*minBatchesToRetain keep"):
        replay(run.checkpoint, both, CLICKS, VIEWS, output=str(run.output), expect=expect)


def test_a_run_goes_by_the_watermark_policy_of_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """By the least of its watermarks the query would have emitted nothing, for one input is far behind."""
    write_inputs(tmp_path / "clicks", 6)
    write_inputs(tmp_path / "views", 1)

    def both(clicks: DataFrame, views: DataFrame) -> DataFrame:
        watermarked = clicks.withWatermark("at", "10 minutes").union(views.withWatermark("at", "10 minutes"))
        return watermarked.groupBy("user", F.window("at", "1 hour")).agg(F.sum("amount").alias("total"))

    policy = {"spark.sql.streaming.multipleWatermarkPolicy": "max"}
    run = Run(tmp_path).run_on(spark, both, tmp_path / "clicks", tmp_path / "views", **policy)
    assert written(replay(run.checkpoint, both, CLICKS, VIEWS, output=str(run.output))) > 0


def test_a_delta_table(right: Run, spark: SparkSession, tmp_path: Path) -> None:
    """The log of a Delta table, as Spark's sink writes it, says which batch has added which files."""
    run = right.copy(tmp_path / "run")
    query = json.loads((run.checkpoint / "metadata").read_text())["id"]
    (run.output / "_delta_log").mkdir()
    for version, log in enumerate(
        sorted(path for path in (run.output / "_spark_metadata").iterdir() if path.name.isdecimal())
    ):
        entries = [json.loads(line)["path"] for line in log.read_text().splitlines()[1:]]
        actions = [{"txn": {"appId": query, "version": int(log.name)}}]
        actions += [{"add": {"path": path.rpartition("/")[2], "dataChange": True}} for path in entries]
        (run.output / f"_delta_log/{version:020}.json").write_text("\n".join(map(json.dumps, actions)))
    shutil.rmtree(run.output / "_spark_metadata")
    assert run.judged().comparing == "batches"


class Table:
    """A Delta table of the files that a run has read, a version a file, and the run as if it had read the table.

    Each version has a file for each user, who is no column in it. At the first two versions the query began; the fifth
    moves the rows of the first file to another.
    """

    def __init__(self, run: Run, spark: SparkSession) -> None:
        self.run, self.folder = run, run.folder / "table é"
        (self.folder / "_delta_log").mkdir(parents=True)
        kinds = {"user": "string", "at": "timestamp", "amount": "integer"}
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
        schema = {"type": "struct", "fields": fields}
        metadata = {"id": "t1", "schemaString": json.dumps(schema), "partitionColumns": ["user"], "configuration": {}}
        versions = [self.added(number, path) for number, path in enumerate(sorted(run.input.iterdir()))]
        versions[0].insert(0, {"metaData": metadata})
        first = versions[0][1]["add"]
        shutil.copy(self.folder / unquote(first["path"]), self.folder / "moved.parquet")
        moved = {"add": {**first, "path": "moved.parquet", "dataChange": False}}
        versions.insert(4, [{"remove": {"path": first["path"], "dataChange": False}}, moved])
        for version, actions in enumerate(versions):
            self.log(version).write_text("\n".join(map(json.dumps, actions)))
        ends = [(1, 3, True), (1, 7, True), *((version, -1, False) for version in (3, 4, 6, 7, 8, 9))]
        for offsets in (run.checkpoint / "offsets").glob("[0-9]*"):
            *head, end = offsets.read_text().splitlines()
            names = ("reservoirVersion", "index", "isStartingVersion")
            of_table = dict(zip(names, ends[json.loads(end)["logOffset"]], strict=True))
            offset = {"sourceVersion": 1, "reservoirId": "t1", **of_table}
            offsets.write_text("\n".join([*head, json.dumps(offset)]))
            (offsets.parent / f".{offsets.name}.crc").unlink(missing_ok=True)

    def log(self, version: int) -> Path:
        return self.folder / f"_delta_log/{version:020}.json"

    def added(self, number: int, path: Path) -> list[dict[str, Any]]:
        """Write the rows of a file to one file a user, and return what adds these."""
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        actions: list[dict[str, Any]] = []
        for user in USERS:
            name = f"user={user}/part {number}.parquet"
            (self.folder / name).parent.mkdir(exist_ok=True)
            columns = {
                "at": [datetime.fromisoformat(row["at"]) for row in rows if row["user"] == user],
                "amount": [row["amount"] for row in rows if row["user"] == user],
            }
            table = pa.table(columns, pa.schema([("at", TIME), ("amount", pa.int32())]))
            pq.write_table(table, self.folder / name)
            add = {"path": quote(name), "partitionValues": {"user": user}, "modificationTime": number}
            actions.append({"add": {**add, "dataChange": True}})
        return actions

    def judged(self, **options: str) -> JobReport:
        reads = {"format": "delta", "path": str(self.folder), **options}
        return self.run.judged(reads={"clicks": reads})


def test_a_run_that_reads_a_delta_table(unshrunk: None, right: Run, spark: SparkSession, tmp_path: Path) -> None:
    """The log and the offsets are made by Delta's documented form; the weekly test has those that Delta writes."""
    table = Table(right.copy(tmp_path / "run"), spark)
    report = table.judged()
    assert read(report) == 240
    assert report.comparing == "batches"
    _, row = table.run.change(add_one)
    with pytest.raises(Violated, match=f"total {row['total'] + 1}"):
        table.judged()
    file, aside = next((table.folder / "user=u1").glob("part 0*")), tmp_path / "aside"
    file.rename(aside)  # as VACUUM does
    with pytest.raises(BadInput, match="input clicks can't be read again"):
        table.judged()
    aside.rename(file)
    table.run.forget(1)
    with pytest.raises(Inconclusive, match=r"no longer has the logs from before batch 1, .*minBatchesToRetain keep"):
        table.judged()


def test_what_cannot_be_read_of_a_delta_table_is_named(
    unshrunk: None, right: Run, spark: SparkSession, tmp_path: Path
) -> None:
    table = Table(right.copy(tmp_path / "run"), spark)
    with pytest.raises(BadInput, match=r"was read from a Delta table: give its location, reads="):
        table.run.judged()
    with pytest.raises(BadInput, match="give the number of the version"):
        table.judged(startingVersion="latest")
    with pytest.raises(BadInput, match="isn't a Delta table"):
        table.judged(path=str(tmp_path))
    first, text = table.log(0), table.log(0).read_text()
    for old, new, says in (
        ('"id": "t1"', '"id": "t2"', "is the Delta table t2, but the query has read the table t1"),
        ('"configuration": {}', '"configuration": {"delta.columnMapping.mode": "name"}', "maps the names of its colum"),
        ("amount", "number", "has the columns user, at, number, but not amount"),
        ('"dataChange": true', '"dataChange": true, "deletionVector": {"storageType": "u"}', "marked as removed by a"),
    ):
        first.write_text(text.replace(old, new))
        with pytest.raises(BadInput, match=says):
            table.judged()
    first.write_text(text)
    removed = {"remove": {"path": "user%3Du1/part%200.parquet", "dataChange": True}}
    table.log(5).write_text(json.dumps(removed) + "\n" + table.log(5).read_text())
    with pytest.raises(BadInput, match=r'changes rows, .* such as "ignoreChanges": "true"'):
        table.judged()
    assert read(table.judged(ignoreChanges="true")) == 240
    with pytest.raises(Violated):
        table.judged(skipChangeCommits="true")
    first.unlink()
    with pytest.raises(BadInput, match="no longer contains version 0 of the table"):
        table.judged()


@pytest.mark.weekly("PySpark 4.2 in an environment of its own, and the jars of Delta")
def test_a_run_that_reads_a_table_of_deltas_own(tmp_path: Path) -> None:
    delta_run(tmp_path)
    clicks = Input("user string, at timestamp, amount int, day date", key="user", name="clicks")
    reads = {"clicks": {"format": "delta", "path": f"{tmp_path}/clicks é"}}
    run = Run(tmp_path)
    report = replay(run.checkpoint, totals, clicks, output=str(run.output), expect=RULE, reads=reads)
    assert read(report) == 26 * 30
    assert written(report) > 20
    run.change(add_one)
    with pytest.raises(Violated):
        replay(run.checkpoint, totals, clicks, output=str(run.output), expect=RULE, reads=reads)


def delta_run(folder: Path) -> None:
    """Run a query on a Delta table, or skip the test."""
    try:
        python = python_of("4.2.1")
        jars = kafka_jars(Coordinates("io.delta", "delta-spark_4.2_2.13", "4.4.0"))
    except StreamproofError as missing:
        pytest.skip(str(missing))
    needed = [jar for jar in jars.glob("*.jar") if jar.name.startswith(("delta-", "unitycatalog-", "Roaring", "shims"))]
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, needed))} pyspark-shell"}
    program = Path(__file__).with_name("run_on_delta.py")
    done = subprocess.run(
        [python, program, folder], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda run: shutil.rmtree(run.checkpoint), "isn't a checkpoint of a streaming query"),
        (lambda run: shutil.rmtree(run.checkpoint / "commits"), "has committed no batch yet"),
        (lambda run: (run.checkpoint / "offsets/8").unlink(), "offsets/8 is missing: copy the whole"),
        (lambda run: (run.checkpoint / "offsets/3").write_text("v9\n{}\n{}"), "a newer Spark wrote it"),
        (lambda run: (run.checkpoint / "offsets/3").write_text("v1\n"), "is truncated"),
        (lambda run: (run.checkpoint / "sources/0/2").unlink(), "sources/0/2 is missing, but lists files"),
        (lambda run: next(run.input.glob("*003*")).unlink(), "input clicks can't be read again"),
        (lambda run: shutil.rmtree(run.output / "_spark_metadata"), "give output= a function"),
    ],
)
def test_what_cannot_be_read_is_named(right: Run, tmp_path: Path, break_it: Callable[[Run], Any], says: str) -> None:
    run = right.copy(tmp_path / "run")
    break_it(run)
    for hidden in run.checkpoint.rglob(".*.crc"):
        hidden.unlink()
    with pytest.raises(BadInput, match=says):
        run.judged()


def test_another_jobs_checkpoint_is_refused(right: Run) -> None:
    with pytest.raises(BadInput, match="belongs to a query with 1 source, but the job has 2"):
        replay(right.checkpoint, lambda clicks, views: clicks.union(views), CLICKS, VIEWS, output=str(right.output))
    with pytest.raises(BadInput, match="reads has 'view'"):
        right.judged(reads={"view": "json"})


def test_a_run_without_rows_shows_nothing(right: Run, spark: SparkSession, tmp_path: Path) -> None:
    early = Run(tmp_path / "early").run(spark, totals, 2)
    with pytest.raises(Inconclusive, match="has no output, and none is expected"):
        early.judged(SQL)
    run = right.copy(tmp_path / "run")
    for path in run.input.iterdir():
        path.write_text("")
    with pytest.raises(Inconclusive, match="read no rows"):
        run.judged()


@pytest.mark.weekly("a million rows take minutes")
def test_a_wrong_window_among_a_million_rows_is_found(spark: SparkSession, tmp_path: Path) -> None:
    """It takes some two minutes on two cores, of the five that it may take."""
    run, batches, each = Run(tmp_path / "run"), 20, 50_000
    run.input.mkdir(parents=True)
    for number in range(batches):
        draw = random.Random(number)
        times = [BEGIN + timedelta(seconds=number * 1800 + draw.randrange(2000)) for _ in range(each)]
        rows = {"user": [f"u{draw.randrange(5000)}" for _ in times], "at": times, "amount": [number] * each}
        path = run.input / f"{number:03}.parquet"
        pq.write_table(pa.table(rows, pa.schema([("user", pa.string()), ("at", TIME), ("amount", pa.int32())])), path)
        os.utime(path, (1e9 + number, 1e9 + number))
    with with_settings(spark, {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"}):
        reader = spark.readStream.schema("user string, at timestamp, amount int").option("maxFilesPerTrigger", 1)
        writer = totals(reader.parquet(str(run.input))).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(run.checkpoint)).trigger(availableNow=True)
        writer.start(str(run.output)).awaitTermination()
    batch, row = run.change(add_one)
    started = time.monotonic()
    with pytest.raises(Violated) as found:
        run.judged()
    print(f"{time.monotonic() - started:.0f} s")
    assert f"in batch {batch} " in str(found.value)
    assert f"wrote user {row['user']!r}, total {row['total'] + 1}" in str(found.value)


@pytest.mark.weekly("a broker, and Spark's connector in a process of its own")
def test_a_run_that_reads_kafka() -> None:
    said = said_with_kafka(Path(__file__).with_name("run_on_kafka.py"))
    assert "in batches 0 to 7: 160 rows read, 9 rows written. Compared: the rows of each batch" in said["right"]
    assert "Not checked: 1 record with a payload that can't be parsed" in said["right"]
    assert "wrote user 'u0', total 273" in said["wrong"]
    for which in ("right without records", "wrong without records"):
        assert "input orders can't be read again" in said[which]
    assert "no longer has the logs from before batch 2" in said["right without logs"]
