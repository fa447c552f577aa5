"""Range aggregates on Spark: what a data engineer declares and gets."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.range_aggregate import range_aggregate


def test_a_row_sees_the_rows_before_it_that_have_arrived(spark: SparkSession) -> None:
    rows = [("de", "ann", 0, 1, 0), ("de", "ann", 20, 4, 1), ("de", "ann", 10, 2, 2), (None, "ann", 10, 2, 3)]
    events = spark.createDataFrame(rows, "country string, user string, time bigint, amount int, offset int")
    result = range_aggregate(
        events,
        key=["country", "user"],
        timestamp="time",
        preceding="10 ms",
        value="amount",
        order="offset",
        aggregate="average",
        report_dropped=True,
    )
    found = sorted((row["cause"], row["value"], row["reason"]) for row in result.toArrow().to_pylist())
    assert found == [(0, 1.0, None), (1, 4.0, None), (2, 1.5, None), (3, None, "null key")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preceding": "soon"}, "preceding is 'soon'"),
        ({"preceding": "-1 ms"}, "preceding_ms is -1"),
        ({"preceding": "1 ms", "aggregate": "median"}, "unknown aggregate 'median'"),
        ({"preceding": "1 ms", "aggregate": "sum"}, "value: sum needs a column"),
        ({"preceding": "1 ms", "aggregate": "average", "value": "name"}, "which has no average"),
        ({"preceding": "1 ms", "retention": "-1 ms"}, "can't be negative"),
    ],
)
def test_a_bad_declaration_is_refused(spark: SparkSession, options: dict[str, Any], message: str) -> None:
    events = spark.createDataFrame([], "key string, time bigint, name string")
    with pytest.raises(BadInput, match=message):
        range_aggregate(events, key="key", timestamp="time", **options)
