"""Chains: an operator's changelog is a valid input of the next one, with the same result as the composed reference."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.properties.checking.fuzzing.chains import differing, drawn_chain
from streamproof.properties.witnesses.chains.composed import ChainChanges
from streamproof.properties.witnesses.chains.on_spark import changelog_on_spark
from streamproof.spark_impl.inputs import table
from streamproof.spark_impl.runtime.inputs import JoinInput
from streamproof.spark_impl.runtime.logic import Arrived, in_order_of
from streamproof.spark_impl.session_windows import session_windows
from streamproof.spark_impl.stream_table_join import stream_table_join
from streamproof.spark_impl.table_table_join import table_table_join

HISTORIES = 60
RIGHT = 30
"""The histories from this one on run with a planted bug, beside those that run as they should."""
BUGS = {"48": "order", "66": "order", "79": "tombstones"}
"""The seeds of chains, each with the planted bug: in which the changes of a row come backwards, or no tombstones."""


def with_bug(changelog: DataFrame, bug: str) -> DataFrame:
    """Return a changelog in which the histories with a bug lose their order, or their tombstones."""
    bugged = F.col("key") >= f"{RIGHT:03d}"
    if bug == "tombstones":
        return changelog.filter(~bugged | F.col("value").isNotNull())
    backwards = F.col("place").withField("step", -F.col("place.step"))
    return changelog.withColumn("place", F.when(bugged, backwards).otherwise(F.col("place")))


@cache
def wrong(spark: SparkSession, seed: str) -> list[int]:
    """Return the histories of a seed's chain that differ from the composed reference."""
    chain, histories = drawn_chain(f"chain {seed}", HISTORIES)

    def on_spark(*given: Any) -> ChainChanges:
        return changelog_on_spark(spark, *given, between=lambda changelog: with_bug(changelog, BUGS.get(seed, "order")))

    return differing(chain, histories, on_spark)


@pytest.mark.parametrize("seed", BUGS)
def test_a_chain_on_spark_is_the_composed_reference(spark: SparkSession, seed: str) -> None:
    assert [number for number in wrong(spark, seed) if number < RIGHT] == []


@pytest.mark.parametrize("seed", BUGS)
def test_a_bug_between_operators_breaks_a_chain(spark: SparkSession, seed: str) -> None:
    assert len([number for number in wrong(spark, seed) if number >= RIGHT]) > 2


@pytest.mark.weekly("five minutes: CI runs three chains")
@pytest.mark.parametrize("seed", range(100, 130))
def test_any_chain_on_spark_is_the_composed_reference(spark: SparkSession, seed: int) -> None:
    chain, histories = drawn_chain(f"chain {seed}", HISTORIES)
    assert differing(chain, histories, lambda *given: changelog_on_spark(spark, *given)) == []


def test_a_place_is_sorted_field_by_field_and_null_goes_first() -> None:
    def arrived(*place: Any) -> Arrived:
        return Arrived(0, [*place], None)

    places = [(-1, None, 0), (-1, None, 1), (0, None, 5), (0, [3, None], 0), (0, [3, 1], 0)]
    rows = [arrived(*place) for place in places]
    assert in_order_of(rows[::-1], lambda row: (row.order, row.timestamp)) == rows


@pytest.fixture(scope="module")
def history(spark: SparkSession) -> DataFrame:
    """A history that has ended, as a batch DataFrame."""
    value = {"v": 1, "ref": None}
    arrived = [("events", 0), ("left", 1), ("events", 3), ("right", 9)]
    found = [(name, "a", value, at, order) for order, (name, at) in enumerate(arrived)]
    schema = "input string, key string, value struct<v: bigint, ref: string>, timestamp bigint, order bigint"
    return spark.createDataFrame(found, schema)


def beside(frame: DataFrame, name: str) -> JoinInput:
    """Another input, in its own order."""
    return table(frame.filter(F.col("input") == name), order="order")


def sessions(frame: DataFrame, emit: str) -> JoinInput:
    """The sessions' changelog, with the window in the value; a tombstone's value is null."""
    emitted = session_windows(
        frame.filter(F.col("input") == "events"),
        key="key",
        timestamp="timestamp",
        order="order",
        value="value.v",
        aggregate="sum",
        gap="4 ms",
        grace="5 ms",
        emit=emit,  # type: ignore[arg-type]
    )
    bounds = [F.unix_millis(f"window.{name}").alias(name) for name in ("start", "end")]
    inside = F.struct(*bounds, F.col("value").alias("sum"))
    return table(emitted.withColumn("value", F.when(F.col("value").isNotNull(), inside)), order="place")


def emitted(result: DataFrame) -> list[Any]:
    return [row.value and row.value.asDict(recursive=True) for row in result.orderBy("ordinal").collect()]


def test_at_the_end_of_a_history_sessions_close_after_all_its_rows(history: DataFrame) -> None:
    result = stream_table_join(sessions(history, "close"), beside(history, "right"))
    session = {"start": 0, "end": 3, "sum": 2}
    assert emitted(result) == [{"left": session, "right": {"v": 1, "ref": None}}]


def test_two_changelogs_are_joined_in_the_order_of_the_rows_that_set_them_off(history: DataFrame) -> None:
    tables = table_table_join(beside(history, "left"), beside(history, "right"), join="left")
    result = table_table_join(sessions(history, "update"), table(tables, order="place"), join="outer")
    first, both = ({"start": 0, "end": end, "sum": total} for end, total in ((0, 1), (3, 2)))
    row = {"v": 1, "ref": None}
    alone, pair = {"left": row, "right": None}, {"left": row, "right": row}
    assert emitted(result) == [
        {"left": first, "right": None},
        {"left": first, "right": alone},
        {"left": None, "right": alone},
        {"left": both, "right": alone},
        {"left": both, "right": pair},
    ]
