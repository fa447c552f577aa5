"""Bugs behind a limit of the job: drawn values lie around its constants, so that `check_job` finds them as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from streamproof import BadInput, Input, Sink, Violated, as_batch, check_job, sql

COLUMNS = "user string, at timestamp, amount bigint, kind string, price decimal(10,2), rate double, due date"
ORDERS = Input(COLUMNS, "at", key="user", name="orders")
LIMIT = 9_999
Job = Callable[[DataFrame], DataFrame]


def kept(condition: str) -> Job:
    return lambda orders: orders.where(condition).select("user", "at")


def scored(above: int) -> Job:
    def score(frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:
            scores = (frame["amount"].fillna(0) > LIMIT).map({True: 2 + above, False: 2})
            yield frame[["user"]].assign(score=scores)

    return lambda orders: orders.mapInPandas(score, "user string, score int")


@pytest.mark.parametrize(
    ("wrong", "right", "expected"),
    [
        (
            kept("kind LIKE 'card-%' AND amount % 7 = 3 AND rate < 0.3"),
            kept("kind LIKE 'card-%' AND amount % 7 = 3 AND rate <= 0.3"),
            'SELECT "user", "at" FROM orders WHERE kind LIKE \'card-%\' AND amount % 7 = 3 AND rate <= 0.3',
        ),
        (
            scored(2),
            scored(1),
            f'SELECT "user", CASE WHEN amount > {LIMIT} THEN 3 ELSE 2 END AS score FROM orders',
        ),
    ],
    ids=["several", "function"],
)
@pytest.mark.usefixtures("unshrunk")
@pytest.mark.in_ci("several")
def test_a_bug_behind_a_limit_is_found_and_the_right_job_conforms(wrong: Job, right: Job, expected: str) -> None:
    with pytest.raises(Violated):
        check_job(wrong, ORDERS, expect=sql(expected))
    report = check_job(right, ORDERS, expect=sql(expected))
    assert not [line for line in report.not_checked if "no drawn row" in line], report


@pytest.mark.usefixtures("unshrunk")
def test_a_limit_that_only_the_expectation_has_is_reached() -> None:
    def capped(orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"user": row["user"], "amount": row["amount"]} for row in orders if (row["amount"] or 0) < 123_456]

    with pytest.raises(Violated):
        check_job(
            lambda orders: orders.where("amount IS NOT NULL OR true").select("user", "amount"), ORDERS, expect=capped
        )


def test_sides_that_the_user_s_values_never_reach_are_named() -> None:
    orders = Input(COLUMNS, "at", key="user", name="orders", values={"amount": [1, 2], "kind": ["paid"]})
    report = check_job(
        kept("amount < 1000 AND kind = 'paid'"),
        orders,
        expect=sql('SELECT "user", "at" FROM orders WHERE amount < 1000'),
    )
    (said,) = (line for line in report.not_checked if "no drawn row" in line)
    assert (
        "where no drawn row of orders has amount >= 1000; no drawn row of orders has kind <> 'paid': Input(…, values="
        in said
    )


@pytest.mark.usefixtures("unshrunk")
def test_the_constants_of_a_sink_are_those_of_its_code(tmp_path: Any) -> None:
    def start(orders: DataFrame, target: str, checkpoint: str) -> Any:
        def write(frame: DataFrame, number: int) -> None:
            frame.where("amount < 7777").select("user", "amount").write.mode("append").parquet(target)

        return orders.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).start()

    with pytest.raises(Violated):
        check_job(Sink.parquet(start), ORDERS, expect=sql('SELECT "user", amount FROM orders WHERE amount <= 7777'))


def totals(*fields: Any) -> Job:
    return lambda orders: orders.where("rate > 0.1 AND rate <> 0.7").groupBy("user").agg(*fields)


@pytest.mark.weekly("half a minute, for digits that change seldom")
@pytest.mark.usefixtures("spark")
def test_right_aggregates_of_doubles_around_a_constant_conform() -> None:
    total, spread, mean = F.sum("rate").alias("total"), F.stddev("rate").alias("spread"), F.avg("rate").alias("mean")
    assert "no drawn row" not in str(check_job(totals(total, spread, mean), ORDERS, expect=as_batch(), mode="update"))
    exact = check_job(totals(total), ORDERS, expect=as_batch(), mode="update", digits=None)
    assert "no drawn row of orders has rate = 0.1" in str(exact)
    with pytest.raises(BadInput, match=r"the last of StddevSamp in .* depend on the order"):
        check_job(totals(total, spread), ORDERS, expect=as_batch(), mode="update", digits=None)
