"""What `materialize` makes of every operator's changelog, batch by batch, is the meaning: one job for all of them.

The histories are those of a check's pools, played in memory; Spark folds the changes of each batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from shared_player import play_all
from streamproof.properties.checking.pools import pools_on_spark
from streamproof.properties.laws.folding import folded_differences
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.spark.shared import Play
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Output
from streamproof.spark_impl.sinks.materialize import last_changes

KEYS = ("history", "number", "key")
SCHEMA = pa.schema(
    [
        *(("history", pa.int64()), ("number", pa.int64()), ("key", pa.string())),
        ("window", pa.struct([("start", pa.int64()), ("end", pa.int64())])),
        *(("value", pa.string()), ("timestamp", pa.int64()), ("change", pa.string()), ("ordinal", pa.int64())),
    ]
)
Fold = Callable[[DataFrame, tuple[str, ...]], DataFrame]


@pytest.fixture(scope="module")
def plays() -> list[Play]:
    """Histories of every definition whose result is a table, under a clock and under one that stands still."""
    pools = list(pools_on_spark([registration_of(name) for name in registered()], 1, 0))
    small, _, standing, *_, by_clock = pools
    found = [Play(one) for pool in (small, standing, by_clock) for sample in pool for one in sample.histories]
    tables = [one for one in found if not one.definition.is_stream]
    assert len({one.history.operator for one in tables}) == 9
    return tables


@pytest.fixture(scope="module")
def changelog(plays: list[Play]) -> pa.Table:
    """What they emit, as the columns of one changelog: of each history and batch."""
    rows = []
    answers = play_all(plays)
    for index, (outcome, labels) in enumerate(zip(answers.outcomes, answers.labels, strict=True)):
        for ordinal, (entry, label) in enumerate(zip(outcome.entries, labels, strict=True)):
            if isinstance(entry.output, Change):
                key, window, value, timestamp = entry.output
                edges = None if window is None else {"start": window[0], "end": window[1]}
                text = None if value is None else json.dumps(value)
                rows.append((index, entry.batch, key, edges, text, timestamp, label.change, ordinal))
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)], SCHEMA
    )


def wrong(spark: SparkSession, plays: list[Play], changelog: pa.Table, fold: Fold = last_changes) -> set[str]:
    """Return the operators of which some history's table differs from the meaning after some batch."""
    emitted: dict[tuple[int, int], list[Output]] = {}
    for row in fold(spark.createDataFrame(changelog), KEYS).toArrow().to_pylist():
        window: Any = row["window"] and (row["window"]["start"], row["window"]["end"])
        value = None if row["change"] == "tombstone" else json.loads(row["value"])
        emitted.setdefault((row["history"], row["number"]), []).append(
            Change(row["key"], window, value, row["timestamp"])
        )
    found = set()
    for index, one in enumerate(plays):
        played = play(one.history)
        by_batch = [emitted.get((index, batch), []) for batch in range(len(played.steps))]
        if folded_differences(one.history, played, by_batch):
            found.add(one.history.operator)
    return found


def test_the_table_of_every_operator_is_the_meaning_after_every_batch(
    spark: SparkSession, plays: list[Play], changelog: pa.Table
) -> None:
    assert wrong(spark, plays, changelog) == set()


def test_a_fold_that_takes_the_first_change_or_no_notice_of_windows_is_caught(
    spark: SparkSession, plays: list[Play], changelog: pa.Table
) -> None:
    def first(frame: DataFrame, keys: tuple[str, ...]) -> DataFrame:
        return last_changes(frame.withColumn("ordinal", -F.col("ordinal")), keys)

    def without_windows(frame: DataFrame, keys: tuple[str, ...]) -> DataFrame:
        return last_changes(frame.withColumn("window", F.lit(None).cast(frame.schema["window"].dataType)), keys)

    assert wrong(spark, plays, changelog, first) == {one.history.operator for one in plays}
    assert wrong(spark, plays, changelog, without_windows) == {
        *("scd2", "session_windows", "window_aggregate", "windowed_table")
    }
