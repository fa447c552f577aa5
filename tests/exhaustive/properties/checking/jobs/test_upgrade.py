"""Upgrades of jobs: which changes go on from the checkpoint, which Spark refuses, which are silently different."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor
from streamproof import (
    BadInput,
    Input,
    JobReport,
    Sink,
    StreamproofError,
    UpgradeRefused,
    Violated,
    upgrade,
    windows,
)
from streamproof.properties.checking.jobs import upgrade as upgrading
from streamproof.properties.system.installed.environments import python_of
from streamproof.properties.system.installed.requirements import installed
from streamproof.properties.witnesses.job import other_pyspark
from streamproof.properties.witnesses.job.query.upgrades import UpgradeRun

Job = Callable[..., DataFrame]
CLICKS = Input("user string, at timestamp, amount int, other int", key="user", name="clicks")
VIEWS = Input("user string, at timestamp, amount int", key="user", name="views")
NAMED = {"spark.sql.streaming.queryEvolution.enableSourceEvolution": "true"}
DELAY = "10 minutes"
INSTALLED = installed("pyspark")
HISTORIES = 60
AVRO = {"spark.sql.streaming.stateStore.encodingFormat": "avro"}
ONE = {"spark.sql.shuffle.partitions": "1"}
OF_PROCESSOR: dict[str, Any] = {"histories": 20, "settings": ONE}
"""A processor in Python takes longer with each history and partition, and these show what they are to show."""
IN_AVRO = {**OF_PROCESSOR, "settings": {**ONE, **AVRO}}


def same(frame: DataFrame) -> DataFrame:
    return frame


def aggregate(
    *aggregates: Callable[[], Any],
    delay: str = DELAY,
    size: str = "1 hour",
    slide: str | None = None,
    keys: Sequence[str] = ("user",),
    before: Job = same,
    after: Job = same,
) -> Job:
    """Return a job that aggregates by user and window."""

    def by_window(clicks: DataFrame) -> DataFrame:
        groups = before(clicks).withWatermark("at", delay).groupBy(*keys, F.window("at", size, slide))
        return after(groups.agg(*(aggregate() for aggregate in aggregates or (total,))))

    return by_window


def total() -> Any:
    return F.sum("amount").alias("total")


def count() -> Any:
    return F.count("*").alias("count")


def counting(schema: str, variable: str = "counts", name: str = "Counting", *more: int) -> Job:
    """Return a job that counts rows by user, in a state variable of a schema whose first field is the count."""

    class Counting(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.counts = handle.getValueState(variable, schema)

        def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
            number = sum(len(frame) for frame in rows)
            if self.counts.exists():
                number += int(self.counts.get()[0])
            self.counts.update((number, *more))
            yield pd.DataFrame({"user": [key[0]], "number": [number]})

    Counting.__name__ = name

    def counts(clicks: DataFrame) -> DataFrame:
        return clicks.groupBy("user").transformWithStateInPandas(
            Counting(), "user string, number long", "append", "none"
        )

    return counts


def joining(how: str = "inner", bound: str = "1 hour", *, swapped: bool = False) -> Job:
    """Return a job that joins clicks with the views after them."""

    def joined(clicks: DataFrame, views: DataFrame) -> DataFrame:
        left = clicks.withWatermark("at", DELAY).select("user", F.col("at").alias("clicked"), "amount")
        right = views.withWatermark("at", DELAY).select(F.col("user").alias("viewer"), F.col("at").alias("viewed"))
        when = f"user = viewer AND viewed >= clicked AND viewed <= clicked + INTERVAL {bound}"
        return right.join(left, F.expr(when), how) if swapped else left.join(right, F.expr(when), how)

    return joined


def watermarked(clicks: DataFrame) -> DataFrame:
    return clicks.withWatermark("at", DELAY).select("user", "at", "amount")


def both(clicks: DataFrame, views: DataFrame) -> DataFrame:
    return watermarked(clicks).union(watermarked(views))


def both_swapped(clicks: DataFrame, views: DataFrame) -> DataFrame:
    return watermarked(views).union(watermarked(clicks))


def only_clicks(clicks: DataFrame, views: DataFrame) -> DataFrame:
    return watermarked(clicks)


def only_views(clicks: DataFrame, views: DataFrame) -> DataFrame:
    return watermarked(views)


def distinct(*columns: str) -> Job:
    return lambda clicks: clicks.withWatermark("at", DELAY).dropDuplicates([*columns])


def distinct_within(clicks: DataFrame) -> DataFrame:
    return clicks.withWatermark("at", DELAY).dropDuplicatesWithinWatermark(["user", "at"])


def stateless(clicks: DataFrame) -> DataFrame:
    return clicks.select("user", "at", "amount")


def doubled(result: DataFrame) -> DataFrame:
    return result.withColumn("total", 2 * F.col("total"))


def positive(clicks: DataFrame) -> DataFrame:
    return clicks.where("amount > 1")


GO_ON: dict[str, tuple[Job, Job, dict[str, Any]]] = {
    "the code is unchanged": (aggregate(), aggregate(), {}),
    "a projection after the aggregate": (aggregate(), aggregate(after=doubled), {}),
    "a column of the result renamed": (
        aggregate(),
        aggregate(after=lambda one: one.withColumnRenamed("total", "sum")),
        {},
    ),
    "a watermark longer, for rows that are late for neither": (
        aggregate(),
        aggregate(delay="20 minutes"),
        {"out_of_order": DELAY},
    ),
    "a watermark added to a job without state": (stateless, watermarked, {}),
    "append for update": (aggregate(), aggregate(), {"old_mode": "update"}),
    "update for append": (aggregate(), aggregate(), {"mode": "update", "old_mode": "append"}),
    "fewer partitions": (aggregate(), aggregate(), {"old_settings": {"spark.sql.shuffle.partitions": 5}}),
    "another state store provider, which Spark ignores": (
        aggregate(),
        aggregate(),
        {
            "old_settings": {
                "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
                "HDFSBackedStateStoreProvider"
            }
        },
    ),
    "a trigger that doesn't run batches without data": (aggregate(), aggregate(), {"trigger": "available_now"}),
    "a class renamed": (counting("n long"), counting("n long", name="Renamed"), OF_PROCESSOR),
    "a field of the state renamed": (counting("n long"), counting("m long"), OF_PROCESSOR),
    "a field of the state widened, in Avro": (counting("n int"), counting("n long"), IN_AVRO),
    "a field added to the state, in Avro": (
        counting("n long"),
        counting("n long, m int", "counts", "Counting", 1),
        IN_AVRO,
    ),
    "a field of the state removed, in Avro": (
        counting("n long, m int", "counts", "Counting", 1),
        counting("n long"),
        IN_AVRO,
    ),
    "inputs in another order, by name": (both, both_swapped, {"settings": NAMED}),
    "an input added, by name": (only_clicks, both, {"settings": NAMED}),
    "an input dropped, by name": (both, only_clicks, {"settings": NAMED}),
    "a join, unchanged": (joining(), joining(), {}),
    "a left join for an inner join": (joining(), joining("left"), {}),
    "an inner join for a left join": (joining("left"), joining(), {}),
    "a bound of an inner join shorter": (joining(bound="2 hours"), joining(), {}),
    "the state repartitioned offline": (aggregate(), aggregate(), {"repartition": 5}),
    "the state of a processor repartitioned offline": (
        counting("n long"),
        counting("n long"),
        {"repartition": 5, **OF_PROCESSOR},
    ),
    "the state of a join repartitioned offline": (joining(), joining(), {"repartition": 1}),
}
OPERATOR = "stateful operators can't be added, removed or replaced"
SCHEMA = "a stateful operator must keep the schema of its state"
SOURCES = "the number of sources, and their order, must stay the same"
REFUSED: dict[str, tuple[Job, Job, str, dict[str, Any]]] = {
    "an aggregate added": (aggregate(), aggregate(total, count), SCHEMA, {}),
    "an aggregate removed": (aggregate(total, count), aggregate(), SCHEMA, {}),
    "a key added": (aggregate(), aggregate(keys=("user", "other")), SCHEMA, {}),
    "a column of a deduplication added": (distinct("user", "at"), distinct("user", "at", "amount"), SCHEMA, {}),
    "another deduplication": (distinct("user", "at"), distinct_within, OPERATOR, {}),
    "an operator removed": (aggregate(), watermarked, OPERATOR, {}),
    "an operator added": (watermarked, aggregate(), OPERATOR, {}),
    "an input added": (only_clicks, both, SOURCES, {}),
    "an input dropped": (both, only_clicks, SOURCES, {}),
    "an input replaced": (only_clicks, only_views, SOURCES, {}),
    "inputs in another order": (both, both_swapped, SOURCES, {}),
    "the sides of a join swapped": (joining(), joining(swapped=True), SOURCES, {}),
    "inputs known by name, and before by position": (
        both,
        both,
        "Cannot enable streaming source evolution on a checkpoint that was created without it",
        {"settings": NAMED, "old_settings": dict.fromkeys(NAMED, "false")},
    ),
    "a field of the state widened": (counting("n int"), counting("n long"), SCHEMA, OF_PROCESSOR),
    "a field of the state narrowed": (counting("n long"), counting("n int"), SCHEMA, OF_PROCESSOR),
    "a field of the state narrowed, in Avro": (counting("n long"), counting("n int"), SCHEMA, IN_AVRO),
    "a field added to the state": (
        counting("n long"),
        counting("n long, m int", "counts", "Counting", 1),
        SCHEMA,
        OF_PROCESSOR,
    ),
    "a field of the state renamed, in Avro": (
        counting("n long"),
        counting("m long"),
        "TypeError: int() argument must be a string, a bytes-like object or a real number, not 'NoneType'",
        IN_AVRO,
    ),
}
DIFFER: dict[str, tuple[Job, Job, dict[str, Any]]] = {
    "aggregates of one type in another order": (aggregate(total, count), aggregate(count, total), {}),
    "an aggregate of another column": (aggregate(), aggregate(lambda: F.sum("other").alias("total")), {}),
    "the size of a window": (aggregate(), aggregate(size="30 minutes"), {}),
    "a window that slides": (aggregate(), aggregate(slide="30 minutes"), {}),
    "a filter before the aggregate": (aggregate(), aggregate(before=positive), {}),
    "a watermark longer": (aggregate(), aggregate(delay="20 minutes"), {}),
    "a watermark shorter": (aggregate(delay="30 minutes"), aggregate(delay="5 minutes"), {}),
    "a state variable renamed": (counting("n long"), counting("n long", "others"), OF_PROCESSOR),
    "a bound of a join longer": (joining(), joining(bound="2 hours"), {}),
    "a bound of a left join shorter": (joining("left", "2 hours"), joining("left"), {}),
}


IN_EACH_COMMIT = {
    "the code is unchanged",
    "inputs in another order, by name",
    "an aggregate added",
    "an input dropped",
}
weekly = pytest.mark.weekly("what Spark makes of a change is up to its version: CI asks about four changes")


def each(changes: Collection[str]) -> list[Any]:
    """Return the parameters of a test of changes; most are asked about weekly."""
    return [pytest.param(name, marks=[] if name in IN_EACH_COMMIT else weekly) for name in changes]


def inputs_of(job: Job) -> list[Input]:
    return [CLICKS, VIEWS] if job.__code__.co_argcount == 2 else [CLICKS]


@pytest.fixture
def partitions(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return the numbers of partitions of state that upgraded queries leave."""
    found, run_all = set(), UpgradeRun.run_all

    def counted(upgrade: UpgradeRun) -> None:
        run_all(upgrade)
        found.add(len([*(upgrade.query.checkpoint / "state" / "0").glob("[0-9]*")]))

    monkeypatch.setattr(UpgradeRun, "run_all", counted)
    return found


