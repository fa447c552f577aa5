"""`Sink.kafka` on a real broker, by Spark's connector: Spark's writer repeats records, and a reader can know them.

Spark takes the connector only before it starts, so the jobs run in a process of their own.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import BadInput, Sink
from streamproof.properties.witnesses.job.contract import raised
from streamproof.properties.witnesses.job.sinks import kafka
from streamproof.properties.witnesses.kafka_broker.clients import Received


class Topic:
    """Clients that have read these records."""

    def __init__(self, *records: tuple[str | None, str | None]) -> None:
        self.records = records

    def read_all(self, topic: str, partitions: int) -> list[Received]:
        assert topic == "topic"
        return [Received(0, at, key, value, 0) for at, (key, value) in enumerate(self.records)]  # type: ignore[arg-type]


def read(monkeypatch: pytest.MonkeyPatch, topic: Topic, **given: Any) -> Any:
    monkeypatch.setattr(kafka, "_clients", lambda: topic)
    return Sink.kafka(lambda *frames: frames, **given).read("127.0.0.1:9092/topic")


def test_values_are_columns_or_text_and_a_tombstone_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(("a", '{"n": 1, "day": "2024-07-15"}'), ("a", None))
    first, second = read(monkeypatch, topic, schema="day date", without=["key"])
    assert (first["n"], str(first["day"]), second) == (1, "2024-07-15", {"n": None, "day": None})
    assert read(monkeypatch, topic, value="text")[1] == {"key": "a", "value": None}
    assert read(monkeypatch, Topic()) == []


def test_a_reader_that_knows_repeated_records_takes_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(("1-0", '{"n": 1}'), ("1-1", '{"n": 2}'), ("1-0", '{"n": 3}'))
    assert [row["n"] for row in read(monkeypatch, topic, once=["key"], without=["key"])] == [1, 2]


@pytest.mark.parametrize(
    ("value", "given", "message"),
    [
        ("1", {}, r'topic has the value .1.: write each value as a JSON object, .* or give value="text"'),
        (
            '{"n": 1}',
            {"once": ["batch"]},
            "once has 'batch', and the records have 'key', 'n': name the columns by which",
        ),
    ],
)
def test_a_topic_that_cannot_be_read_is_refused(
    value: str, given: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match=message):
        read(monkeypatch, Topic(("a", value)), **given)


def test_the_jar_that_spark_lacks_is_named_with_its_coordinates() -> None:
    error = Exception("Failed to find data source: kafka. Deploy the application as per the guide.")
    assert '.config("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:' in raised(read, error)
    assert "spark.jars.packages" not in raised(read, Exception("Failed to find data source: other."))


def test_a_topic_without_records_has_no_rows_whatever_tells_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, Topic(), once=["batch"]) == []


def test_each_query_has_a_topic_of_its_own_that_is_deleted_after_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[Any] = []
    clients = SimpleNamespace(
        create_topics=lambda names, count: done.append(("create", *names, count)),
        delete_topics=lambda names: done.append(("delete", *names)),
        cluster=SimpleNamespace(bootstrap="127.0.0.1:9"),
    )
    monkeypatch.setattr(kafka, "_clients", lambda: clients)
    sink = Sink.kafka(lambda *frames: frames)
    targets = []
    for error in (None, ValueError("x")):
        with contextlib.suppress(ValueError), sink.at(tmp_path) as (target, _):
            targets.append(target)
            if error is not None:
                raise error
    topics = [target.removeprefix("127.0.0.1:9/") for target in targets]
    assert len({*topics}) == 2
    assert done == [
        (do, topic, *[kafka.PARTITIONS] * (do == "create")) for topic in topics for do in ("create", "delete")
    ]


def test_a_column_that_is_null_in_all_records_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, Topic(("a", '{"n": 1}')), schema="day date") == [{"key": "a", "n": 1, "day": None}]
