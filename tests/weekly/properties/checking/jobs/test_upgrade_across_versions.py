"""Upgrades of Spark: which kinds of state the installed PySpark takes over from the checkpoint of an older PySpark.

The first run makes an environment for each older PySpark, in the user's cache folder.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from streamproof import BadInput, Input, UpgradeRefused, Violated, upgrade
from streamproof.properties.system.installed.requirements import installed, release

pytestmark = pytest.mark.weekly(
    "it installs older PySparks, and what they write and this one reads changes with Spark alone"
)

Job = Callable[..., DataFrame]
CLICKS = Input("user string, at timestamp, amount int", key="user", name="clicks")
VIEWS = Input("user string, at timestamp, amount int", key="user", name="views")
DELAY = "10 minutes"
NAMED = {"spark.sql.streaming.queryEvolution.enableSourceEvolution": "true"}
NAMES_KEPT = {"spark.sql.streaming.offsetLog.formatVersion": "2"}
"""PySpark 4.2 takes names of sources without this setting, but its checkpoints know the sources by position then."""
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


def transformed(clicks: DataFrame, as_rows: bool = False) -> DataFrame:
    from pyspark.sql.streaming import StatefulProcessor  # 3.5 has none

    class Counting(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.number = handle.getValueState("number", "n long")
            self.amounts = handle.getListState("amounts", "amount int")
            self.by_amount = handle.getMapState("by_amount", "amount int", "n long")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            number = int(self.number.get()[0]) if self.number.exists() else 0
            for amount in values_of(rows, "amount"):
                number += 1
                if not pd.isna(amount):
                    of = (int(amount),)
                    before = self.by_amount.getValue(of)[0] if self.by_amount.containsKey(of) else 0
                    self.amounts.appendValue(of)
                    self.by_amount.updateValue(of, (before + 1,))
            self.number.update((number,))
            counted = sum(int(value[0]) for value in self.by_amount.values())
            amounts = len([*self.amounts.get()])
            yield emitted(as_rows, user=key[0], number=number, amounts=amounts, counted=counted)

    by_user, schema = clicks.groupBy("user"), "user string, number long, amounts long, counted long"
    transform = by_user.transformWithState if as_rows else by_user.transformWithStateInPandas
    return transform(Counting(), schema, "append", "none")


def timed(clicks: DataFrame, as_rows: bool = False) -> DataFrame:
    from pyspark.sql.streaming import StatefulProcessor

    class Timing(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.handle, self.number = handle, handle.getValueState("number", "n long")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            number, latest_ms = int(self.number.get()[0]) if self.number.exists() else 0, 0
            for time_ms in values_of(rows, "ms"):
                number, latest_ms = number + 1, max(latest_ms, int(time_ms))
            self.number.update((number,))
            self.handle.registerTimer(latest_ms + 1_800_000)
            yield emitted(as_rows, user=key[0], number=number)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
            yield emitted(as_rows, user=key[0], number=-int(self.number.get()[0]))

    rows = clicks.withWatermark("at", DELAY).select("user", "at", F.unix_millis("at").alias("ms"))
    by_user, schema = rows.groupBy("user"), "user string, number long"
    transform = by_user.transformWithState if as_rows else by_user.transformWithStateInPandas
    return transform(Timing(), schema, "append", "eventTime")


def values_of(rows: Iterator[Any], column: str) -> Iterator[Any]:
    """Yield the values of a column of rows or of pandas frames."""
    for row in rows:
        yield from row[column] if isinstance(row, pd.DataFrame) else [row[column]]


def emitted(as_row: bool, **values: Any) -> Any:
    """Return a result of a processor, as a row or as a pandas frame."""
    return Row(**values) if as_row else pd.DataFrame([values])


def transformed_as_rows(clicks: DataFrame) -> DataFrame:
    return transformed(clicks, as_rows=True)


def timed_as_rows(clicks: DataFrame) -> DataFrame:
    return timed(clicks, as_rows=True)


def both(clicks: DataFrame, views: DataFrame) -> DataFrame:
    return watermarked(clicks).union(watermarked(views))


def both_swapped(clicks: DataFrame, views: DataFrame) -> DataFrame:
    return both(views, clicks)


def watermarked(clicks: DataFrame) -> DataFrame:
    return clicks.withWatermark("at", DELAY).select("user", "at", "amount")


KINDS: dict[str, tuple[str, Job, Job, dict[str, Any]]] = {
    "a windowed aggregate": ("3.5", windowed, windowed, {}),
    "a windowed aggregate, in update mode": ("3.5", windowed, windowed, {"mode": "update"}),
    "a windowed aggregate, whose state is in files": ("3.5", windowed, windowed, {"old_settings": HDFS}),
    "sliding windows": ("3.5", sliding, sliding, {}),
    "session windows": ("3.5", sessions, sessions, {}),
    "totals by key": ("3.5", totals, totals, {"mode": "update"}),
    "totals by key, in complete mode": ("3.5", totals, totals, {"mode": "complete"}),
    "dropDuplicates": ("3.5", distinct, distinct, {}),
    "dropDuplicatesWithinWatermark": ("3.5", distinct_within, distinct_within, {}),
    "an inner join": ("3.5", joined, joined, {}),
    "a left join": ("3.5", left_joined, left_joined, {}),
    "applyInPandasWithState": ("3.5", with_state, with_state, {}),
    "transformWithStateInPandas": ("4.0", transformed, transformed, {}),
    "timers": ("4.0", timed, timed, {}),
    "transformWithState": ("4.1", transformed_as_rows, transformed_as_rows, {}),
    "timers, of transformWithState": ("4.1", timed_as_rows, timed_as_rows, {}),
    "inputs in another order, by name": ("4.2", both, both_swapped, {"settings": NAMED, "old_settings": NAMES_KEPT}),
}
"""Each kind of state: the first PySpark that has it, the old job, the new one, and more arguments."""
HERE = installed("pyspark")
VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1")
"""The releases that docs/upgrades.md names."""


def pairs() -> Iterator[Any]:
    for version in VERSIONS:
        for kind, (since, *_) in KINDS.items():
            if release(since) <= release(version) < release(HERE):
                yield pytest.param(version, kind, id=f"{version}-{kind}")


def inputs_of(job: Job) -> list[Input]:
    return [CLICKS, VIEWS] if "views" in inspect.signature(job).parameters else [CLICKS]


@pytest.mark.parametrize(("version", "kind"), [*pairs()])
def test_a_job_goes_on_from(version: str, kind: str) -> None:
    _, old, new, more = KINDS[kind]
    report = upgrade(old, new, *inputs_of(new), from_pyspark=version, histories=60, **more)
    assert f"on PySpark {version} as" in str(report)


@pytest.mark.parametrize(
    ("version", "job", "said"),
    [
        ("3.5.9", transformed, "ImportError: cannot import name 'StatefulProcessor' from"),
        ("4.0.5", transformed_as_rows, "AttributeError: 'GroupedData' object has no attribute 'transformWithState'"),
    ],
)
def test_what_the_older_pyspark_lacks_is_named_with_its_line(version: str, job: Job, said: str) -> None:
    with pytest.raises(BadInput, match=rf"PySpark {version}: {job.__name__} .* raised {said}.*, in line \d+: "):
        upgrade(job, job, CLICKS, from_pyspark=version, histories=20)


@pytest.mark.parametrize(
    ("version", "old", "new", "more", "said"),
    [
        ("4.0.5", transformed, transformed_as_rows, {}, "stateful operators can't be added, removed or replaced"),
        ("4.1.4", both, both, {"settings": NAMED}, "Cannot enable streaming source evolution on a checkpoint"),
        ("4.2.1", both, both, {"settings": NAMED}, "Cannot enable streaming source evolution on a checkpoint"),
    ],
    ids=[
        "rows for frames",
        "names of sources, which the older PySpark hasn't",
        "names of sources, which it didn't keep",
    ],
)
def test_spark_refuses_to_go_on(version: str, old: Job, new: Job, more: dict[str, Any], said: str) -> None:
    with pytest.raises(UpgradeRefused, match=said) as refused:
        upgrade(old, new, *inputs_of(new), from_pyspark=version, histories=20, **more)
    assert f"on PySpark {version}, whatever rows arrive: " in str(refused.value)


def test_a_change_of_the_job_is_found_across_versions() -> None:
    with pytest.raises(Violated, match="going on from the checkpoint that its earlier version left"):
        upgrade(windowed, windowed_swapped, CLICKS, from_pyspark="4.1.4", histories=60)


def test_a_function_of_both_outputs_is_given_the_rows_of_the_older_pyspark() -> None:
    def the_same(old: list[list[dict[str, Any]]], new: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
        assert [sorted(map(str, rows)) for rows in old] == [sorted(map(str, rows)) for rows in new]
        return old

    upgrade(windowed, windowed, CLICKS, from_pyspark="4.1.4", histories=60, expect=the_same)


def test_a_release_that_there_is_not_is_refused_by_pip_s_last_line() -> None:
    with pytest.raises(BadInput, match=r"PySpark 4\.1\.99 can't be installed .*: No matching distribution found"):
        upgrade(windowed, windowed, CLICKS, from_pyspark="4.1.99")
