"""What users get wrong with a streaming query, and what they are emitted: never a wrong result, always the remedy."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from streamproof.properties.witnesses.spark.failures import _cause
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.windows import SessionWindows
from streamproof.spark_impl.inputs import stream, table
from streamproof.spark_impl.runtime.keyed import declaration_of
from streamproof.spark_impl.runtime.logic import Arrived, Key, LogicOutput
from streamproof.spark_impl.session_windows import SessionLogic, session_windows
from streamproof.spark_impl.stream_stream_join import stream_stream_join
from streamproof.spark_impl.table_aggregate import table_aggregate
from streamproof.spark_impl.table_table_join import table_table_join

Rows = list[tuple[str, int, int]]
SCHEMA = {"key": pa.string(), "value": pa.int64(), "timestamp": pa.int64()}
COLUMNS: dict[str, Any] = {"key": "key", "timestamp": "timestamp"}


def batch_of(rows: Rows) -> pa.Table:
    columns = zip(SCHEMA.items(), zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(list(column), kind) for (name, kind), column in columns})


class Folder:
    """A folder of parquet files as a stream, with a checkpoint: what outlives a query."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.files = spark, folder, 0
        self.written: list[dict[str, Any]] = []
        (folder / "in").mkdir()

    def add(self, rows: Rows) -> None:
        pq.write_table(batch_of(rows), self.folder / "in" / f"{self.files}.parquet")
        self.files += 1

    @property
    def stream(self) -> DataFrame:
        reader = self.spark.readStream.schema("key string, value bigint, timestamp bigint")
        return reader.parquet(str(self.folder / "in"))

    def run(self, declared: Callable[[DataFrame], DataFrame]) -> list[dict[str, Any]]:
        """Run the query on what is there, from the checkpoint; give what it wrote."""
        written: list[dict[str, Any]] = []

        def write(frame: DataFrame, batch: int) -> None:
            written.extend(row.asDict(recursive=True) for row in frame.collect())

        query = declared(self.stream).writeStream.foreachBatch(write)
        running = query.option("checkpointLocation", str(self.folder / "checkpoint")).trigger(availableNow=True).start()
        self.written = written
        running.awaitTermination()
        return written

    def refused(self, declared: Callable[[DataFrame], DataFrame]) -> str:
        """Run a query that is to fail before it writes anything, and give its cause as streamproof emits it."""
        with pytest.raises(StreamingQueryException) as failure:
            self.run(declared)
        assert self.written == []
        return _cause(str(failure.value))


@pytest.fixture
def folder(spark: SparkSession) -> Iterator[Folder]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        yield Folder(spark, Path(made))


def sessions(gap: str, **options: Any) -> Callable[[DataFrame], DataFrame]:
    return lambda frame: session_windows(frame, **COLUMNS, gap=gap, **options)


# A checkpoint of other options.

OLD = (
    "session_windows(gap_ms=300000, grace_ms=0, retention_ms=300000, aggregate=count, emit=update, late=merged) "
    "with state_groups=256, form 2"
)


def test_a_checkpoint_of_another_gap_is_refused_with_both_and_goes_on_under_its_own(
    folder: Folder,
) -> None:
    folder.add([("a", 1, 0), ("b", 1, 1_000)])
    assert len(folder.run(sessions("5 minutes"))) == 2
    # No key that the first query knew is concerned.
    folder.add([("new", 1, 2_000)])
    assert folder.refused(sessions("10 minutes")) == (
        f"the checkpoint was written by {OLD}, and can't continue as {OLD.replace('300000', '600000')}: declare the "
        "operator as before, or give the query a new checkpointLocation"
    )
    assert f"can't continue as {OLD.replace('256', '2')}: declare" in folder.refused(
        sessions("5 minutes", state_groups=2)
    )
    # Other types under the same declaration.
    emitted = folder.refused(lambda frame: sessions("5 minutes")(frame.withColumn("key", F.lit(1))))
    assert "the checkpoint stores struct<key:struct<key:string>,state:struct<" in emitted
    assert "and can't continue with struct<key:struct<key:int>,state:struct<" in emitted
    assert emitted.endswith("cast the columns to their earlier types, or give the query a new checkpointLocation")
    assert [row["key"] for row in folder.run(sessions("5 minutes"))] == ["new"]


