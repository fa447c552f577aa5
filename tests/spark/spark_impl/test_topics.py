"""Topics: where the messages of a query wait for another."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.topics import FileTopic, decoded, encoded, file_topics, kafka_topics

SCHEMA = "key string, value struct<left: struct<n: bigint, at: timestamp>, right: decimal(9,2)>, digest binary"
AT = datetime(2026, 11, 21, 12, 0, 0, 123456, UTC)
MESSAGES: list[Any] = [
    ("a", Row(left=Row(n=2**60, at=AT), right=Decimal("1.10")), bytearray(range(256))),
    ("b", Row(left=None, right=None), None),
    ("c", Row(left=Row(n=None, at=None), right=None), bytearray()),
    (None, None, None),
]


def test_a_batch_that_is_appended_again_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    topic = FileTopic(tmp_path / "topic")
    messages = spark.createDataFrame([("a", 1), ("b", 2)], "key string, n int").coalesce(1)
    for producer, batch in (("one", 0), ("one", 0), ("one", 1), ("other", 0)):
        topic.append(messages, ["key"], producer, batch)
    found = spark.read.option("recursiveFileLookup", "true").parquet(str(topic.folder))
    assert found.count() == 6
    assert not [path for path in topic.folder.iterdir() if path.name.startswith("_")]


def test_what_a_crash_left_half_written_is_not_read_and_is_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    topic = FileTopic(tmp_path / "topic")
    messages = spark.createDataFrame([("a", 1)], "key string, n int")
    half = topic.folder / "_one-000000000"
    messages.write.parquet(str(half))
    reader = spark.read.option("recursiveFileLookup", "true").schema(messages.schema)
    assert reader.parquet(str(topic.folder)).count() == 0
    topic.append(messages, ["key"], "one", 0)
    assert reader.parquet(str(topic.folder)).collect() == [Row(key="a", n=1)]


def test_on_kafka_messages_come_back_as_they_were(spark: SparkSession) -> None:
    messages = spark.createDataFrame(MESSAGES, SCHEMA)
    sent = encoded(messages, ["key"])
    assert decoded(sent, messages.schema).collect() == messages.collect()
    assert [row.key for row in sent.select("key").collect()] == ['{"key":"a"}', '{"key":"b"}', '{"key":"c"}', "{}"]


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(BadInput, match="taken is a file: name a folder"):
        file_topics(tmp_path / "taken")


@pytest.mark.parametrize("servers", ["broker", "broker:", ":9092", "one:9092,two"])
def test_an_address_without_port_is_refused(servers: str) -> None:
    with pytest.raises(BadInput, match="isn't a Kafka address: write host:port"):
        kafka_topics(servers)


def test_both_topics_have_names_of_their_own() -> None:
    topics = kafka_topics("broker:9092", "songs")
    assert [topic.name for topic in topics] == ["songs-subscriptions", "songs-responses"]  # type: ignore[attr-defined]
