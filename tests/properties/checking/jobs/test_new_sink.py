"""A new kind of sink is one file, which says how rows are written and read, and one line: here, tables of SQLite."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from streamproof import Input, Sink, Violated, invariants

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive]

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")


def start(clicks: DataFrame, folder: Path, once: bool) -> StreamingQuery:
    """Append each batch in one transaction, and if it is to be written once, with the batch's number."""

    def write(batch: DataFrame, number: int) -> None:
        rows = [(number, row["user"], row["amount"]) for row in batch.collect()]
        with table(folder) as database:
            if once:
                database.execute("DELETE FROM clicks WHERE batch = ?", [number])
            database.executemany("INSERT INTO clicks VALUES (?, ?, ?)", rows)

    return clicks.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint")).start()


def read(folder: Path) -> list[dict[str, Any]]:
    with table(folder) as database:
        return [{"user": user, "amount": amount} for _, user, amount in database.execute("SELECT * FROM clicks")]


def table(folder: Path) -> sqlite3.Connection:
    database = sqlite3.connect(folder / "clicks.db")
    database.execute("CREATE TABLE IF NOT EXISTS clicks (batch, user, amount)")
    return database


ONCE = Sink(partial(start, once=True), read)
AGAIN = Sink(partial(start, once=False), read)


def test_a_sink_that_writes_each_batch_once_keeps_the_invariants() -> None:
    assert "a crash" in invariants(ONCE, CLICKS, histories=20).held


def test_a_sink_that_writes_a_repeated_batch_again_does_not() -> None:
    with pytest.raises(Violated, match=r"violated: dying in batch \d.*, between its output and its commit"):
        invariants(AGAIN, CLICKS, histories=20)
