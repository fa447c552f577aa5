"""Samza's window operator on Spark: what a data engineer declares and gets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.window_aggregate import window_aggregate


def test_the_windows_of_a_batch_frame_with_a_composite_key_are_complete(spark: SparkSession) -> None:
    rows = [("de", "ann", 0, 1), ("de", "ann", 60_000, 4), ("de", "ann", 90_000, 3), (None, "ann", 10, 2)]
    events = spark.createDataFrame(rows, "country string, user string, time bigint, amount int")
    result = window_aggregate(
        events,
        key=["country", "user"],
        timestamp="time",
        size="1 minute",
        step=timedelta(seconds=60),
        value="amount",
        aggregate="average",
    )
    found = [
        (row["country"], row["user"], int(row["window"]["start"].timestamp()), row["value"])
        for row in result.toArrow().to_pylist()
    ]
    assert found == [("de", "ann", 0, 1.0), ("de", "ann", 60, 3.5)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 10}, "size is 10, which isn't a duration"),
        ({"size": "10 ms", "unit": "tuple"}, "the unit is tuple: give a number of rows"),
        ({"size": "10 ms", "early": 0}, "every_tuples 0"),
        ({"size": "10 ms", "early": "now"}, "early is 'now'"),
        ({"size": "10 ms", "storage": "full"}, "value: storage full emits"),
        ({"size": "10 ms", "aggregate": "sum", "value": "name"}, "can't be summed"),
        ({"size": "10 ms", "value": "nam"}, "'nam' is not in the input"),
    ],
)
def test_a_bad_declaration_is_refused(spark: SparkSession, options: dict[str, Any], message: str) -> None:
    events = spark.createDataFrame([], "key string, time bigint, name string")
    with pytest.raises(BadInput, match=message):
        window_aggregate(events, key="key", timestamp="time", **options)
