"""The table aggregate on Spark: what is declared, what each stage decides, and one streaming query."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.aggregates import MAX
from streamproof.spark_impl.table_aggregate import table_aggregate


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], "person string, time bigint, n int, country string, pay int, tags array<string>")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_by": "land"}, "group_by: 'land' is not in the input"),
        ({"group_by": "tags"}, "group_by: the column 'tags' is array<string>, which can't be a key"),
        ({"group_by": []}, "group_by: no column named"),
        ({"aggregate": "sum"}, "value: sum needs a column"),
        ({"aggregate": "max", "value": "pay"}, "unknown aggregate 'max': use one of count, sum, list"),
        ({"aggregate": MAX, "value": "pay"}, "max can't subtract"),
        ({"state_groups": 0}, "state_groups is 0"),
        ({"key": "who"}, "key: 'who' is not in the input"),
    ],
)
def test_what_cannot_be_declared_is_refused(people: DataFrame, options: dict[str, Any], message: str) -> None:
    declared: dict[str, Any] = {"key": "person", "timestamp": "time", "group_by": "country", **options}
    with pytest.raises(BadInput, match=message):
        table_aggregate(people, **declared)


def test_a_stream_with_composite_keys_and_groups_is_aggregated_and_restarts(spark: SparkSession) -> None:
    def batch(*rows: tuple[Any, ...]) -> pa.Table:
        names = ["team", "person", "time", "offset", "country", "year", "pay"]
        kinds = [pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string(), pa.int32(), pa.float64()]
        columns = zip(*rows, strict=True)
        return pa.table([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names)

    batches = [
        batch(("t", "ann", 10, 0, "de", 1, 5.0), ("u", "ann", 20, 1, "de", 1, 7.0), (None, "bob", 20, 2, "de", 1, 9.0)),
        batch(("t", "ann", 5, 3, "fr", 1, 6.0), ("u", "ann", 30, 4, "de", 1, 8.0), ("t", "ann", 40, 5, None, 1, 1.0)),
    ]

    def build(frame: DataFrame) -> DataFrame:
        return table_aggregate(
            frame,
            key=["team", "person"],
            timestamp="time",
            order="offset",
            group_by=[F.upper("country").alias("land"), F.col("year")],
            value="pay",
            aggregate="sum",
            report_dropped=True,
        )

    output = run_stream(spark, batches, build, RunOptions(stop_after=(0,)))
    emitted = [(number, row) for number, table in output.batches for row in table.to_pylist()]
    shown = sorted(
        (number, row["cause"], row["land"], row["year"], row["value"], int(row["timestamp"].timestamp() * 1000))
        for number, row in emitted
        if row["change"] != "dropped"
    )
    assert shown == [
        (0, 0, "DE", 1, 5.0, 10),
        (0, 1, "DE", 1, 12.0, 20),
        (1, 3, "DE", 1, 7.0, 20),
        (1, 3, "FR", 1, 6.0, 5),
        (1, 4, "DE", 1, 8.0, 30),
        (1, 5, "FR", 1, 0.0, 40),
    ]
    dropped = [
        (number, row["cause"], row["reason"], row["land"]) for number, row in emitted if row["change"] == "dropped"
    ]
    assert dropped == [(0, 2, "null key", None)]


def test_equal_floating_point_groups_are_one_group(spark: SparkSession) -> None:
    rows = [("a", 1, -0.0), ("b", 2, 0.0), ("c", 3, float("nan")), ("d", 4, float("nan"))]
    frame = spark.createDataFrame(rows, "person string, time bigint, country double")
    emitted = table_aggregate(frame, key="person", timestamp="time", group_by="country").collect()
    assert sorted((str(row["country"]), row["value"]) for row in emitted) == [
        ("0.0", 1),
        ("0.0", 2),
        ("nan", 1),
        ("nan", 2),
    ]
