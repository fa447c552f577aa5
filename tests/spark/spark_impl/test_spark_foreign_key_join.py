"""The foreign-key join on Spark: what is declared, what each stage decides, and a join of a join's changelog."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.foreign_key_join import foreign_key_join
from streamproof.spark_impl.inputs import table


@pytest.fixture(scope="module")
def songs(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], "song string, time bigint, n bigint, title string, artist string, year int")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"foreign_key": "year"}, "foreign_key: it is int, but the key of the right side is string: cast one of them"),
        (
            {"foreign_key": ["artist", "year"]},
            "foreign_key: it is string, int, but the key of the right side is string",
        ),
        ({"foreign_key": "band"}, "foreign_key: 'band' is not in the input"),
        ({"right": {"value": "name"}}, "right: value: 'name' is not in the input"),
        (
            {"left": {"order": "n"}, "right": {"order": "song"}},
            "order: bigint on the left and string on the right clash",
        ),
    ],
)
def test_what_cannot_be_declared_is_refused(songs: DataFrame, options: dict[str, Any], message: str) -> None:
    left = table(songs, **{"key": "song", "timestamp": "time", "value": "title", **options.get("left", {})})
    right = table(songs, **{"key": "artist", "timestamp": "time", "value": "title", **options.get("right", {})})
    with pytest.raises(BadInput, match=message):
        foreign_key_join(**{"foreign_key": "artist", **options, "left": left, "right": right})


def test_equal_floating_point_keys_find_each_other(spark: SparkSession) -> None:
    left = spark.createDataFrame([("zero", 1, -0.0), ("none", 1, float("nan"))], "key string, time bigint, to double")
    right = spark.createDataFrame([(0.0, 0, "x"), (float("nan"), 0, "y")], "key double, time bigint, name string")
    emitted = foreign_key_join(
        table(left, timestamp="time", value="key"),
        table(right, timestamp="time", value="name"),
        foreign_key="to",
    ).collect()
    assert sorted(tuple(row["value"]) for row in emitted) == [("none", "y"), ("zero", "x")]
