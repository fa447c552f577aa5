"""The one-to-many join on Spark: what is declared, what each stage decides, and one query over a batch DataFrame."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.properties.operators.one_to_many_join import REGISTRATION
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.joins import OneToManyJoin
from streamproof.spark_impl.inputs import table
from streamproof.spark_impl.one_to_many_join import OneToManyStages, one_to_many_join, one_to_many_stages
from streamproof.spark_impl.runtime.logic import Arrived
from streamproof.spark_impl.runtime.stages import Row
from streamproof.spark_impl.sinks.materialize import folded


def stages(**options: Any) -> OneToManyStages:
    return one_to_many_stages(OneToManyJoin("artist", **options))


def left(value: Any, foreign_key: str | None) -> Arrived:
    return Arrived(0, [0, 0], [value, foreign_key])


def moved(value: Any, timestamp: int) -> Arrived:
    return Arrived(timestamp, [0, timestamp, 0], [timestamp, None, value, "l"], "messages")


LEFT_KEPT = {"join": "left", "null_foreign_key": "keep"}


@pytest.mark.parametrize(
    ("before", "value", "after", "options", "expected"),
    [
        ([], "v", "r1", {}, [("r1", "v")]),
        ([("r1",)], "v", "r1", {}, [("r1", "v")]),
        ([("r1",)], "v", "r2", {}, [("r1", None), ("r2", "v")]),
        ([("r1",)], None, "r1", {}, [("r1", None)]),
        ([("r1",)], "v", None, {}, [("r1", None)]),
        ([("r1",)], "v", None, LEFT_KEPT, [("r1", None), (None, "v")]),
        ([(None,)], "v", None, LEFT_KEPT, [(None, "v")]),
        ([(None,)], None, None, LEFT_KEPT, [(None, None)]),
        ([], None, None, LEFT_KEPT, []),
    ],
)
def test_a_left_row_is_taken_away_before_it_is_put_elsewhere(
    before: list[Any], value: Any, after: str | None, options: dict[str, Any], expected: list[Any]
) -> None:
    logic = stages(**options).left
    assert [one.value for one in logic.take(("l",), [*before], left(value, after), 0)] == expected


def test_a_right_change_emits_every_left_row_in_the_order_of_their_keys_with_the_later_timestamp() -> None:
    logic = stages().right
    state = logic.unpack((None, None, [("b", "vb", 9), ("a", "va", 3)]))
    emitted = logic.take(("r",), state, Arrived(5, [], "x", "right"), 0)
    assert [(*one.value, one.timestamp) for one in emitted] == [
        ("a", {"left": "va", "right": "x"}, 5),
        ("b", {"left": "vb", "right": "x"}, 9),
    ]
    assert logic.pack(state) == ("x", 5, [("b", "vb", 9), ("a", "va", 3)])


def test_an_inner_join_says_nothing_without_a_right_row_and_a_left_join_does() -> None:
    for options, expected in (({}, []), ({"protocol": "answer"}, [None]), (LEFT_KEPT, [{"left": "v", "right": None}])):
        logic = stages(**options).right
        assert [one.value[-1] for one in logic.take(("r",), logic.empty(), moved("v", 1), 0)] == expected


def test_a_row_without_foreign_key_is_emitted_but_not_kept_for_a_right_row_that_cannot_come() -> None:
    logic = stages(**LEFT_KEPT).right
    state = logic.empty()
    emitted = [*logic.take((None,), state, moved("v", 1), 0), *logic.take((None,), state, moved(None, 2), 0)]
    assert [one.change for one in emitted] == ["update", "tombstone"]
    assert logic.pack(state) is None
    assert logic.take((None,), state, Arrived(5, [], "x", "right"), 0)[0].reason == "null key"


def test_a_left_row_that_goes_leaves_a_tombstone_with_the_later_timestamp() -> None:
    logic = stages().right
    state = logic.unpack(("x", 8, [("l", "v", 1)]))
    emitted = logic.take(("r",), state, moved(None, 2), 0)
    assert [(one.value, one.timestamp, one.change) for one in emitted] == [(("l", None), 8, "tombstone")]
    assert state.lefts == {}
    assert state.right == Row("x", 8)


def test_both_keys_come_back_as_the_reference_writes_them() -> None:
    import pyarrow as pa

    table = pa.table({"foreign_key": ["00003|r|1", None, None, None], "key": ["00003|ä", "00003|b", None, "~clock"]})
    assert REGISTRATION.spark.keys(table) == ['00003|["r|1", "ä"]', '00003|[null, "b"]', None, "~clock"]


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
        ({"join": "outer"}, "no outer join by foreign key"),
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
