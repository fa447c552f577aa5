"""Upgrades of Spark: which kinds of state the installed PySpark takes over from the checkpoint of an older PySpark.

The first run makes an environment for each older PySpark, in the user's cache folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from streamproof import BadInput, Input, Violated, upgrade
from streamproof.properties.system.requirements import installed, release

pytestmark = [
    pytest.mark.spark,
    pytest.mark.weekly("it installs older PySparks, and what they write and this one reads changes with Spark alone"),
]

Job = Callable[..., DataFrame]
CLICKS = Input("user string, at timestamp, amount int", key="user", name="clicks")
VIEWS = Input("user string, at timestamp, amount int", key="user", name="views")
DELAY = "10 minutes"
HDFS = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "HDFSBackedStateStoreProvider"
}


def windowed(clicks: DataFrame) -> DataFrame:
    by_hour = clicks.withWatermark("at", DELAY).groupBy("user", F.window("at", "1 hour"))
    return by_hour.agg(F.sum("amount").alias("total"), F.count("*").alias("number"))


def windowed_swapped(clicks: DataFrame) -> DataFrame:
    by_hour = clicks.withWatermark("at", DELAY).groupBy("user", F.window("at", "1 hour"))
    return by_hour.agg(F.count("*").alias("number"), F.sum("amount").alias("total"))


def sliding(clicks: DataFrame) -> DataFrame:
    by_half_hour = clicks.withWatermark("at", DELAY).groupBy("user", F.window("at", "1 hour", "30 minutes"))
    return by_half_hour.agg(F.avg("amount").alias("mean"), F.max("at").alias("last"))


def sessions(clicks: DataFrame) -> DataFrame:
    by_session = clicks.withWatermark("at", DELAY).groupBy("user", F.session_window("at", "30 minutes"))
    return by_session.agg(F.sum("amount").alias("total"))


def totals(clicks: DataFrame) -> DataFrame:
    return clicks.groupBy("user").agg(F.sum("amount").alias("total"))


def distinct(clicks: DataFrame) -> DataFrame:
    return clicks.withWatermark("at", DELAY).dropDuplicates(["user", "at"])


def distinct_within(clicks: DataFrame) -> DataFrame:
    return clicks.withWatermark("at", DELAY).dropDuplicatesWithinWatermark(["user", "amount"])


def joined(clicks: DataFrame, views: DataFrame, how: str = "inner") -> DataFrame:
    left = clicks.withWatermark("at", DELAY).select("user", F.col("at").alias("clicked"), "amount")
    right = views.withWatermark("at", DELAY).select(F.col("user").alias("viewer"), F.col("at").alias("viewed"))
    when = "user = viewer AND viewed >= clicked AND viewed <= clicked + INTERVAL 1 hour"
    return left.join(right, F.expr(when), how)


def left_joined(clicks: DataFrame, views: DataFrame) -> DataFrame:
    return joined(clicks, views, "leftOuter")


def counting(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    number = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
    state.update((number,))
    yield pd.DataFrame({"user": [key[0]], "number": [number]})


def with_state(clicks: DataFrame) -> DataFrame:
    schema, timeout = "user string, number long", GroupStateTimeout.NoTimeout
    return clicks.groupBy("user").applyInPandasWithState(counting, schema, "number long", "append", timeout)


def transformed(clicks: DataFrame) -> DataFrame:
    from pyspark.sql.streaming import StatefulProcessor  # 3.5 has none

    class Counting(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.number = handle.getValueState("number", "n long")
            self.amounts = handle.getListState("amounts", "amount int")
            self.by_amount = handle.getMapState("by_amount", "amount int", "n long")

        def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
            number = int(self.number.get()[0]) if self.number.exists() else 0
            for amount in (amount for frame in rows for amount in frame["amount"]):
                number += 1
                if not pd.isna(amount):
                    of = (int(amount),)
                    before = self.by_amount.getValue(of)[0] if self.by_amount.containsKey(of) else 0
                    self.amounts.appendValue(of)
                    self.by_amount.updateValue(of, (before + 1,))
            self.number.update((number,))
            counted = sum(int(value[0]) for value in self.by_amount.values())
            amounts = len([*self.amounts.get()])
            yield pd.DataFrame({"user": [key[0]], "number": [number], "amounts": [amounts], "counted": [counted]})

    schema = "user string, number long, amounts long, counted long"
    return clicks.groupBy("user").transformWithStateInPandas(Counting(), schema, "append", "none")


def timed(clicks: DataFrame) -> DataFrame:
    from pyspark.sql.streaming import StatefulProcessor

    class Timing(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.handle, self.number = handle, handle.getValueState("number", "n long")

        def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
            number, latest_ms = int(self.number.get()[0]) if self.number.exists() else 0, 0
            for time in (time for frame in rows for time in frame["at"]):
                number, latest_ms = number + 1, max(latest_ms, int(pd.Timestamp(time).timestamp() * 1000))
            self.number.update((number,))
            self.handle.registerTimer(latest_ms + 1_800_000)
            yield pd.DataFrame({"user": [key[0]], "number": [number]})

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
            yield pd.DataFrame({"user": [key[0]], "number": [-int(self.number.get()[0])]})

    by_user, schema = clicks.withWatermark("at", DELAY).groupBy("user"), "user string, number long"
    return by_user.transformWithStateInPandas(Timing(), schema, "append", "eventTime")


KINDS: dict[str, tuple[Job, dict[str, Any]]] = {
    "a windowed aggregate": (windowed, {}),
    "a windowed aggregate, in update mode": (windowed, {"mode": "update"}),
    "a windowed aggregate, whose state is in files": (windowed, {"old_settings": HDFS}),
    "sliding windows": (sliding, {}),
    "session windows": (sessions, {}),
    "totals by key": (totals, {"mode": "update"}),
    "dropDuplicates": (distinct, {}),
    "dropDuplicatesWithinWatermark": (distinct_within, {}),
    "an inner join": (joined, {}),
    "a left join": (left_joined, {}),
    "applyInPandasWithState": (with_state, {}),
    "transformWithStateInPandas": (transformed, {}),
    "timers": (timed, {}),
}
HERE = installed("pyspark")


def changes() -> Iterator[Any]:
    for version in ("3.5", "4.0", "4.1"):
        for kind, (job, _) in KINDS.items():
            if release(version) < release(HERE)[:2] and not (version == "3.5" and job in (transformed, timed)):
                yield pytest.param(version, kind, id=f"{version}-{kind}")


@pytest.mark.parametrize(("version", "kind"), [*changes()])
def test_a_job_goes_on_from(version: str, kind: str) -> None:
    job, more = KINDS[kind]
    inputs = [CLICKS, VIEWS] if job in (joined, left_joined) else [CLICKS]
    report = upgrade(job, job, *inputs, from_pyspark=version, histories=60, **more)
    assert f"on PySpark {version}." in str(report)


def test_a_change_of_the_job_is_found_across_versions() -> None:
    with pytest.raises(Violated, match="going on from the checkpoint that its earlier version left"):
        upgrade(windowed, windowed_swapped, CLICKS, from_pyspark="4.1", histories=60)


def test_a_function_of_both_outputs_is_given_the_rows_of_the_older_pyspark() -> None:
    def the_same(old: list[list[dict[str, Any]]], new: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
        assert [sorted(map(str, rows)) for rows in old] == [sorted(map(str, rows)) for rows in new]
        return old

    upgrade(windowed, windowed, CLICKS, from_pyspark="4.1", histories=60, expect=the_same)


def test_a_release_that_there_is_not_is_refused_by_pip_s_last_line() -> None:
    with pytest.raises(BadInput, match=r"PySpark 4\.1\.99 can't be installed .*: No matching distribution found"):
        upgrade(windowed, windowed, CLICKS, from_pyspark="4.1.99")
