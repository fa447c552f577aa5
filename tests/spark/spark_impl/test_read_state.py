"""A packed state is read with the types of its operator, and handed to another checkpoint under other groups."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import streamproof
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.foreign_key_join import foreign_key_join
from streamproof.spark_impl.inputs import table
from streamproof.spark_impl.session_windows import session_windows

NOW = 1_700_000_000_000
SCHEMA = "user string, time bigint, amount decimal(10, 2), day date"
FIRST = [("a", NOW, Decimal("1.50"), date(2020, 2, 29)), ("b", NOW + 100, Decimal("2.25"), None)]
SECOND = [("a", NOW + 5_000, Decimal("7.00"), None)]


class Source:
    """A folder of rows as a stream, a file a batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def run(self, name: str, rows: list[Any], declare: Any) -> list[dict[str, Any]]:
        """Run a query on new rows alone; give what it writes."""
        source = self.folder / f"rows of {name}"
        self.spark.createDataFrame(rows, SCHEMA).coalesce(1).write.mode("append").parquet(str(source))
        written: list[dict[str, Any]] = []

        def write(frame: DataFrame, batch: int) -> None:
            written.extend(row.asDict(recursive=True) for row in frame.orderBy("ordinal").collect())

        stream = self.spark.readStream.schema(SCHEMA).parquet(str(source))
        query = declare(stream).writeStream.foreachBatch(write).option("checkpointLocation", self.checkpoint(name))
        query.trigger(availableNow=True).start().awaitTermination()
        return written

    def checkpoint(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    return Source(spark, tmp_path)


def joined(frame: DataFrame, **options: Any) -> DataFrame:
    rows = table(frame, key="user", timestamp="time", value=F.struct("amount", "day"))
    return foreign_key_join(rows, rows, foreign_key="user", join="left", **options)


def sessions(frame: DataFrame, **options: Any) -> DataFrame:
    return session_windows(frame, key="user", timestamp="time", gap="10 seconds", grace="1 second", **options)


def rows_of(state: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in state.drop("packed").orderBy("key").collect()]


def test_the_state_of_sessions_has_the_types_of_its_operator(source: Source) -> None:
    source.run("old", FIRST, sessions)
    state = streamproof.read_state(source.checkpoint("old"))
    assert state.schema["state"].dataType.simpleString() == (
        "struct<sessions:array<struct<start:bigint,end:bigint,value:bigint>>>"
    )
    first, second = rows_of(state)
    assert first["key"] == {"user": "a"}
    assert first["state"] == {"sessions": [{"start": NOW, "end": NOW, "value": 1}]}
    assert second["state"] == {"sessions": [{"start": NOW + 100, "end": NOW + 100, "value": 1}]}
    assert first["due"] > datetime.fromtimestamp(NOW / 1000)


def test_a_state_goes_on_under_other_groups_and_timers_fire(source: Source) -> None:
    source.run("old", FIRST, lambda frame: sessions(frame, emit="close", state_groups=3))
    state = streamproof.read_state(source.checkpoint("old"))
    later = [("c", NOW + 60_000, Decimal(0), None), *SECOND]
    written = source.run("new", later, lambda frame: sessions(frame, emit="close", state_groups=7, initial_state=state))
    assert sorted((row["user"], row["value"]) for row in written) == [("a", 2), ("b", 1)]


def test_a_key_of_which_something_has_closed_is_handed_over_as_it_was(source: Source) -> None:
    first = [(key, NOW + at, Decimal(0), None) for key, at in (("a", 0), ("a", 55_000), ("b", 60_000))]
    source.run("old", first, lambda frame: sessions(frame, emit="close"))
    state = streamproof.read_state(source.checkpoint("old"))
    before = rows_of(state)
    assert [row["closed"] for row in before] == [datetime.fromtimestamp(at / 1000) for at in (NOW + 60_000, 0)]
    source.run("new", [("c", NOW, Decimal(0), None)], lambda frame: sessions(frame, emit="close", initial_state=state))
    assert rows_of(streamproof.read_state(source.checkpoint("new")))[:2] == before


def test_each_stage_of_a_join_is_handed_over(source: Source) -> None:
    source.run("old", FIRST, joined)
    checkpoint = source.checkpoint("old")
    states = [streamproof.read_state(checkpoint, operator=operator) for operator in (2, 1, 0)]
    (left, _) = rows_of(states[2])
    assert left["state"]["left"] == {"amount": Decimal("1.50"), "day": date(2020, 2, 29)}
    written = source.run("new", SECOND, lambda frame: joined(frame, state_groups=5, initial_state=states))
    old, new = {"amount": Decimal("1.50"), "day": date(2020, 2, 29)}, {"amount": Decimal("7.00"), "day": None}
    assert [row["value"] for row in written] == [{"left": old, "right": new}, {"left": new, "right": new}]
    with pytest.raises(
        BadInput, match=r"^initial_state: 1 given for 3 stages: give a result of read_state for each, in order$"
    ):
        source.run("other", SECOND, lambda frame: joined(frame, initial_state=states[0]))
    with pytest.raises(
        BadInput, match=r"^initial_state: it contains struct<.*>, but the operator stores struct<.*sessions.*: give"
    ):
        source.run("other", SECOND, lambda frame: sessions(frame, initial_state=states[0]))


def test_a_batch_data_frame_takes_over_no_state(source: Source, spark: SparkSession) -> None:
    source.run("old", FIRST, sessions)
    state = streamproof.read_state(source.checkpoint("old"))
    with pytest.raises(BadInput, match=r"^initial_state: a batch DataFrame has no checkpoint to .*: leave it out$"):
        sessions(spark.createDataFrame(SECOND, SCHEMA), initial_state=state)


@pytest.mark.parametrize(("checkpoint", "options"), [("none", {}), ("old", {"operator": 7}), ("old", {"batch": 9})])
def test_a_state_that_is_not_there_is_refused(source: Source, checkpoint: str, options: dict[str, int]) -> None:
    source.run("old", FIRST, sessions)
    with pytest.raises(BadInput, match=r"^checkpoint: .* has no state of a streamproof operator.*give the folder that"):
        streamproof.read_state(source.checkpoint(checkpoint), **options)


def test_the_state_of_another_operator_is_refused(source: Source) -> None:
    def counted(frame: DataFrame) -> DataFrame:
        one = frame.withColumn("at", F.timestamp_millis("time")).withWatermark("at", "1 second")
        return one.dropDuplicates(["user", "at"]).withColumn("ordinal", F.lit(0))

    source.run("old", FIRST, counted)
    with pytest.raises(BadInput, match="has no state of a streamproof operator under the number 0"):
        streamproof.read_state(source.checkpoint("old"))
