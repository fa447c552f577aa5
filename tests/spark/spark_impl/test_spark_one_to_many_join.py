"""The one-to-many join on Spark: what is declared, what each stage decides, and one query over a batch DataFrame."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.inputs import table
from streamproof.spark_impl.one_to_many_join import one_to_many_join
from streamproof.spark_impl.sinks.materialize import folded


@pytest.fixture(scope="module")
def songs(spark: SparkSession) -> DataFrame:
    rows = [(0, 10, "album", 1, "one", "ann"), (1, 20, "album", 2, "two", "bob"), (4, 5, "album", 1, "uno", "bob")]
    rows += [(5, 50, "album", 2, None, None), (6, 60, None, 3, "tri", "bob")]  # type: ignore[list-item]
    return spark.createDataFrame(rows, "n int, time bigint, album string, track int, title string, artist string")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"foreign_key": "track"}, "foreign_key: it is int, but the key of the right side is string: cast one of them"),
        ({"foreign_key": "album"}, "foreign_key: 'album' is a column of the key too"),
        ({"right": {"timestamp": "title"}}, "right: timestamp: the column 'title' is string"),
    ],
)
def test_what_cannot_be_declared_is_refused(songs: DataFrame, options: dict[str, Any], message: str) -> None:
    left = table(songs, key=["album", "track"], timestamp="time", value="title")
    right = table(songs, **{"key": "artist", "timestamp": "time", "value": "title", **options.get("right", {})})
    with pytest.raises(BadInput, match=message):
        one_to_many_join(**{"foreign_key": "artist", **options, "left": left, "right": right})


def test_the_table_of_a_join_has_a_kept_row_without_foreign_key(spark: SparkSession) -> None:
    changes = [(0, 1, "one", "here", "bob"), (1, 2, "two", "gone", None), (2, 3, "two", "alone", None)]
    songs = spark.createDataFrame(changes, "n int, time bigint, song string, title string, artist string")
    artists = spark.createDataFrame([(3, 7, "bob", "Bob")], "n int, time bigint, id string, name string")
    emitted = one_to_many_join(
        table(songs, key="song", timestamp="time", value="title", order="n"),
        table(artists, key="id", timestamp="time", value="name", order="n"),
        foreign_key="artist",
        join="left",
        null_foreign_key="keep",
    )
    rows = [(row["artist"], row["song"], tuple(row["value"])) for row in folded(emitted).collect()]
    assert sorted(rows, key=str) == [("bob", "one", ("here", "Bob")), (None, "two", ("alone", None))]


def test_a_batch_frame_with_a_composite_key_is_joined_under_both_keys(spark: SparkSession, songs: DataFrame) -> None:
    artists = spark.createDataFrame(
        [(2, 7, "bob", "Bob"), (3, 9, "ann", "Ann")], "n int, time bigint, id string, name string"
    )
    title = F.when(F.col("title").isNotNull(), F.struct("title"))
    emitted = one_to_many_join(
        table(songs, key=["album", "track"], timestamp="time", value=title, order="n"),
        table(artists, key="id", timestamp="time", value="name", order="n"),
        foreign_key=F.col("artist"),
        report_dropped=True,
        state_groups=2,
    )
    rows = sorted(emitted.toArrow().to_pylist(), key=lambda row: (row["cause"], row["artist"] or ""))
    shown = [
        (row["cause"], row["artist"], row["album"], row["track"], row["value"], row["reason"] or row["change"])
        for row in rows
    ]
    assert shown == [
        (2, "bob", "album", 2, {"left": {"title": "two"}, "right": "Bob"}, "update"),
        (3, "ann", "album", 1, {"left": {"title": "one"}, "right": "Ann"}, "update"),
        (4, "ann", "album", 1, None, "tombstone"),
        (4, "bob", "album", 1, {"left": {"title": "uno"}, "right": "Bob"}, "update"),
        (5, "bob", "album", 2, None, "tombstone"),
        (6, None, None, 3, None, "null key"),
    ]