@pytest.mark.parametrize("change", each(GO_ON))
def test_a_job_goes_on_after(change: str, partitions: set[int]) -> None:
    old, new, more = GO_ON[change]
    report = upgrade(old, new, *inputs_of(new), **{"histories": HISTORIES, **more})
    expecting = re.findall(r"rows were expected after that on (\d+) histories", str(report))
    assert len(expecting) == 3
    assert min(map(int, expecting)) > 3
    assert "continues from the checkpoint of" in str(report)
    if more.get("repartition") == 5:  # Spark leaves the folders of partitions that it no longer reads
        assert partitions == {5}


@pytest.mark.parametrize("change", each(REFUSED))
def test_spark_refuses_to_go_on_after(change: str) -> None:
    old, new, said, more = REFUSED[change]
    with pytest.raises(UpgradeRefused) as refused:
        upgrade(old, new, *inputs_of(new), **{"histories": 10, **more})
    assert said in str(refused.value)
    assert "can't continue from the checkpoint of" in str(refused.value)
    assert "streamproof-" not in str(refused.value)
    assert refused.value.checked.verdict == "violated"


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("change", each(DIFFER))
def test_a_job_goes_on_with_other_rows_after(change: str, tmp_path: Path) -> None:
    old, new, more = DIFFER[change]
    with pytest.raises(Violated, match="going on from the checkpoint that its earlier version left after batch") as it:
        upgrade(old, new, *inputs_of(new), **{"histories": HISTORIES, **more}, folder=tmp_path)
    assert it.value.counterexample.history.variation["law"] == "an upgrade"
    assert [it.value.path] == [*tmp_path.glob("an-upgrade/*")]


