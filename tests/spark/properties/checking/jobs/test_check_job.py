"""The check of any job on Spark: what it finds, shrinks and says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from check_job_setup import CLICKS, expected_sessions, sessions
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout
from streamproof import (
    BadInput,
    Inconclusive,
    Input,
    Sink,
    Violated,
    as_batch,
    check_job,
    static_join,
    windows,
)
from streamproof.properties.checking.fuzzing.divergences import EXCLUDED_RULES, FILTERED_WATERMARK
from streamproof.properties.checking.jobs import draws, smallest


@pytest.mark.parametrize("trigger", ["default", "available_now"])
def test_a_right_job_of_spark_s_own_operator_conforms(trigger: Any) -> None:
    report = check_job(sessions, CLICKS, expect=expected_sessions(), trigger=trigger)
    assert report.histories == 300
    assert report.comparing == "batches"
    assert not report.alone


def bought(clicks: DataFrame) -> DataFrame:
    return clicks.where("user = 'nobody'")


def test_a_job_that_emits_nothing_is_inconclusive_and_told_to_list_values() -> None:
    with pytest.raises(Inconclusive, match=r"list values that pass, Input\(…, values="):
        check_job(bought, CLICKS, expect="select * from clicks where user = 'nobody'", histories=40)


def test_an_argument_that_isn_t_there_is_named_beside_those_that_are() -> None:
    with pytest.raises(TypeError, match="windows: got an unexpected keyword argument 'length'; it takes size, slide,"):
        windows(length="1 hour")  # type: ignore[call-arg]


@pytest.mark.parametrize("expect", [as_batch(), as_batch(lambda clicks: within_watermark(clicks))])
def test_a_job_that_can_be_no_batch_is_refused_before_anything_is_drawn(
    expect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(*arguments: object, **named: object) -> None:
        raise AssertionError("histories were drawn")

    monkeypatch.setattr(draws, "draw_histories", drawn)
    with pytest.raises(BadInput, match=r"which Spark refuses in a batch query: expect the rule drop_duplicates"):
        check_job(within_watermark, CLICKS, expect=expect)


def within_watermark(clicks: DataFrame) -> DataFrame:
    return clicks.withWatermark("at", "10 minutes").dropDuplicatesWithinWatermark(["user"])


def raising(clicks: DataFrame) -> DataFrame:
    return clicks.select("nope")


def renamed(clicks: DataFrame) -> DataFrame:
    return clicks.select("user", F.col("amount").alias("cents"))


def starts_a_query(clicks: DataFrame) -> DataFrame:
    clicks.writeStream.format("noop").start()
    return clicks


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (lambda clicks: None, "returned None: return the streaming DataFrame"),
        (lambda clicks: 5, "returned int: return the streaming DataFrame"),
        (lambda clicks: clicks.sparkSession.range(1), "returned a batch DataFrame"),
        (lambda clicks, prices: clicks, "can't be called with 1 input"),
        (lambda clicks: clicks.writeStream.format("noop").start(), "returned a query that it had started"),
        (
            raising,
            r"raising \(tests/.*/test_check_job.py:\d+\) is refused by Spark: .*`nope`.*in line \d+",
        ),
        (
            renamed,
            "the result has the columns user, cents, and not 'amount'; expected are user, amount: let the job call",
        ),
        (lambda clicks: clicks.groupBy("user").count(), "Spark refuses the job's query: .*group or join by its column"),
        (starts_a_query, "started a query, and the check would see none: return its DataFrame, or give a Sink"),
    ],
)
def test_a_job_that_breaks_the_contract_is_one_clear_message(job: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_job(job, CLICKS, expect="select user, amount from clicks", histories=20)


@pytest.mark.parametrize(("unique", "known"), [("nope", "user, session_window, total, start, end"), ("User", "user")])
def test_columns_that_tell_rows_apart_are_columns_of_the_result(unique: str, known: str) -> None:
    with pytest.raises(
        BadInput, match=rf"unique has '{unique}', and the result of sessions \(.* has the columns {known}"
    ):
        check_job(sessions, CLICKS, expect=expected_sessions(), unique=[unique])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spark.master": "local[7]"}, "settings contains 'spark.master', which has no effect on a running session"),
        ({"spark.executor.memory": "1g"}, r"'spark.executor.memory': Spark refuses '1g': .*annot modify the value"),
        ({"spark.sql.warehouse.dir": "x"}, r"'spark.sql.warehouse.dir': Spark refuses 'x': .*annot modify the value"),
        ({"spark.sql.session.timeZone": "Nowhere"}, "Spark refuses 'Nowhere': .*imeZone"),
    ],
)
def test_settings_that_a_running_session_can_t_take_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_job(sessions, CLICKS, expect=expected_sessions(), settings={"my.own": 1, **settings})


@pytest.mark.parametrize("alone", [False, True])
def test_what_a_check_that_is_interrupted_was_shrinking_is_saved_and_run_first_the_next_time(
    alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    def more_by_one(clicks: DataFrame) -> DataFrame:
        return clicks.select("user", (F.col("amount") + 1).alias("amount"))

    given: dict[str, Any] = {"expect": 'select "user", amount from clicks', "alone": alone, "folder": tmp_path}
    monkeypatch.setattr(smallest, "shrink", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_job(more_by_one, CLICKS, seed=3, **given)
    (path,) = tmp_path.iterdir()
    metadata = json.loads((path / "counterexample.json").read_text())
    assert (metadata["confirmed"], metadata["seed"], metadata["law"]) == (False, 3, "the SQL statement")

    with pytest.raises(Violated, match="1 of 1 histories, saved or given as examples, still differ") as found:
        check_job(more_by_one, CLICKS, seed=4, **given)
    assert (found.value.path, found.value.counterexample.seed) == (path, 3)
    assert json.loads((path / "counterexample.json").read_text()) == {**metadata, "confirmed": True}
    assert [*tmp_path.iterdir()] == [path]


def test_a_job_with_timers_of_processing_time_is_refused_at_once_as_a_sink_too() -> None:
    def job(clicks: DataFrame) -> DataFrame:
        timeout = GroupStateTimeout.ProcessingTimeTimeout
        return clicks.groupBy("user").applyInPandasWithState(none, "user string", "n int", "update", timeout)

    def none(key: Any, frames: Any, state: Any) -> Any:
        yield from ()

    def start(clicks: DataFrame, folder: Path) -> StreamingQuery:
        writer = job(clicks).writeStream.outputMode("update").foreachBatch(lambda rows, batch: None)
        return writer.option("checkpointLocation", str(folder / "checkpoint")).start()

    for given in (job, Sink(start, lambda folder: [])):
        with pytest.raises(BadInput, match="timeouts or timers of processing time"):
            check_job(given, CLICKS, expect="SELECT user FROM clicks", mode="update", histories=10)


def test_a_sink_that_asks_for_real_time_mode_is_refused_by_name() -> None:
    def start(clicks: DataFrame, folder: Path) -> StreamingQuery:
        writer = clicks.writeStream.foreachBatch(lambda rows, batch: None)
        return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(realTime="5 seconds").start()

    with pytest.raises(BadInput, match=r"start \(.* uses real-time mode, .*reads no files"):
        check_job(Sink(start, lambda folder: []), CLICKS, expect="SELECT user FROM clicks", histories=10)


def of_ones(clicks: DataFrame) -> DataFrame:
    ones = clicks.withWatermark("at", "10 minutes").where("amount = 1")
    return ones.groupBy("user", F.window("at", "1 hour")).count().select("user", "window", "count")


@pytest.mark.usefixtures("unshrunk")
def test_a_filter_that_spark_moves_below_the_watermark_is_violated_and_named_and_its_remedy_helps() -> None:
    clicks = Input(CLICKS.schema, key="user", name="clicks", values={"amount": [0, 1]})
    written = static_join([{"amount": 1}], on="amount", join="left_semi") >> windows("1 hour", delay="10 minutes")
    given: dict[str, Any] = {"expect": written, "histories": 60}
    remedy = r"filter below the watermark, .* Remedy: write the filter before withWatermark"
    with pytest.raises(Violated, match=remedy) as found:
        check_job(of_ones, clicks, **given)
    counterexample: Any = found.value.counterexample
    assert not counterexample.history.clock
    assert {row["amount"] for _, row in counterexample.history.arrivals} == {0, 1}
    report = check_job(of_ones, clicks, settings={EXCLUDED_RULES: FILTERED_WATERMARK.excluded}, **given)
    assert "filter below the watermark" not in str(report)
