"""The law of sinks: whatever stops and crashes, the target holds the fold of the reference's changelog."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from materialized import Crash, bounds, ms, rows_of
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from streamproof.properties.generators.cohorts import one_cohort, pack
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.witnesses.spark.witness import SPARK, binding_of
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import play
from streamproof.spark_impl.sinks.materialize import Included, Target, materialize
from streamproof.spark_impl.sinks.tables import DuckDBTable, ParquetTable

PROFILE = HistorySettings(
    "session_windows", {"gap_ms": 10, "grace_ms": 30, "aggregate": "list"}, schedule=(40, 80, 120), arrivals=16
)


def starting(spark: SparkSession, source: Path, build: Callable[[DataFrame], DataFrame]) -> Callable[..., Any]:
    """Return what materializes the files of a folder, each as a batch, and waits for the end."""
    schema = spark.read.parquet(str(source)).schema

    def run(to: Any, checkpoint: Path, **options: Any) -> list[int]:
        """Return the batches that were run."""
        events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
        query = materialize(build(events), to=to, checkpoint=checkpoint, availableNow=True, **options)
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return [progress["batchId"] for progress in query.recentProgress]

    return run


def put(source: Path, tables: Sequence[pa.Table]) -> None:
    source.mkdir()
    for number, table in enumerate(tables):
        file = source / f"{number:06d}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))


class Several:
    """Several targets, with which Spark may crash between a batch's output and its commit."""

    def __init__(self, *targets: Target, crash_in: int | None = None) -> None:
        self.targets, self.crash_in = targets, crash_in

    def content(self) -> Included | None:
        first, *others = (target.content() for target in self.targets)
        assert all(other == first for other in others)
        return first

    def commit(self, rows: DataFrame, content: Included) -> None:
        for target in self.targets:
            target.commit(rows, content)
        if content.batch == self.crash_in:
            raise Crash


def test_the_sessions_of_random_histories_are_the_reference_s_after_a_crash_and_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    histories = list(draw_histories(PROFILE, 60, seed=1))
    cohort, binding = one_cohort(histories), binding_of("session_windows")
    definition = operator_named("session_windows").declare(PROFILE.options)
    records = [record for history in histories for record in history.records]
    put(tmp_path / "source", pack(cohort, binding.fields(definition, records)))
    run = starting(spark, tmp_path / "source", SPARK.builder("session_windows", PROFILE.options, 8))
    targets = ParquetTable(tmp_path / "table", buckets=5), DuckDBTable(tmp_path / "database", "sessions")
    with pytest.raises(StreamingQueryException, match="Crash"):
        run(Several(*targets, crash_in=1), tmp_path / "checkpoint")
    assert run(Several(*targets), tmp_path / "checkpoint")[0] == 1  # Spark did run the batch again
    expected = {
        (f"{index:05d}|{key}", window): row
        for index, history in enumerate(histories)
        for (key, window), row in play(history).result.items()  # type: ignore[union-attr]
    }
    assert len(expected) > 100
    for target in targets:
        found = {
            (row["key"], bounds(row)): (binding.decode(definition, row["value"]), ms(row["timestamp"]))
            for row in rows_of(spark, target)
            if row["key"] != "~clock"
        }
        assert found == expected