@pytest.mark.parametrize(("job", "partitions"), [(aggregate(), 2), (stateless, 5)], ids=["the same", "no state"])
def test_a_repartition_that_spark_refuses_is_named_with_the_remedy(job: Job, partitions: int) -> None:
    with pytest.raises(
        BadInput, match=rf"repartition={partitions}: Spark refuses to repartition .*: .*: give another number"
    ) as it:
        upgrade(job, job, CLICKS, histories=20, repartition=partitions)
    assert "calling" not in str(it.value)


def test_rows_may_come_in_another_batch_if_both_versions_together_emit_what_a_run_from_the_start_does() -> None:
    report = upgrade(
        aggregate(delay="30 minutes"), aggregate(delay="5 minutes"), CLICKS, histories=60, out_of_order="5 minutes"
    )
    assert "rows are in another batch than in a run from the start" in str(report)


def test_a_rule_says_what_both_versions_emit() -> None:
    rule = windows(size="1 hour", delay=DELAY, aggregates={"total": ("sum", "amount")})
    report = upgrade(aggregate(), aggregate(), CLICKS, histories=60, expect=rule)
    assert report.comparing == "batches"
    with pytest.raises(BadInput, match="which requires the same sources and watermarks"):
        upgrade(stateless, aggregate(), CLICKS, histories=20, expect=rule)


