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
    Input,
    Violated,
    as_batch,
    check_job,
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
    assert check_job(short, CLICKS, expect=as_batch()).not_checked[1].startswith("the watermark's delay: ")
    with pytest.raises(Violated):
        check_job(short, CLICKS, expect=as_batch(), out_of_order="15 minutes")


def test_a_filter_before_the_watermark_doesn_t_hold_it_up() -> None:
    def job(clicks: DataFrame) -> DataFrame:
        return short(clicks.where("amount > 1000000"))

    expect = windows(size="10 minutes", delay="1 minute", aggregates={"clicks": "count"})
    with pytest.raises(Violated) as failure:
        check_job(job, CLICKS, expect=expect)
    assert failure.value.counterexample.actual[1] == [[]] * len(failure.value.counterexample.history.batches)


def payments_by_hour(orders: DataFrame, payments: DataFrame) -> DataFrame:
    ordered, paid = orders.withWatermark("at", "10 minutes"), payments.withWatermark("paid", "20 minutes")
    soon = F.expr("user = payer AND paid BETWEEN at AND at + INTERVAL 30 MINUTES")
    by_hour = ordered.join(paid, soon, "left").groupBy("user", F.window("at", "1 hour"))
    return by_hour.agg(F.count("paid").alias("payments"))


@pytest.mark.weekly(
    "20 s: benchmarks/agreement/spark_rules.py has the rules of several operators, here is a check of them"
)
@pytest.mark.usefixtures("unshrunk")
def test_windows_above_a_join_are_checked_by_the_rules_of_both() -> None:
    orders = Input("user string, at timestamp", key="user", name="orders")
    payments = Input("payer string, paid timestamp", key="payer", name="payments")

    def expect(join: Any) -> Any:
        columns = {"user": "orders.user", "at": "orders.at", "paid": "payments.paid"}
        delays = {"orders": "10 minutes", "payments": "20 minutes"}
        joined = stream_join(join, (["user"], ["payer"]), "0 seconds", "30 minutes", delays, columns=columns)
        return joined >> windows("1 hour", aggregates={"payments": ("count", "paid")})

    report = check_job(payments_by_hour, orders, payments, expect=expect("left"))
    assert (report.histories, report.comparing, report.alone) == (300, "batches", "")
    assert "filter below" not in str(report)
    with pytest.raises(Violated, match="payments 0"):
        check_job(payments_by_hour, orders, payments, expect=expect("inner"), histories=40)


def test_keys_of_the_user_s_own_run_alone() -> None:
    clicks = Input("user string, at timestamp, amount bigint", key="user", name="clicks", keys=["eu-1", "us-1"])

    def european(frame: DataFrame) -> DataFrame:
        return frame.where("user like 'eu-%'").select("user", "at", "amount")

    statement = "select * from clicks where user like 'eu-%'"
    report = check_job(european, clicks, expect=sql(statement), histories=12, seconds=600)
    assert report.alone == "input clicks has keys that the test gives"


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
    [(words, WORDS, "which isn't a key that it was given"), (of_some, OF_SOME, "has a row whose key is null")],
    ids=["another key", "a null key"],
)
@pytest.mark.in_ci
def test_a_job_whose_keys_cannot_be_read_back_is_run_alone_and_conforms(job: Any, expect: str, why: str) -> None:
    report = check_job(job, CLICKS, expect=sql(expect), histories=30, seconds=600)
    assert why in report.alone
    assert report.histories >= 10


def test_an_input_may_have_any_name() -> None:
    inputs = [replace(CLICKS, name=name) for name in ("_clicks", "a/b", "x" * 300, "{a,b}*")]
    statement = " UNION ALL ".join(f'SELECT "user", amount FROM "{given.name}"' for given in inputs)

    def union(*clicks: DataFrame) -> DataFrame:
        return reduce(DataFrame.unionAll, clicks).select("user", "amount")

    for expect in (statement, as_batch()):
        check_job(union, *inputs, expect=expect, histories=20)


@pytest.mark.usefixtures("unshrunk")
def test_shrinking_stops_by_its_limit_with_the_smallest_history_so_far() -> None:
    with pytest.raises(Violated, match="Shrinking reached its time limit: a smaller history may differ, too"):
        check_job(later_by_a_millisecond, CLICKS, expect=expected_sessions(), histories=30)
