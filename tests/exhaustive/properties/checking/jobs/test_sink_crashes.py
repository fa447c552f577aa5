"""Sinks that die in the middle of their work: a wrong one is found where it dies, and a right one isn't condemned."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from check_job_setup import CLICKS, but_for
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StreamingQuery
from streamproof import Sink, Violated, invariants
from streamproof.properties.witnesses.run_options import WITHIN

MIDDLE = (
    r"(?s)violated: dying in batch \d.*, in the middle of its output, and started.* The query died before line \d+ of "
)
TABLES = """
CREATE TABLE IF NOT EXISTS ledger (user, amount, batch);
CREATE TABLE IF NOT EXISTS seen (user, batch);
CREATE TABLE IF NOT EXISTS done (batch UNIQUE);
CREATE VIEW IF NOT EXISTS result AS SELECT 'ledger' AS name, user, amount FROM ledger UNION ALL
    SELECT 'seen', user, 0 FROM seen;
"""
Found = list[tuple[str, int, int]]


@contextlib.contextmanager
def connected(target: str) -> Iterator[sqlite3.Connection]:
    """Give a connection that commits each statement unless a transaction begins."""
    with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as database:
        database.executescript(TABLES)
        yield database


def is_done(database: sqlite3.Connection, batch: int) -> bool:
    return bool(database.execute("SELECT 1 FROM done WHERE batch = ?", [batch]).fetchall())


def guard_first(found: Found, batch: int, target: str) -> None:
    with connected(target) as database:
        if is_done(database, batch):
            return
        database.execute("INSERT INTO done VALUES (?)", [batch])
        database.executemany("INSERT INTO ledger VALUES (?, ?, ?)", found)


def deleted_and_inserted(found: Found, batch: int, target: str) -> None:
    with connected(target) as database:
        database.execute("DELETE FROM ledger WHERE batch = ?", [batch])
        for row in found:
            database.execute("INSERT INTO ledger VALUES (?, ?, ?)", row)
        database.execute("DELETE FROM seen WHERE batch = ?", [batch])
        database.executemany("INSERT INTO seen VALUES (?, ?)", [(user, batch) for user, _, _ in found])


def in_its_partitions(rows: DataFrame, batch: int, target: str) -> None:
    def insert(found: Iterator[Row]) -> None:
        with contextlib.closing(sqlite3.connect(target, timeout=60, isolation_level=None)) as database:
            for row in found:
                database.execute("INSERT INTO ledger VALUES (?, ?, ?)", [row["user"], row["amount"], batch])

    rows.repartition(2).foreachPartition(insert)


def guarded_by_its_rows(rows: DataFrame, batch: int, target: str) -> None:
    with connected(target) as database:
        if database.execute("SELECT 1 FROM ledger WHERE batch = ?", [batch]).fetchall():
            return
    in_its_partitions(rows, batch, target)


def deleted_before(rows: DataFrame, batch: int, target: str) -> None:
    with connected(target) as database:
        database.execute("DELETE FROM ledger WHERE batch = ?", [batch])
    in_its_partitions(rows, batch, target)


def by_spark(write: Callable[[DataFrame, int, str], None]) -> Sink:
    def start(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        writer = clicks.writeStream.foreachBatch(lambda rows, batch: write(rows, batch, target))
        return writer.option("checkpointLocation", checkpoint).start()

    return Sink.sqlite(start, table="result")


def of_batches(write: Callable[[Found, int, str], None]) -> Sink:
    def start(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        def of_batch(rows: DataFrame, batch: int) -> None:
            write([(row["user"], row["amount"], batch) for row in rows.collect()], batch, target)

        return clicks.writeStream.foreachBatch(of_batch).option("checkpointLocation", checkpoint).start()

    return Sink.sqlite(start, table="result")


class Lines:
    """A writer for `foreach`: it writes the rows of a partition, or of a partition of one batch, to a file."""

    def __init__(self, target: str, appends: bool) -> None:
        self.target, self.appends = Path(target), appends

    def open(self, partition: int, number: int) -> bool:
        self.target.mkdir(exist_ok=True)
        name = f"{partition}.json" if self.appends else f"{number}-{partition}.json"
        self.lines = (self.target / name).open("a" if self.appends else "w")
        return True

    def process(self, row: Row) -> None:
        self.lines.write(json.dumps({"user": row["user"], "amount": row["amount"]}) + "\n")
        self.lines.flush()

    def close(self, error: Exception | None) -> None:
        self.lines.close()


def of_rows(appends: bool) -> Sink:
    def start(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        return clicks.writeStream.foreach(Lines(target, appends)).option("checkpointLocation", checkpoint).start()

    return Sink.json(start)


def in_files(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
    return clicks.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(target)


RIGHT = {
    "deleted and inserted": of_batches(deleted_and_inserted),
    "a file for each partition of a batch": of_rows(appends=False),
    "Spark's own files": Sink.parquet(in_files),
    "deleted and inserted by partitions": by_spark(deleted_before),
}


def checked(sink: Sink, histories: int = 20) -> Any:
    return invariants(sink, CLICKS, histories=histories, without=but_for("a crash"), seconds=600)


def test_a_sink_that_is_right_but_for_a_death_between_two_statements_is_found() -> None:
    with pytest.raises(Violated, match=MIDDLE + ".*executemany.*INSERT INTO ledger") as failure:
        checked(of_batches(guard_first))
    ((_, _, moment, step),) = failure.value.counterexample.history.variation["given"]
    assert (moment, step > 0) == ("in the middle of its output", True)


@pytest.mark.usefixtures("unshrunk")
def test_a_sink_that_is_right_but_for_a_death_within_a_write_is_found(dying_only: Callable[[str], None]) -> None:
    dying_only(WITHIN)
    with pytest.raises(Violated, match=r"(?s)violated: dying in (each )?batch.*emits no such row at the end"):
        checked(by_spark(guarded_by_its_rows))


@pytest.mark.usefixtures("unshrunk")
def test_a_writer_of_rows_that_appends_is_found() -> None:
    with pytest.raises(Violated, match=r"violated: dying in .*twice at the end"):
        checked(of_rows(appends=True))


@pytest.mark.weekly("each sink dies some thirty times: CI asks one of each kind")
def test_files_that_are_read_without_spark_s_log_are_found() -> None:
    def start(clicks: DataFrame, folder: Path) -> StreamingQuery:
        return in_files(clicks, str(folder / "out"), str(folder / "checkpoint"))

    def read(folder: Path) -> list[dict[str, Any]]:
        import pyarrow.dataset as ds

        files = sorted(map(str, (folder / "out").glob("*.parquet")))
        return ds.dataset(files).to_table().to_pylist() if files else []

    with pytest.raises(
        Violated, match=r"(?s)in the middle of its output.*The query died after the sink had written its files"
    ):
        checked(Sink(start, read))


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.in_ci("a file for each partition of a batch")
def test_a_right_sink_is_not_condemned_wherever_it_dies(name: str) -> None:
    report = checked(RIGHT[name])
    assert "a crash" in report.laws
    assert "in the middle" not in str(report)


def test_of_a_sink_that_writes_in_one_line_of_python_the_middle_is_not_checked() -> None:
    def start(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        Path(target).mkdir(exist_ok=True)
        writer = clicks.writeStream.option("checkpointLocation", checkpoint)
        return writer.foreachBatch(lambda rows, n: pq.write_table(rows.toArrow(), f"{target}/{n}.parquet")).start()

    report = checked(Sink.parquet(start))
    assert "a crash in the middle of a micro-batch's output: the sink" in str(report)
