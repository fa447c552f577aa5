"""Analyzed plans of Spark, as plans of the reference: the notes on each are those of the job that is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.properties.checking.notes.rules import Note, notes_of
from streamproof.properties.witnesses.job.plan.plans import plan_of

NEVER, LATE, WAITS = "never forgets", "drops late rows", "rows wait"
FILTERED, TIME, LOST = "outer join filtered", "event time among the keys", "rows without a partner"
ORDER = "order of rows"
WITHIN = "paid BETWEEN at AND at + INTERVAL 2 HOURS"


@pytest.fixture(scope="module")
def orders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("orders")
    schema = "id string, at timestamp, amount int, region string"
    return spark.readStream.schema(schema).json(str(folder))


@pytest.fixture(scope="module")
def bills(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("bills")
    return spark.readStream.schema("bill string, paid timestamp, void boolean").json(str(folder))


def notes(frame: DataFrame, mode: str = "append") -> dict[str, Note]:
    skeleton = plan_of(frame._jdf.queryExecution().analyzed(), mode=mode).skeleton
    assert skeleton is not None
    return {note.name: note for note in notes_of(skeleton)}


def timed(orders: DataFrame) -> DataFrame:
    return orders.withWatermark("at", "10 minutes")


def joined(orders: DataFrame, bills: DataFrame, how: str, within: str = WITHIN) -> DataFrame:
    return timed(orders).join(bills.withWatermark("paid", "20 minutes"), F.expr(f"id = bill AND {within}"), how)


Jobs = Callable[[DataFrame, DataFrame], DataFrame]
CASES: dict[str, tuple[Jobs, set[str]]] = {
    "windows": (lambda orders, bills: timed(orders).groupBy("id", F.window("at", "1 hour")).count(), {LATE, WAITS}),
    "windows that hop": (
        lambda orders, bills: timed(orders).groupBy(F.window("at", "1 hour", "15 minutes")).agg(F.max("amount")),
        {LATE, WAITS},
    ),
    "windows of windows": (
        lambda orders, bills: (
            timed(orders)
            .groupBy("id", F.window("at", "5 minutes"))
            .count()
            .groupBy(F.window("window", "1 hour"))
            .agg(F.sum("count"))
        ),
        {LATE, WAITS},
    ),
    "sessions, by an expression": (
        lambda orders, bills: (
            timed(orders)
            .groupBy(F.upper("id").alias("who"), F.session_window("at", "5 minutes").alias("visit"))
            .agg(F.first("amount").alias("amount"))
            .select("who", "visit.start", "amount")
        ),
        {LATE, WAITS, ORDER},
    ),
    "a join": (lambda orders, bills: joined(orders, bills, "inner"), {LATE, LOST}),
    "a left join": (lambda orders, bills: joined(orders, bills, "left"), {LATE, WAITS}),
    "a left join with sums on both sides": (
        lambda orders, bills: joined(
            orders, bills, "left", "at + INTERVAL 10 MINUTES > paid AND paid - INTERVAL 1 MINUTE >= at"
        ),
        {LATE, WAITS},
    ),
    "a filtered left join": (
        lambda orders, bills: joined(orders, bills, "left").where("NOT void AND amount > 3"),
        {FILTERED, LATE, WAITS},
    ),
    "a left join filtered by what is computed": (
        lambda orders, bills: joined(orders, bills, "left").withColumn("day", F.to_date("paid")).where("day > 'x'"),
        {FILTERED, LATE, WAITS},
    ),
    "a left join filtered for rows without a partner": (
        lambda orders, bills: joined(orders, bills, "left").where("void IS NULL OR NOT void"),
        {LATE, WAITS},
    ),
    "a left join filtered with a default": (
        lambda orders, bills: joined(orders, bills, "left").where(~F.coalesce("void", F.lit(False))),
        {LATE, WAITS},
    ),
    "a join without bounds": (lambda orders, bills: joined(orders, bills, "inner", "amount > 0"), {NEVER, LATE, LOST}),
    "a deduplication": (lambda orders, bills: timed(orders).dropDuplicates(["id", "at"]), {LATE, TIME}),
    "a deduplication that forgets": (lambda orders, bills: timed(orders).dropDuplicatesWithinWatermark(["id"]), {LATE}),
    "a deduplication that doesn't": (lambda orders, bills: orders.dropDuplicates(["id"]), {NEVER}),
    "a union": (
        lambda orders, bills: (
            timed(orders.select("id", "at"))
            .union(bills.withWatermark("paid", "1 hour").select("bill", "paid"))
            .groupBy(F.window("at", "1 hour"))
            .count()
        ),
        {LATE, WAITS},
    ),
    "rows of a payload": (
        lambda orders, bills: (
            orders.select(F.from_json("region", "user string, seen timestamp").alias("view"))
            .select("view.*")
            .withWatermark("seen", "1 minute")
            .dropDuplicates(["user", "seen"])
        ),
        {LATE, TIME},
    ),
    "rows as they are": (lambda orders, bills: orders.where("amount > 1").select("id", "at"), set()),
}


@pytest.mark.parametrize(("job", "expected"), CASES.values(), ids=CASES)
def test_the_notes_on_a_plan_of_spark(orders: DataFrame, bills: DataFrame, job: Jobs, expected: set[str]) -> None:
    assert {*notes(job(orders, bills))} == expected


def test_a_lookup_that_loses_rows_is_noted(spark: SparkSession, orders: DataFrame) -> None:
    regions = spark.createDataFrame([("north", 1)], "region string, code int")
    assert {*notes(orders.join(regions, "region"))} == {LOST}
    assert not notes(orders.join(regions, "region", "left"))
    assert {*notes(orders.join(regions, "region", "left").where("code = 1"))} == {FILTERED}
    assert not notes(orders.join(regions, "region", "left").where("amount = 1"))


def test_the_mode_says_whether_groups_are_kept(orders: DataFrame) -> None:
    hours = timed(orders).groupBy(F.window("at", "1 hour")).count()
    assert {*notes(hours, "update")} == {LATE}
    assert "complete mode keeps all groups" in notes(hours, "complete")[NEVER].says


def test_the_times_of_the_slides_of_windows_are_read(orders: DataFrame) -> None:
    hops = timed(orders).groupBy(F.window("at", "1 hour", "15 minutes", "5 minutes")).count()
    assert notes(hops)[WAITS].says.endswith("2024-01-01 00:00:00 waits for 2024-01-01 00:15:00")


def kept(frame: DataFrame, timeout: str) -> DataFrame:
    def keep(key: Any, frames: Any, state: Any) -> Any:
        yield from frames

    return frame.groupBy("id").applyInPandasWithState(keep, "id string", "id string", "append", timeout)


def test_what_is_below_a_function_with_state_is_judged(orders: DataFrame) -> None:
    assert {*notes(kept(orders.dropDuplicates(["id"]), "ProcessingTimeTimeout").dropDuplicates())} == {NEVER}


def test_the_timeouts_of_a_function_with_state_are_judged(orders: DataFrame) -> None:
    assert {*notes(kept(timed(orders), "NoTimeout"))} == {"no timeout"}
    late = notes(kept(timed(orders), "EventTimeTimeout"))
    assert {*late} == {LATE}
    assert "10 minutes or more behind the latest" in late[LATE].says
