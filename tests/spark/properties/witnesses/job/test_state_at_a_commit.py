"""What Spark has saved of a query's state where its process can die, as `docs/sinks.md` says.

The state of each partition is there before the function of `foreachBatch` returns, and so before the commit. What is
missing then, Spark's snapshots of the state, is no part of what a restart needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from streamproof import Input, Sink
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.packing import tables_alone
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.query.runnable import Earlier
from streamproof.properties.witnesses.job.running import Runner
from streamproof.properties.witnesses.run_options import BEFORE, Crash, RunOptions
from streamproof.properties.witnesses.spark.session import PROVIDER

NOON = datetime(2024, 7, 15, 12, tzinfo=UTC)
CLICKS = Input("user string, at timestamp", key="user", name="clicks")
SOURCES = [given.source for given in resolve_all([CLICKS])]
HISTORY = JobHistory(tuple(tuple(Arrival("clicks", {"user": user, "at": NOON}) for user in "abcd") for _ in range(3)))
STORES = "spark.sql.streaming.stateStore."
CHANGELOG = {f"{STORES}rocksdb.changelogCheckpointing.enabled": "true", f"{STORES}minDeltasForSnapshot": "1"}
ON_DISK = {PROVIDER: "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"}
weekly = pytest.mark.weekly("Spark's other ways to save state, each in a query of its own")


def start(clicks: DataFrame, folder: Path) -> StreamingQuery:
    def write(rows: DataFrame, batch: int) -> None:
        found = [row.asDict() for row in rows.collect()]
        (folder / f"rows {batch}").write_text(json.dumps(found))
        of_partitions = [path for path in (folder / "checkpoint/state/0").iterdir() if path.name.isdigit()]
        names = [sorted(path.name for path in one.iterdir() if path.is_file()) for one in of_partitions]
        commits = sorted(path.name for path in (folder / "checkpoint/commits").glob("[0-9]*"))
        (folder / f"seen {batch}").write_text(json.dumps([names, commits]))

    writer = clicks.groupBy("user").count().writeStream.outputMode("update").foreachBatch(write)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


def read(folder: Path) -> list[Mapping[str, object]]:
    """Return the rows of the last micro-batch with data, with what was seen at the end of each."""
    seen = [path.read_text() for path in sorted(folder.glob("seen *"))]
    return [{**row, "seen": seen} for row in json.loads((folder / "rows 2").read_text())]


@pytest.mark.parametrize(
    ("settings", "kind", "snapshots"),
    [
        (CHANGELOG, "changelog", "zip"),
        pytest.param({f"{STORES}rocksdb.changelogCheckpointing.enabled": "false"}, "zip", "none", marks=weekly),
        pytest.param({**CHANGELOG, f"{STORES}checkpointFormatVersion": "2"}, "changelog", "zip", marks=weekly),
        ({}, "delta", "snapshot"),
        pytest.param(ON_DISK, "delta", "snapshot", marks=weekly),
    ],
    ids=["a log of changes", "RocksDB's files", "a log of changes, names unique", "without settings", "deltas"],
)
def test_a_query_goes_on_from_a_commit_by_the_state_that_was_saved_before_it_without_a_snapshot(
    settings: Mapping[str, str], kind: str, snapshots: str
) -> None:
    run = RunOptions(
        settings=settings, crash_in=(Crash(2, True, BEFORE),), is_sink=True, trigger="available_now", mode="update"
    )
    (rows,) = Runner(Sink(start, read), SOURCES).run(tables_alone(HISTORY, SOURCES), (), run).batches
    assert sorted((row["user"], row["count"]) for row in rows) == [(user, 3) for user in "abcd"]
    for batch, text in enumerate(rows[0]["seen"][:2]):
        partitions, commits = json.loads(text)
        assert len(partitions) == 2
        for names in partitions:
            saved = [name for name in names if name.startswith((f"{batch + 1}.", f"{batch + 1}_")) and kind in name]
            assert saved, (batch, names)
            assert not [name for name in names if name.endswith(f".{snapshots}")], (batch, names)
        assert commits == [str(number) for number in range(batch)]


def test_two_versions_of_a_job_keep_their_state_in_rocksdb_which_serves_every_operator() -> None:
    run = RunOptions(stop_after=(1,), is_sink=True, trigger="available_now", mode="update")
    runner = Runner(Sink(start, read), SOURCES, earlier=Earlier(Sink(start, read), "update"))
    (rows,) = runner.run(tables_alone(HISTORY, SOURCES), (), run).batches
    assert sorted((row["user"], row["count"]) for row in rows) == [(user, 3) for user in "abcd"]
    partitions, _ = json.loads(rows[0]["seen"][-1])
    names = [name for of_partition in partitions for name in of_partition]
    assert names
    assert not [name for name in names if name.endswith((".delta", ".snapshot"))], names
