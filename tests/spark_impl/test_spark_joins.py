"""The one-stage joins on Spark: what is refused where it is declared, and what users of DataFrames meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.reference.core.errors import BadInput
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
    return emitted(by(*sides, **COLUMNS, report_dropped=True, **options).withColumn("key_of_row", F.col("k")))


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
    result = table_table_join(*sides, **{**COLUMNS, "value": F.struct("v", "n").alias("row")}, right_value="n")
    assert result.columns == ["k", "window", "value", "timestamp", "change", "reason", "cause", "ordinal", "place"]
    assert result.schema["value"].dataType.simpleString() == "struct<left:struct<v:string,n:int>,right:int>"


@pytest.mark.parametrize("join", [table_table_join, stream_table_join, stream_stream_join])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "nope"}, "left: key: 'nope' is not in the input, which has the columns k, t, o, v, n"),
        ({"right_value": "nope"}, "right: value: 'nope' is not in the input"),
        ({"right_timestamp": "v"}, "right: timestamp: the column 'v' is string"),
        ({"right_key": "n"}, "key: string on the left and int on the right clash: cast one of them"),
        ({"right_order": "v"}, "order: bigint on the left and string on the right clash: cast one of them"),
        ({"state_groups": 0}, "state_groups is 0: give a positive number"),
        ({"join": "right"}, "unknown join 'right'"),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_is_made(
    sides: tuple[DataFrame, DataFrame], join: Joining, options: dict[str, Any], message: str
) -> None:
    bounds = BOUNDS if join is stream_stream_join else {}
    with pytest.raises(BadInput, match=message):
        join(*sides, **{**COLUMNS, **bounds, **options})


def test_an_unbounded_join_of_streams_is_refused_with_the_documents_reason(sides: tuple[DataFrame, DataFrame]) -> None:
    with pytest.raises(BadInput, match="after_ms is missing: an unbounded stream-stream join is refused, for its pred"):
        stream_stream_join(*sides, **COLUMNS, before="1 ms")


def test_a_join_that_the_matrix_has_not_is_refused(sides: tuple[DataFrame, DataFrame]) -> None:
    with pytest.raises(BadInput, match="there is no outer join of KStream and KTable"):
        stream_table_join(*sides, **COLUMNS, join="outer")  # type: ignore[arg-type]
