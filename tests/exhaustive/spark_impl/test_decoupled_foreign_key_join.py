"""The foreign-key join in three queries at their own pace; message by message the law *schedules* stages them."""

from __future__ import annotations

import inspect
import os
import random
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from notation import history_of
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from streamproof.properties.generators.cohorts import record_batches
from streamproof.properties.models.broker.races import race as race_on_a_broker
from streamproof.properties.witnesses.spark.witness import SPARK
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.records import Record
from streamproof.spark_impl.decoupled_foreign_key_join import DecoupledForeignKeyJoin, decoupled_foreign_key_join
from streamproof.spark_impl.inputs import table
from streamproof.spark_impl.topics import Topic, Topics, file_topics, kafka_topics
from streamproof.specs.races import RACES as NAMED_RACES


def test_a_delivery_from_an_empty_route_is_refused_with_its_line(spark: SparkSession) -> None:
    with pytest.raises(BadInput, match=r"^history: arrival 1: no message waits on subscription r2"):
        SPARK.evaluate([history_of("L l=a|r1 >r2", "foreign_key_join", delivery="manual")])


# Three queries at their own pace, with files as topics.

SCHEMA = "key string, time bigint, value string, artist string, offset bigint"


class CrashesOnce:
    """A topic that fails once, before it takes the batch of that number."""

    def __init__(self, topic: Topic, batch: int) -> None:
        self.topic, self.batch = topic, batch

    def read(self, spark: SparkSession, schema: T.StructType) -> DataFrame:
        return self.topic.read(spark, schema)

    def append(self, messages: DataFrame, keys: Sequence[str], producer: str, batch: int) -> None:
        if batch == self.batch:
            self.batch = -1
            raise RuntimeError("planned")
        self.topic.append(messages, keys, producer, batch)


class Deployment:
    """A decoupled join over two folders of changes, with what its receiver has emitted."""

    def __init__(self, spark: SparkSession, folder: Path, topics: Topics, protocol: str = "answer") -> None:
        self.folder, self.topics = folder, topics
        for side in ("left", "right"):
            (folder / side).mkdir()
        streams = (spark.readStream.schema(SCHEMA).parquet(str(folder / side)) for side in ("left", "right"))
        left, right = (table(frame, timestamp="time", order="offset") for frame in streams)
        self.join: DecoupledForeignKeyJoin = decoupled_foreign_key_join(
            left,
            right,
            topics,
            foreign_key="artist",
            protocol=protocol,
        )
        self.rows: list[tuple[str, str, str | None, str | None]] = []
        self.table: dict[str, tuple[str, str]] = {}

    def arrive(self, side: str, *rows: tuple[str, str | None, str | None]) -> None:
        """Put changes of one side into its source: key, value, and foreign key."""
        first = len(self.rows)
        self.rows += [(side, *row) for row in rows]
        columns = [[row[number] for row in rows] for number in range(3)]
        numbers = pa.array(range(first, first + len(rows)), pa.int64())
        arrays = [*(pa.array(column, pa.string()) for column in columns), numbers, numbers]
        table = pa.table(arrays, ["key", "value", "artist", "time", "offset"])
        pq.write_table(table, self.folder / side / f"{first:06d}.parquet")

    def run(self, *names: str, checkpoint: str = "checkpoint") -> None:
        """Run queries, one after the other, until each has done what there is to do."""
        for name in names:
            where = str(self.folder / checkpoint / name)
            if name == "receiver":
                writer = self.join.changelog.writeStream.foreachBatch(self.fold).trigger(availableNow=True)
                writer.option("checkpointLocation", where).start().awaitTermination()
            else:
                query = self.join.sender if name == "sender" else self.join.right
                query.start(where, availableNow=True).awaitTermination()

    def fold(self, changes: DataFrame, batch: int) -> None:
        for row in sorted(changes.toArrow().to_pylist(), key=lambda row: row["ordinal"]):
            if row["value"] is None:
                self.table.pop(row["key"], None)
            else:
                self.table[row["key"]] = (row["value"]["left"], row["value"]["right"])

    @property
    def meant(self) -> dict[str, tuple[str, str]]:
        """The join of the two tables that all changes come to."""
        left: dict[str, Any] = {}
        right: dict[str, Any] = {}
        for side, key, value, artist in self.rows:
            (left if side == "left" else right)[key] = None if value is None else (value, artist)
        pairs = {key: (row[0], right.get(row[1])) for key, row in left.items() if row is not None}
        return {key: (value, found[0]) for key, (value, found) in pairs.items() if found is not None}


def changes(generator: random.Random, names: Sequence[str], artists: Sequence[str], count: int, mark: str) -> list[Any]:
    drawn = [(generator.choice(names), f"{mark}{number}", generator.choice(artists)) for number in range(count)]
    return [(key, None if generator.random() < 0.2 else value, artist) for key, value, artist in drawn]


OF_TWO_INPUTS = ("right-delete-update", "delete-insert-same-key")
"""The races in which the order of two inputs plays a part."""


