"""Sinks as people write them: none that repeats its rows passes the invariants, and none that is right is condemned."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from check_job_setup import CLICKS, but_for
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
from streamproof import Inconclusive, Sink, Violated, invariants

HISTORIES = 20
DIED = r"violated: dying in batch \d.*, between its output and its commit"
Write = Callable[[DataFrame, int, Path], None]


def sessions(clicks: DataFrame) -> DataFrame:
    gaps = clicks.withWatermark("at", "10 minutes").groupBy("user", F.session_window("at", "30 minutes"))
    return gaps.agg(F.sum("amount").alias("total"))


def hours(clicks: DataFrame) -> DataFrame:
    return clicks.withWatermark("at", "10 minutes").groupBy("user", F.window("at", "1 hour")).count()


def rows(clicks: DataFrame) -> DataFrame:
    return clicks


def sink(job: Callable[[DataFrame], DataFrame], write: Write, mode: str = "append") -> Sink:
    def start(clicks: DataFrame, folder: Path) -> StreamingQuery:
        writer: DataStreamWriter = job(clicks).writeStream.outputMode(mode)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        return writer.foreachBatch(lambda batch, number: write(batch, number, folder)).start()

    return Sink(start, in_database if write is upsert else in_files)


def in_files(folder: Path) -> list[dict[str, Any]]:
    files = sorted(map(str, (folder / "out").rglob("*.parquet")))
    return ds.dataset(files).to_table().to_pylist() if files else []


def in_database(folder: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(folder / "table.db") as database:
        database.execute("CREATE TABLE IF NOT EXISTS hours (user, start, count)")
        found = database.execute("SELECT * FROM hours").fetchall()
    return [dict(zip(("user", "start", "count"), row, strict=True)) for row in found]


def append_without_number(batch: DataFrame, number: int, folder: Path) -> None:
    batch.write.mode("append").parquet(str(folder / "out"))


def overwrite_by_number(batch: DataFrame, number: int, folder: Path) -> None:
    batch.write.mode("overwrite").parquet(str(folder / "out" / f"batch={number}"))


def overwrite_all(batch: DataFrame, number: int, folder: Path) -> None:
    batch.write.mode("overwrite").parquet(str(folder / "out"))


def upsert(batch: DataFrame, number: int, folder: Path) -> None:
    found = [(row["user"], str(row["window"]["start"]), row["count"]) for row in batch.collect()]
    with sqlite3.connect(folder / "table.db") as database:
        database.execute("CREATE TABLE IF NOT EXISTS hours (user, start, count)")
        database.executemany("DELETE FROM hours WHERE user = ? AND start = ?", [row[:2] for row in found])
        database.executemany("INSERT INTO hours VALUES (?, ?, ?)", found)


RIGHT = {
    "rows by the batch's number": sink(rows, overwrite_by_number),
    "sessions by the batch's number": sink(sessions, overwrite_by_number),
    "updated windows by their key": sink(hours, upsert, "update"),
    "the whole table": sink(hours, overwrite_all, "complete"),
}
SOONER = ("updated windows by their key", "the whole table")
"""Sinks that are asked under the trigger with half as many micro-batches: nothing comes out of those without data."""


def test_what_violates_an_invariant_is_replayed_as_it_was_found_whatever_the_seed(tmp_path: Path) -> None:
    appending = sink(rows, append_without_number)
    with pytest.raises(Violated, match=rf"(?s){DIED}.*Saved in") as found:
        invariants(appending, CLICKS, histories=HISTORIES, seconds=600, folder=tmp_path)
    assert len(found.value.counterexample.history.variation["given"]) == 1
    with pytest.raises(Violated, match="1 of 1 histories, saved or given as examples, still differ") as again:
        invariants(appending, CLICKS, histories=HISTORIES, seed=1, folder=tmp_path)
    assert again.value.counterexample.sentence == found.value.counterexample.sentence
    (saved,) = tmp_path.glob("a-crash/*/history.jsonl")
    with pytest.raises(Violated, match="saved or given as examples"):
        invariants(appending, CLICKS, histories=HISTORIES, examples=[saved.read_text()])
    assert invariants(RIGHT["rows by the batch's number"], CLICKS, histories=HISTORIES, examples=[saved]).laws


# What a job computes under the other invariants, its own test asks; one sink is asked them all where it is replayed.
@pytest.mark.parametrize("name", [name for name in RIGHT if name != "rows by the batch's number"])
@pytest.mark.in_ci("the whole table")
def test_a_right_sink_is_not_condemned(name: str) -> None:
    given = {"trigger": "available_now"} if name in SOONER else {}
    asked = ("a restart", "a crash")
    assert {*invariants(RIGHT[name], CLICKS, histories=HISTORIES, without=but_for(*asked), **given).laws} == {*asked}


def once(clicks: DataFrame) -> DataFrame:
    return clicks.withWatermark("at", "10 minutes").dropDuplicatesWithinWatermark(["user"]).select("user")


@pytest.mark.parametrize(
    ("job", "given"),
    [
        (sessions, {"trigger": "available_now"}),
        (hours, {"mode": "update"}),
        (hours, {"mode": "complete", "trigger": "available_now"}),
        (once, {"trigger": "available_now"}),
        (sink(once, overwrite_by_number), {}),
    ],
    ids=["available now", "update", "complete", "deduplicated", "deduplicated into a sink"],
)
@pytest.mark.in_ci("deduplicated into a sink")
def test_a_right_job_keeps_the_invariants_in_each_mode(job: Any, given: Mapping[str, Any]) -> None:
    report = invariants(job, CLICKS, histories=HISTORIES, **given)
    not_asked = {"the cuts between batches", "the order within a batch"} - {*report.laws}
    assert bool(not_asked) == any("dropDuplicatesWithinWatermark" in one for one in report.not_checked)
    assert "a crash" in report.laws


def test_a_crash_that_repeats_no_rows_shows_nothing() -> None:
    nothing = sink(lambda clicks: clicks.where("false"), overwrite_by_number)
    with pytest.raises(Inconclusive, match="rows"):
        invariants(nothing, CLICKS, histories=HISTORIES)
