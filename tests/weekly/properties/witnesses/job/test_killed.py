"""A real SIGKILL of a query's process leaves what the check's planned crash leaves, at the same moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import killed_query
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from streamproof import Input, Sink
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.packing import tables_alone
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.running import Runner
from streamproof.properties.witnesses.run_options import BEFORE, Crash, RunOptions

pytestmark = pytest.mark.weekly("each sink's query has two processes of its own")

NOON = datetime(2024, 7, 15, 12, tzinfo=UTC)
CLICKS = Input("user string, amount bigint, at timestamp", key="user", name="clicks")
SOURCES = [given.source for given in resolve_all([CLICKS])]
BATCHES = [[("a", 1), ("b", 2)], [("a", 3), ("c", 4)], [("b", 5)]]


def start_of(name: str, clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
    return killed_query.started(clicks.select("user", "amount"), name, target, checkpoint)


def sink_of(name: str) -> Sink:
    def start(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        return start_of(name, clicks, target, checkpoint)

    if name in ("appended", "by_batch", "summed"):
        return Sink.parquet(start)
    return Sink.sqlite(start, table="ledger")


def by_a_planned_crash(name: str, crash: Crash) -> Counter[tuple[str, int]]:
    rows = [tuple(Arrival("clicks", {"user": u, "amount": n, "at": NOON}) for u, n in batch) for batch in BATCHES]
    tables = tables_alone(JobHistory(tuple(rows)), SOURCES)
    run = RunOptions(crash_in=(crash,), is_sink=True, trigger="available_now")
    (found,) = Runner(sink_of(name), SOURCES).run(tables, (), run).batches
    return Counter((row["user"], row["amount"]) for row in found)


def by_sigkill(name: str, folder: Path) -> Counter[tuple[str, int]]:
    (folder / "input").mkdir()
    for number, batch in enumerate(BATCHES):
        path = folder / "input" / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist([{"user": user, "amount": amount} for user, amount in batch]), path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    command = [sys.executable, killed_query.__file__, str(folder), name]
    codes = [
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=600).returncode for _ in "12"
    ]
    assert codes == [-signal.SIGKILL, 0]
    store = sink_of(name)._store
    assert store is not None
    return Counter((row["user"], row["amount"]) for row in store.rows(str(folder / "result")))


@pytest.mark.parametrize(("name", "times"), [("appended", 2), ("by_batch", 1), ("inserted", 2), ("replaced", 1)])
def test_a_sigkill_and_a_planned_crash_leave_the_same(name: str, times: int, tmp_path: Path) -> None:
    expected = Counter(row for batch in BATCHES for row in batch)
    if times == 2:
        expected += Counter(BATCHES[1])
    assert by_sigkill(name, tmp_path) == expected == by_a_planned_crash(name, Crash(1))


def test_a_sigkill_after_a_commit_loses_no_state_though_no_snapshot_of_it_is_written(tmp_path: Path) -> None:
    expected = Counter([("a", 1), ("b", 2), ("a", 4), ("c", 4), ("b", 7)])
    assert by_sigkill("summed", tmp_path) == expected == by_a_planned_crash("summed", Crash(2, True, BEFORE))
