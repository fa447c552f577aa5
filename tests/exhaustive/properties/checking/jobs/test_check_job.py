"""The check of any job on Spark: what it finds, shrinks and says, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import pytest
from check_job_setup import CLICKS, expected_sessions, known, sessions
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from streamproof import (
    Inconclusive,
    Input,
    Violated,
    as_batch,
    check_job,
    drop_duplicates,
    session_windows,
    sql,
    stream_join,
    windows,
)


def later_by_a_millisecond(clicks: DataFrame) -> DataFrame:
    later = [F.expr(f"session_window.{end} + interval 1 millisecond").alias(end) for end in ("start", "end")]
    return sessions(clicks).select("user", *later, "total")


def emits_nothing(clicks: DataFrame) -> DataFrame:
    return sessions(clicks.where("false"))


@pytest.mark.parametrize(
    ("job", "expect"),
    [
        (later_by_a_millisecond, expected_sessions()),
        (emits_nothing, expected_sessions()),
        (sessions, expected_sessions("10 minutes 1 millisecond")),
        (
            sessions,
            session_windows(
                gap="30 minutes 1 millisecond", delay="10 minutes", aggregates={"total": ("sum", "amount")}
            ),
        ),
    ],
    ids=["rows off by 1 ms", "no rows", "a delay off by 1 ms", "a gap off by 1 ms"],
)
@pytest.mark.in_ci("no rows", "a delay off by 1 ms")
def test_a_job_that_is_off_by_a_millisecond_or_emits_nothing_never_passes(job: Any, expect: Any) -> None:
    with pytest.raises(Violated) as failure:
        check_job(job, CLICKS, expect=expect)
    history = failure.value.counterexample.history
    assert len(history.arrivals) <= 4
    assert sum(bool(batch) for batch in history.batches) <= 2


def short(clicks: DataFrame) -> DataFrame:
    return (
        clicks.withWatermark("at", "1 minute")
        .groupBy("user", F.window("at", "10 minutes"))
        .agg(F.count("*").alias("clicks"))
    )


def test_a_watermark_that_is_too_short_is_found_where_the_disorder_is_said() -> None:
    assert (
        check_job(short, CLICKS, expect=as_batch()).not_checked[1].startswith("whether the watermark's delay is long")
    )
    with pytest.raises(Violated):
        check_job(short, CLICKS, expect=as_batch(), out_of_order="15 minutes")


def test_a_filter_before_the_watermark_doesn_t_hold_it_up() -> None:
    def job(clicks: DataFrame) -> DataFrame:
        return short(clicks.where("amount > 1000000"))

    expect = windows(size="10 minutes", delay="1 minute", aggregates={"clicks": "count"})
    with pytest.raises(Violated) as failure:
        check_job(job, CLICKS, expect=expect)
    assert failure.value.counterexample.emitted == [[]] * len(failure.value.counterexample.history.batches)


def test_keys_of_the_user_s_own_run_alone() -> None:
    clicks = Input("user string, at timestamp, amount bigint", key="user", name="clicks", keys=["eu-1", "us-1"])

    def european(frame: DataFrame) -> DataFrame:
        return frame.where("user like 'eu-%'").select("user", "at", "amount")

    statement = "select * from clicks where user like 'eu-%'"
    report = check_job(european, clicks, expect=sql(statement), histories=12, seconds=600)
    assert report.alone == "input clicks has keys of the user's own"


def not_a(clicks: DataFrame) -> DataFrame:
    """Leave out a key that histories have, and that no key in a shared query equals."""
    named = clicks.withColumnRenamed("user", "who")
    return named.where("who <> 'a'").select(F.col("who").alias("user"), "at", "amount")


def test_a_job_that_compares_its_keys_with_a_value_never_conforms() -> None:
    with pytest.raises(Violated, match="The job computes with the key") as found:
        check_job(not_a, CLICKS, expect="select * from clicks", histories=100)
    assert "user 'a'" in str(found.value)
    assert not check_job(known, CLICKS, expect="select * from clicks", histories=40).alone


def words(clicks: DataFrame) -> DataFrame:
    return clicks.select(F.explode(F.split("user", " ")).alias("user"), "amount")


def of_some(clicks: DataFrame) -> DataFrame:
    return clicks.select(F.when(F.col("amount") > 0, F.col("user")).alias("user"), "amount")


WORDS = """select unnest(string_split("user", ' ')) as "user", amount from clicks"""
OF_SOME = """select case when amount > 0 then "user" end as "user", amount from clicks"""


@pytest.mark.parametrize(
    ("job", "expect", "why"),
    [(words, WORDS, "which is no key that it was given"), (of_some, OF_SOME, "has a row whose key is null")],
    ids=["another key", "a null key"],
)
@pytest.mark.in_ci
def test_a_job_whose_keys_cannot_be_read_back_is_run_alone_and_conforms(job: Any, expect: str, why: str) -> None:
    report = check_job(job, CLICKS, expect=sql(expect), histories=30, seconds=600)
    assert why in report.alone
    assert report.histories >= 10


@pytest.mark.weekly("CI asks of a right job, and a wrong job in memory")
def test_a_job_whose_keys_cannot_be_read_back_is_violated_where_it_is_wrong() -> None:
    with pytest.raises(Violated) as raised:
        check_job(words, CLICKS, expect=sql('select "user", amount from clicks where amount > 0'), histories=20)
    assert len(raised.value.counterexample.history.arrivals) == 1


@pytest.mark.weekly("CI asks of the columns in memory, and of deduplications among the shapes")
def test_a_deduplication_may_select_the_columns_in_which_duplicates_are_equal() -> None:
    def once(clicks: DataFrame) -> DataFrame:
        watermarked = clicks.withWatermark("at", "10 minutes")
        return watermarked.dropDuplicatesWithinWatermark(["user"]).select("user")

    expected = drop_duplicates(["user"], "10 minutes", within_watermark=True)
    report = check_job(once, CLICKS, expect=expected)
    assert report.limits == ["Not compared: the columns at, amount, which are expected and the result doesn't have"]
    with pytest.raises(Violated, match="expects no such row"):
        check_job(lambda clicks: clicks.withWatermark("at", "10 minutes").select("user"), CLICKS, expect=expected)


def test_an_input_may_have_any_name() -> None:
    inputs = [replace(CLICKS, name=name) for name in ("_clicks", "a/b", "x" * 300, "{a,b}*")]
    statement = " UNION ALL ".join(f'SELECT "user", amount FROM "{given.name}"' for given in inputs)

    def union(*clicks: DataFrame) -> DataFrame:
        return reduce(DataFrame.unionAll, clicks).select("user", "amount")

    for expect in (statement, as_batch()):
        check_job(union, *inputs, expect=expect, histories=20)


@pytest.mark.weekly("the rules' own test asks of joins with two delays")
def test_a_join_whose_inputs_have_two_delays_follows_the_watermark_policy_of_its_settings() -> None:
    def nearby(clicks: DataFrame, views: DataFrame) -> DataFrame:
        left, right = (
            clicks.withWatermark("at", "1 minute").alias("c"),
            views.withWatermark("seen", "1 hour").alias("v"),
        )
        near = F.expr("c.user = v.user and v.seen between c.at - interval 1 minute and c.at + interval 1 minute")
        return left.join(right, near, "left").select("c.user", "c.at", "v.seen")

    views = Input("user string, seen timestamp", key="user", name="views")
    delays, of_clicks = {"clicks": "1 minute", "views": "1 hour"}, {"user": "clicks.user"}
    expected = stream_join("left", "user", "1 minute", "1 minute", delays, columns=of_clicks)
    for policy in ("min", "max"):
        settings = {"spark.sql.streaming.multipleWatermarkPolicy": policy}
        assert check_job(nearby, CLICKS, views, expect=expected, settings=settings).expecting
    exchanged = {"clicks": "1 hour", "views": "1 minute"}
    expected = stream_join("left", "user", "1 minute", "1 minute", exchanged, columns=of_clicks)
    with pytest.raises(Inconclusive, match=r"delayed by clicks 1 hour, views 1 minute, as expected \(the job's are by"):
        check_job(nearby, CLICKS, views, expect=expected, histories=60)


@pytest.mark.usefixtures("unshrunk")
def test_shrinking_stops_by_its_limit_with_the_smallest_history_so_far() -> None:
    with pytest.raises(Violated, match="Shrinking stopped by its limit of time: a smaller history may differ, too"):
        check_job(later_by_a_millisecond, CLICKS, expect=expected_sessions(), histories=30)
