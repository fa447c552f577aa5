"""A user's sink under the faults that no crash shows: a wrong one is found by each, and a right one withstands all."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from check_job_setup import CLICKS, but_for
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from streamproof import JobReport, Sink, Violated, invariants
from streamproof.properties.laws.metamorphic.sink_fault import SINK_FAULTS

pytestmark = pytest.mark.weekly("each fault restarts several queries")
TABLES = """
CREATE TABLE IF NOT EXISTS result (user, amount, at);
CREATE TABLE IF NOT EXISTS keyed (user, amount, at, PRIMARY KEY (user, amount, at));
CREATE TABLE IF NOT EXISTS done (batch);
CREATE TABLE IF NOT EXISTS once (batch PRIMARY KEY);
"""
Rows = list[tuple[Any, ...]]
ALREADY: set[tuple[str, int]] = set()


def insert(database: sqlite3.Connection, rows: Rows) -> None:
    database.executemany("INSERT INTO result VALUES (?, ?, ?)", rows)


def by_key(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    database.executemany("INSERT OR IGNORE INTO keyed VALUES (?, coalesce(?, -1), ?)", rows)


def numbered(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    if not database.execute("SELECT 1 FROM once WHERE batch = ?", [batch]).fetchall():
        database.execute("INSERT INTO once VALUES (?)", [batch])
        insert(database, rows)


def checked_before(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    database.execute("COMMIT")
    found = database.execute("SELECT 1 FROM done WHERE batch = ?", [batch]).fetchall()
    if not found:
        database.execute("BEGIN")
        database.execute("INSERT INTO done VALUES (?)", [batch])
        insert(database, rows)


def noted_in_memory(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    if (target, batch) not in ALREADY:
        ALREADY.add((target, batch))
        numbered(database, rows, batch, target)


def swallowing(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    with contextlib.suppress(sqlite3.Error):
        numbered(database, rows, batch, target)
        database.execute("COMMIT")


def sqlite_sink(write: Callable[[sqlite3.Connection, Rows, int, str], None], table: str = "result") -> Sink:
    def start(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        def of_batch(rows: DataFrame, batch: int) -> None:
            found = [(row["user"], row["amount"], str(row["at"])) for row in rows.collect()]
            with contextlib.closing(sqlite3.connect(target, timeout=1, isolation_level=None)) as database:
                database.executescript(TABLES)
                database.execute("BEGIN")
                write(database, found, batch, target)
                if database.in_transaction:
                    database.execute("COMMIT")

        return clicks.writeStream.foreachBatch(of_batch).option("checkpointLocation", checkpoint).start()

    return Sink.sqlite(start, table=table)


def in_files(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
    return clicks.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(target)


def overwritten(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
    def write(rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(f"{target}/batch={batch}")

    return clicks.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).start()


def checked(sink: Sink, faults: Sequence[str]) -> JobReport:
    return invariants(sink, CLICKS, histories=20, without=but_for("a restart"), faults=faults, seconds=300)


WRONG = [
    ("lost-connection", sqlite_sink(noted_in_memory), "lost"),
    ("full-disk", sqlite_sink(swallowing), "lost"),
    ("zombie", sqlite_sink(checked_before), "doubled"),
    ("two-queries", sqlite_sink(numbered), "lost"),
    ("retention", Sink.parquet(in_files), "stuck"),
    ("old-checkpoint", sqlite_sink(numbered), "lost"),
    ("deleted-checkpoint", Sink.parquet(overwritten, without=["batch"]), "doubled"),
    ("deleted-checkpoint-latest", sqlite_sink(numbered), "lost"),
]


@pytest.mark.parametrize(("fault", "sink", "verdict"), WRONG, ids=[one[0] for one in WRONG])
def test_a_wrong_sink_is_found_by_each_fault(fault: str, sink: Sink, verdict: str) -> None:
    with pytest.raises(Violated, match=rf"(?s)violated: under the fault {fault} .*Its rows: [a-z, ]*{verdict}"):
        checked(sink, [fault])


def test_a_right_sink_withstands_all_faults_that_it_can_undergo() -> None:
    report = checked(sqlite_sink(by_key, "keyed"), ["all"])
    played = [name for name, law in SINK_FAULTS.items() if law.of_jobs in report.laws]
    assert played == [name for name in SINK_FAULTS if name != "retention"]
    assert "the fault retention: each of its files is also written by later batches" in report.not_checked


def test_files_of_each_batch_outlive_the_removal_of_older_ones() -> None:
    report = checked(Sink.parquet(overwritten, without=["batch"]), ["retention", "lost-connection"])
    assert "the fault retention" in report.laws