def fails_when_it_runs(clicks: DataFrame) -> DataFrame:
    return clicks.select("user", F.raise_error(F.lit("no")).alias("amount"))


@pytest.mark.weekly("half a minute, for a rare failure")
def test_an_old_version_that_fails_by_itself_is_no_refused_upgrade() -> None:
    def plain(clicks: DataFrame) -> DataFrame:
        return clicks.select("user", F.lit("").alias("amount"))

    with pytest.raises(
        StreamproofError, match=r"fails_when_it_runs \(.*test_upgrade.py:\d+\): the Spark query failed: .*no"
    ):
        upgrade(fails_when_it_runs, plain, CLICKS, histories=8)
    with pytest.raises(StreamproofError, match=r"the Spark query failed: .*no") as failed:
        upgrade(plain, fails_when_it_runs, CLICKS, histories=8)
    assert "can't continue" not in str(failed.value)


@pytest.mark.usefixtures("unshrunk")
def test_a_sink_goes_on_with_its_table_or_is_refused_beside_a_function(tmp_path: Path) -> None:
    def keep(clicks: DataFrame, target: str, checkpoint: str) -> Any:
        def append(rows: DataFrame, batch: int) -> None:
            rows.write.mode("append").parquet(target)

        return clicks.writeStream.option("checkpointLocation", checkpoint).foreachBatch(append).start()

    def begin_anew(clicks: DataFrame, target: str, checkpoint: str) -> Any:
        return keep(clicks, target, f"{checkpoint}-2")

    report = upgrade(Sink.parquet(keep), Sink.parquet(keep), CLICKS, histories=30)
    assert report.comparing == "end"
    with pytest.raises(Violated):  # the rows before the upgrade are written twice
        upgrade(Sink.parquet(keep), Sink.parquet(begin_anew), CLICKS, histories=30)
    with pytest.raises(BadInput, match="give both versions a Sink, or none"):
        upgrade(Sink.parquet(keep), stateless, CLICKS)


def test_only_the_old_version_runs_under_its_settings() -> None:
    seen: dict[str, set[str]] = {"old": set(), "new": set()}

    def noting(version: str) -> Job:
        def job(clicks: DataFrame) -> DataFrame:
            seen[version].add(str(clicks.sparkSession.conf.get("spark.sql.shuffle.partitions")))
            return stateless(clicks)

        return job

    upgrade(noting("old"), noting("new"), CLICKS, histories=60, old_settings={"spark.sql.shuffle.partitions": 5})
    assert seen["old"] == {"5"}
    assert "5" not in seen["new"]


def hourly(clicks: DataFrame) -> DataFrame:
    return aggregate(total, count)(clicks)


def hourly_swapped(clicks: DataFrame) -> DataFrame:
    return aggregate(count, total)(clicks)


@pytest.mark.usefixtures("unshrunk")
def test_a_change_and_a_failure_are_found_in_a_process_of_its_own_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    with other_pyspark.PySparkProcess(python_of(INSTALLED), INSTALLED) as process:
        monkeypatch.setattr(upgrading, "PySparkProcess", lambda *of: contextlib.nullcontext(process))
        with pytest.raises(Violated, match="going on from the checkpoint that its earlier version left after batch"):
            upgrade(hourly, hourly_swapped, CLICKS, histories=HISTORIES, from_pyspark=INSTALLED)
        failed = rf"fails_when_it_runs .* on PySpark {INSTALLED}: .*query failed: .*no"
        with pytest.raises(StreamproofError, match=failed):
            upgrade(fails_when_it_runs, stateless, CLICKS, histories=8, from_pyspark=INSTALLED)


@weekly
def test_an_unchanged_job_is_no_false_alarm_in_a_thousand_histories() -> None:
    for seed, job in enumerate((aggregate(), counting("n long"), joining("leftOuter"), distinct("user", "at"))):
        report = upgrade(job, job, *inputs_of(job), histories=250, seed=seed)
        assert isinstance(report, JobReport)
        assert report.histories == 250