def test_a_checkpoint_goes_on_whether_its_columns_may_be_null_and_whatever_is_said_of_them(folder: Folder) -> None:
    def without_nulls(frame: DataFrame) -> DataFrame:
        return sessions("5 minutes")(frame.withColumn("key", F.coalesce("key", F.lit(""))))

    def with_comment(frame: DataFrame) -> DataFrame:
        return sessions("5 minutes")(frame.withColumn("key", F.col("key").alias("key", metadata={"comment": "who"})))

    counts = []
    for declared in (sessions("5 minutes"), without_nulls, with_comment, sessions("5 minutes")):
        folder.add([("a", 1, 0)])
        counts += [row["value"] for row in folder.run(declared) if row["change"] == "update"]
    assert counts == [1, 2, 3, 4]


class OldForm(StatefulProcessor):
    """What stored the declaration, and typed fields in place of a binary."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.kept = handle.getValueState("kept", T.StructType().add("count", "long"))
        self.declaration = handle.getValueState("declaration", T.StructType().add("text", "string"))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        self.declaration.update((OLD.replace(", form 2", ""),))
        self.kept.update((1,))
        return iter([Row(packed=b"")])

    def close(self) -> None:
        pass


def test_a_checkpoint_of_the_old_form_is_refused_with_the_remedy(folder: Folder) -> None:
    def old(frame: DataFrame) -> DataFrame:
        rows = frame.select(F.lit(0).alias("state_group"), "key").groupBy("state_group")
        return rows.transformWithState(OldForm(), T.StructType().add("packed", "binary"), "Append", "EventTime")

    def timed(frame: DataFrame) -> DataFrame:
        return old(frame.withColumn("clock", F.timestamp_millis("timestamp")).withWatermark("clock", "0 seconds"))

    folder.add([("a", 1, 0)])
    folder.run(timed)
    folder.add([("a", 1, 0)])
    emitted = folder.refused(sessions("5 minutes"))
    assert emitted == (
        f"the checkpoint was written by {OLD.replace(', form 2', '')}, and can't continue as {OLD}: declare the "
        "operator "
        "as before, or give the query a new checkpointLocation"
    )


@pytest.mark.parametrize(("kind", "said"), [("INTERVAL DAY", "interval day"), ("VARIANT", "variant")])
def test_a_value_that_cannot_be_stored_is_refused_when_the_operator_is_declared(
    folder: Folder, kind: str, said: str
) -> None:
    value = F.expr("parse_json('1')" if kind == "VARIANT" else "INTERVAL '1' DAY").alias("value")
    frame = table(folder.stream, **COLUMNS, value=value)
    with pytest.raises(BadInput, match=f"^left value: an operator can't hold values of the type {said}: cast it"):
        table_table_join(frame, frame)


def test_a_worker_that_is_killed_loses_nothing(folder: Folder) -> None:
    class Killed(SessionLogic):
        def take(self, key: Key, state: Any, row: Arrived, clock: int) -> list[LogicOutput]:
            if row.value == 7 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().take(key, state, row, clock)

    marker = folder.folder / "killed"
    declared = sessions("5 minutes", value="value", aggregate="sum", logic=Killed)
    folder.add([("a", 1, 0), ("b", 1, 0)])
    assert len(folder.run(declared)) == 2
    folder.add([("a", 7, 1_000), ("b", 2, 1_000)])
    with pytest.raises(StreamingQueryException, match="Python worker exited unexpectedly"):
        folder.run(declared)
    assert marker.exists()
    assert sorted(row["value"] for row in folder.run(declared) if row["value"] is not None) == [3, 8]


def test_a_batch_without_rows_is_refused_before_it_closes_anything(folder: Folder) -> None:
    folder.add([("a", 1, 0), ("a", 1, 1_000_000)])
    stream = sessions("5 minutes", emit="close")

    def dies(frame: DataFrame, batch: int) -> None:
        frame.collect()
        assert batch == 0

    query = stream(folder.stream).writeStream.foreachBatch(dies)
    running = query.option("checkpointLocation", str(folder.folder / "checkpoint")).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException):
        running.awaitTermination()
    # What is left to do is the batch without data that closes the first session.
    assert "and can't continue as session_windows(gap_ms=600000" in folder.refused(sessions("10 minutes", emit="close"))
    assert [row["value"] for row in folder.run(stream)] == [1]


def test_an_operator_of_several_stages_refuses_a_checkpoint_of_another_column_and_number_of_groups(
    folder: Folder,
) -> None:
    def grouped(by: str, state_groups: int) -> Callable[[DataFrame], DataFrame]:
        group = F.when(F.col("value") > 0, F.col("key")).alias(by)
        return lambda frame: table_aggregate(frame, **COLUMNS, group_by=group, state_groups=state_groups)

    folder.add([("a", 1, 0)])
    folder.run(grouped("country", 2))
    folder.add([("a", 1, 0)])
    emitted = folder.refused(grouped("city", 3))
    assert "table_aggregate(group_by=country, aggregate=count, field=None) with state_groups=2, form 2, " in emitted
    assert (
        "can't continue as table_aggregate(group_by=city, aggregate=count, field=None) with state_groups=3, form 2: "
        in emitted
    )


def test_a_declaration_names_every_option_and_a_custom_aggregate_by_its_name() -> None:
    windows = SessionWindows(gap_ms=5)
    assert declaration_of("session_windows", windows, further=1) == (
        "session_windows(gap_ms=5, grace_ms=0, retention_ms=5, aggregate=count, emit=update, late=merged, further=1)"
    )


# Output modes, watermarks, and inputs that clash.


def test_a_changelog_is_written_in_append_or_update_mode_and_complete_is_refused_by_spark(folder: Folder) -> None:
    folder.add([("a", 1, 0)])

    def start(mode: str) -> None:
        query = sessions("5 minutes")(folder.stream).writeStream.outputMode(mode).format("noop")
        query = query.option("checkpointLocation", str(folder.folder / mode)).trigger(availableNow=True)
        query.start().awaitTermination()

    start("update")
    with pytest.raises(AnalysisException, match="Invalid streaming output mode: complete"):
        start("complete")


def native(frame: DataFrame) -> DataFrame:
    timed = frame.withColumn("time", F.timestamp_millis("timestamp"))
    counted = timed.groupBy(F.session_window("time", "5 minutes").alias("window"), "key").count()
    return counted.select("key", "window", F.col("count").alias("value"), F.col("window.end").alias("timestamp"))


def joined(frame: DataFrame) -> DataFrame:
    return frame.alias("left").join(frame.alias("right"), "key", "left").select("key")


@pytest.mark.parametrize("job", [native, joined])
def test_a_job_without_a_watermark_is_refused_with_the_remedy(
    spark: SparkSession, job: Callable[[DataFrame], DataFrame]
) -> None:
    with pytest.raises(BadInput) as refusal:
        run_stream(spark, [batch_of([("a", 1, 0)])], job)
    assert str(refusal.value).startswith("Spark refuses the query: ")
    assert str(refusal.value).endswith(
        ': declare a watermark, such as .withWatermark("time", "5 milliseconds"), before the operator'
    )


def test_our_own_operators_need_no_watermark_and_refuse_one_upon_a_timed_one(folder: Folder) -> None:
    folder.add([("a", 1, 0)])
    changelog = sessions("5 minutes")(folder.stream)
    with pytest.raises(BadInput, match=r"left: withWatermark comes after a timed operator.*leave it out"):
        stream_stream_join(
            stream(changelog.withWatermark("timestamp", "1 second"), **COLUMNS),
            stream(folder.stream, **COLUMNS),
            before="1 s",
            after="1 s",
        )


def test_orders_that_clash_are_refused_behind_a_changelog_too(folder: Folder) -> None:
    changelog = table(sessions("1 s", order="key")(folder.stream), **COLUMNS, order="place")
    with pytest.raises(BadInput, match="on the left and bigint on the right clash: cast one of them"):
        table_table_join(changelog, table(folder.stream, **COLUMNS, order="value"))