def topics_of(kind: str, folder: Path) -> Topics:
    if kind == "files":
        return file_topics(folder / "topics")
    servers = os.environ.get("STREAMPROOF_KAFKA_SERVERS")
    if servers is None:
        pytest.skip("no Kafka: name its address in STREAMPROOF_KAFKA_SERVERS, Spark's connector in PYSPARK_SUBMIT_ARGS")
    return kafka_topics(servers, f"streamproof-{uuid.uuid4().hex}")


@pytest.mark.parametrize("kind", ["files", "kafka"])
def test_whatever_the_pace_of_three_queries_the_result_is_the_join_once_nothing_waits(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    generator = random.Random(0)
    songs, artists = [f"s{number}" for number in range(40)], [f"a{number}" for number in range(8)]
    topics = topics_of(kind, tmp_path)
    deployed = Deployment(spark, tmp_path, Topics(CrashesOnce(topics.subscriptions, 1), topics.responses))

    def more(side: str, count: int) -> None:
        names, referred = (songs, artists) if side == "left" else (artists, [""])
        deployed.arrive(side, *changes(generator, names, referred, count, f"{side}{len(deployed.rows)}-"))

    more("left", 60)
    more("right", 10)
    deployed.run("sender", "right")
    more("left", 60)
    # It dies when the rows are on their topic, and what they ask isn't yet.
    with pytest.raises(StreamingQueryException, match="planned"):
        deployed.run("sender")
    deployed.run("receiver", "sender")
    more("right", 10)
    deployed.run("right", "receiver")
    assert deployed.table == deployed.meant != {}
    # A sender that begins anew repeats everything under its own name: nothing is taken for sent, and nothing is lost.
    more("left", 30)
    more("right", 5)
    deployed.run("sender", checkpoint="anew")
    deployed.run("right", "receiver")
    assert deployed.table == deployed.meant


@pytest.mark.parametrize("protocol", ["answer", "kip"])
@pytest.mark.parametrize("kind", ["kafka"])
def test_of_ten_thousand_races_none_ends_stale_where_every_change_is_answered(
    spark: SparkSession, tmp_path: Path, kind: str, protocol: str
) -> None:
    races = [race_on_a_broker(name, "inner") for name, one in NAMED_RACES.items() if one.join == "inner"]
    deployed = Deployment(spark, tmp_path, topics_of(kind, tmp_path), protocol)

    def arrive(step: int) -> None:
        for side in ("right", "left"):
            deployed.arrive(side, *(row for number, records in played(step) for row in rows(side, number, records)))

    def played(step: int) -> Iterator[tuple[int, list[Record]]]:
        return ((number, record_batches(races[number % len(races)])[step]) for number in range(10_000))

    def rows(side: str, number: int, records: list[Record]) -> Iterator[tuple[str, str | None, str | None]]:
        for record in records:
            if record.input == side:
                value: Any = record.value if side == "left" else {"value": record.value}
                named = None if value is None else value.get("foreign_key")
                payload = None if value is None else value["value"]
                yield f"{number}:{record.key}", payload, None if named is None else f"{number}:{named}"

    def stale() -> set[str]:
        wrong = deployed.table.keys() ^ deployed.meant.keys()
        return {races[int(key.partition(":")[0]) % len(races)].name or "" for key in wrong}

    arrive(0)
    deployed.run("sender", "right", "receiver")
    assert len(deployed.table) == 10_000
    arrive(1)
    deployed.run("sender", "right", "receiver")
    if protocol == "kip":
        assert stale() >= {one.name for one in races if one.name not in OF_TWO_INPUTS}
        return
    assert deployed.table == deployed.meant
    # Messages that come again, all of them: a sender that begins anew doesn't know what it has sent.
    deployed.run("sender", checkpoint="anew")
    deployed.run("right", "receiver")
    assert deployed.table == deployed.meant


def test_an_answer_never_overtakes_the_row_that_asked_for_it(spark: SparkSession, tmp_path: Path) -> None:
    # The receiver is held back until everything else is done, and finds rows and answers in one batch.
    deployed = Deployment(spark, tmp_path, file_topics(tmp_path / "topics"))
    deployed.arrive("right", ("a", "x", None))
    deployed.arrive("left", ("s", "one", "a"))
    deployed.run("sender", "right")
    deployed.arrive("left", ("s", "two", "a"))
    deployed.run("sender", "right", "receiver")
    assert deployed.table == deployed.meant == {"s": ("two", "x")}


def test_a_batch_frame_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = table(spark.createDataFrame([], SCHEMA), timestamp="time")
    with pytest.raises(BadInput, match="left: it is a batch DataFrame, and three queries need streams"):
        decoupled_foreign_key_join(frame, frame, file_topics(tmp_path), foreign_key="artist")


def test_every_change_is_answered_unless_the_document_is_asked_for() -> None:
    assert inspect.signature(decoupled_foreign_key_join).parameters["protocol"].default == "answer"
