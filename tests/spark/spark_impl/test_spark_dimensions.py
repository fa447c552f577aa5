"""Dimensions on Spark, as they are declared in production: columns of their own, and events in no order."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.spark_impl.scd1 import scd1
from streamproof.spark_impl.scd2 import scd2
from streamproof.spark_impl.sinks.materialize import folded

DAY = "2026-03-%02d 12:00:00"


def events(spark: SparkSession) -> DataFrame:
    rows = [
        ("ann", 3, 1, "U", "silver", "b@x"),
        ("ann", 1, 1, "I", "basic", "a@x"),
        ("bob", 5, 1, "D", "basic", "c@x"),
        ("ann", 3, 2, "U", "gold", "b@x"),
        ("ann", 2, 1, None, "basic", "b@x"),
        ("bob", 4, 1, "U", "basic", "c@x"),
        ("eve", None, 1, "I", "basic", "d@x"),
    ]
    frame = spark.createDataFrame(rows, "id string, day int, offset int, op string, tier string, mail string")
    changed = F.make_timestamp(F.lit(2026), F.lit(3), "day", F.lit(12), F.lit(0), F.lit(0))
    return frame.withColumns({"changed": changed, "at": F.lit(0).cast("bigint")})


def given() -> dict[str, Any]:
    return {
        **{"key": "id", "timestamp": "at", "sequence_by": "changed", "ties": "offset"},
        "value": F.struct("tier", "mail"),
        "deletes": F.col("op") == "D",
    }


def test_the_newest_version_of_a_row_counts_by_a_time_and_a_null_kind_deletes_nothing(spark: SparkSession) -> None:
    emitted = scd1(events(spark), **given(), report_dropped=True)
    table = folded(emitted)
    assert [(row["id"], row["value"]["tier"], f"{row['timestamp']}") for row in table.collect()] == [
        ("ann", "gold", DAY % 3)
    ]
    assert [(row["id"], row["reason"]) for row in emitted.where("change = 'dropped'").collect()] == [
        ("eve", "null sequence")
    ]


def test_versions_have_intervals_and_what_is_not_tracked_changes_within_them(spark: SparkSession) -> None:
    emitted = scd2(events(spark), **given(), track="tier")
    table = folded(emitted).orderBy("id", "window.start")
    found = table.select("id", "value.tier", "value.mail", *(F.dayofmonth(f"window.{at}") for at in ("start", "end")))
    assert [tuple(row) for row in found.collect()] == [
        ("ann", "basic", "b@x", 1, 3),
        ("ann", "gold", "b@x", 3, 31),
        ("bob", "basic", "c@x", 4, 5),
    ]
