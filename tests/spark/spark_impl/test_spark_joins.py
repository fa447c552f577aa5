"""The one-stage joins on Spark: what is refused where it is declared, and what users of DataFrames meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.inputs import stream, table
from streamproof.spark_impl.stream_stream_join import stream_stream_join
from streamproof.spark_impl.stream_table_join import stream_table_join
from streamproof.spark_impl.table_table_join import table_table_join

Joining = Callable[..., DataFrame]
COLUMNS: dict[str, Any] = {"key": "k", "timestamp": "t", "value": "v", "order": "o"}
BOUNDS: dict[str, Any] = {"before": "5 ms", "after": "5 ms"}


@pytest.fixture(scope="module")
def sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    schema = "k string, t bigint, o bigint, v string, n int"
    left = spark.createDataFrame([("a", 1, 0, "l0", 1), ("b", 9, 3, "l3", 1), (None, 9, 4, "l4", 1)], schema)
    right = spark.createDataFrame([("a", 4, 1, "r1", 1), ("b", 2, 2, "r2", 1)], schema)
    return left, right


def emitted(result: DataFrame) -> list[tuple[Any, ...]]:
    rows = result.orderBy("key_of_row", "ordinal").collect()
    return [(row.k, row.value and tuple(row.value), row.reason) for row in rows]


def joined(by: Joining, sides: tuple[DataFrame, DataFrame], **options: Any) -> list[tuple[Any, ...]]:
    left, right = (table(side, **COLUMNS) for side in sides)
    return emitted(by(left, right, report_dropped=True, **options).withColumn("key_of_row", F.col("k")))


def test_batch_dataframes_are_joined_as_histories_that_have_ended(sides: tuple[DataFrame, DataFrame]) -> None:
    assert joined(table_table_join, sides, join="outer") == [
        (None, None, "null key"),
        ("a", ("l0", None), None),
        ("a", ("l0", "r1"), None),
        ("b", (None, "r2"), None),
        ("b", ("l3", "r2"), None),
    ]
    assert joined(stream_table_join, sides, null_key="keep") == [
        (None, ("l4", None), None),
        ("a", ("l0", None), None),
        ("b", ("l3", "r2"), None),
    ]
    assert joined(stream_stream_join, sides, join="outer", emit="close", **BOUNDS) == [
        (None, None, "null key"),
        ("a", ("l0", "r1"), None),
        ("b", (None, "r2"), None),
        ("b", ("l3", None), None),
    ]


def test_the_result_has_the_columns_of_every_changelog(sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = sides
    row = F.struct("v", "n").alias("row")
    result = table_table_join(table(left, **{**COLUMNS, "value": row}), table(right, **{**COLUMNS, "value": "n"}))
    assert result.columns == ["k", "window", "value", "timestamp", "change", "reason", "cause", "ordinal", "place"]
    assert result.schema["value"].dataType.simpleString() == "struct<left:struct<v:string,n:int>,right:int>"


@pytest.mark.parametrize("join", [table_table_join, stream_table_join, stream_stream_join])
@pytest.mark.parametrize(
    ("side", "columns", "message"),
    [
        ("left", {"key": "nope"}, "left: key: 'nope' is not in the input, which has the columns k, t, o, v, n"),
        ("right", {"value": "nope"}, "right: value: 'nope' is not in the input"),
        ("right", {"value": None}, "right: value: 'value' is not in the input"),
        ("right", {"timestamp": "v"}, "right: timestamp: the column 'v' is string"),
        ("right", {"key": "n"}, "key: string on the left and int on the right clash: cast one of them"),
        ("right", {"order": "v"}, "order: bigint on the left and string on the right clash: cast one of them"),
        ("right", {"order": None}, "right: order: missing, but the other input has an order.*: name the column"),
        ("left", {"order": None}, "left: order: missing, but the other input has an order"),
    ],
)
def test_a_wrong_input_is_refused_where_it_is_declared(
    sides: tuple[DataFrame, DataFrame], join: Joining, side: str, columns: dict[str, Any], message: str
) -> None:
    bounds = BOUNDS if join is stream_stream_join else {}
    given = {name: table(frame, **COLUMNS) for name, frame in zip(("left", "right"), sides, strict=True)}
    given[side] = given[side]._replace(**columns)
    with pytest.raises(BadInput, match=message):
        join(**given, **bounds)


@pytest.mark.parametrize("join", [table_table_join, stream_table_join, stream_stream_join])
@pytest.mark.parametrize(
    ("options", "message"),
    [({"state_groups": 0}, "state_groups is 0: give a positive number"), ({"join": "right"}, "unknown join 'right'")],
)
def test_a_wrong_option_is_refused_where_it_is_declared(
    sides: tuple[DataFrame, DataFrame], join: Joining, options: dict[str, Any], message: str
) -> None:
    bounds = BOUNDS if join is stream_stream_join else {}
    with pytest.raises(BadInput, match=message):
        join(*(table(frame, **COLUMNS) for frame in sides), **bounds, **options)


def test_a_bare_frame_has_the_columns_key_timestamp_and_value(sides: tuple[DataFrame, DataFrame]) -> None:
    named = [frame.selectExpr("k AS key", "t AS timestamp", "v AS value", "o") for frame in sides]
    bare = table_table_join(*named, join="outer")
    assert bare.columns[0] == "key"
    spelled = table_table_join(*(table(side, key="k", timestamp="t", value="v") for side in sides), join="outer")
    assert [row[1:] for row in bare.collect()] == [row[1:] for row in spelled.collect()] != []
    with pytest.raises(BadInput, match=r"^left: value: 'value' is not in.*[^;]; name its columns: table\(frame, k"):
        table_table_join(*sides)


def test_a_stream_and_a_table_are_declared_alike(sides: tuple[DataFrame, DataFrame]) -> None:
    assert stream(sides[0], **COLUMNS) == table(sides[0], **COLUMNS)


def test_an_unbounded_join_of_streams_is_refused_with_the_documents_reason(sides: tuple[DataFrame, DataFrame]) -> None:
    with pytest.raises(
        BadInput, match="after_ms is missing: an unbounded stream-stream join is refused, because its pred"
    ):
        stream_stream_join(*(stream(side, **COLUMNS) for side in sides), before="1 ms")
