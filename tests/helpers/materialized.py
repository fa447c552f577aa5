"""Batches handed to a target by hand, and what a reader of it sees; tests of several files use them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession
from streamproof.spark_impl.sinks.materialize import Materializer, Target
from streamproof.spark_impl.sinks.tables import DuckDBTable, ParquetTable

KEYS = "country string, user string"
WINDOW = "window struct<start: timestamp, end: timestamp>"
REST = "timestamp timestamp, change string, reason string, cause bigint, ordinal int"
NUMBERS = f"{KEYS}, {WINDOW}, value bigint, {REST}"


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def change(user: str | None, value: Any, ordinal: int = 0, window: tuple[int, int] | None = None) -> tuple[Any, ...]:
    """One row of a changelog; without a value a tombstone."""
    bounds = window and tuple(map(at, window))
    return ("de", user, bounds, value, at(7), "tombstone" if value is None else "update", None, None, ordinal)


class ByHand:
    """Plays Spark's part: hands over batches as Spark does, without the cost of a streaming query."""

    def __init__(
        self, spark: SparkSession, checkpoint: Path, to: Any, result: str = "table", schema: str = NUMBERS
    ) -> None:
        self.spark, self.checkpoint, self.schema = spark, checkpoint, schema
        self.sink = Materializer(to, str(checkpoint), result, ("country", "user"))
        (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": f"query of {checkpoint.name}"}))

    def write(self, batch: int, *changes: tuple[Any, ...], offsets: str = "") -> None:
        """Hand over a batch, which read what the name `offsets` stands for."""
        (self.checkpoint / "offsets" / str(batch)).write_text(f"v1\n{batch} {offsets}")
        self.sink.write(self.spark.createDataFrame(list(changes), self.schema), batch)


class Crash(Exception):
    """What ends a run between two steps."""


def rows_of(spark: SparkSession, to: Target) -> list[dict[str, Any]]:
    """What a reader of the table sees."""
    if isinstance(to, ParquetTable):
        rows = to.read(spark).toArrow().to_pylist()
    else:
        assert isinstance(to, DuckDBTable)
        with duckdb.connect(str(to.database)) as connection:
            rows = connection.sql(f'FROM "{to.name}"').arrow().read_all().to_pylist()
    return sorted(rows, key=repr)


def values_of(spark: SparkSession, to: Target) -> dict[str, Any]:
    return {row["user"]: row["value"] for row in rows_of(spark, to)}


def bounds(row: dict[str, Any]) -> tuple[int, int]:
    return ms(row["window"]["start"]), ms(row["window"]["end"])


def ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
