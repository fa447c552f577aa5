"""Jobs of examples/, right and wrong, and Spark's own rules, on whatever PySpark is installed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import hourly_revenue
import order_regions
import payment_ledger
import pytest
import resent_events
import unpaid_orders
from streamproof import (
    BadInput,
    Input,
    Sink,
    Violated,
    as_batch,
    check_job,
    drop_duplicates,
    invariants,
    other_job,
    static_join,
)
from streamproof.properties.generators.columns.model import Source
from streamproof.properties.witnesses.run_options import RunOptions

from benchmarks.agreement import spark_rules as rules

HISTORIES = 100
PAYMENTS = Input("store int, payment_id string, paid_at timestamp, amount decimal(10,2)", time="paid_at", key="store")
EVENTS = Input(
    "device string, event_id bigint, sent_at timestamp, level double, alarm boolean",
    time="sent_at",
    key=["device", "event_id"],
)
ORDERS = Input(
    "order_id bigint, ordered_at timestamp, customer_id bigint, amount decimal(8,2), express boolean",
    time="ordered_at",
    key="order_id",
    values={"customer_id": [1, 2, 3, None]},
)
CUSTOMERS = [{"customer_id": 1, "name": "Ann", "region": "north"}, {"customer_id": 2, "name": "Bo", "region": None}]


def revenue(job: Any) -> None:
    check_job(job, PAYMENTS, expect=as_batch(), out_of_order="10 minutes", histories=HISTORIES)


def once(job: Any) -> None:
    rule = drop_duplicates(["device", "event_id"], delay="1 hour", within_watermark=True)
    check_job(job, EVENTS, expect=rule, histories=HISTORIES)


def regions(job: Any) -> None:
    rule = static_join(CUSTOMERS, on="customer_id", join="left")
    check_job(job, ORDERS, static={"customers": CUSTOMERS}, expect=rule, histories=HISTORIES)


each = pytest.mark.parametrize(
    ("example", "checked"),
    [(hourly_revenue, revenue), (resent_events, once), (order_regions, regions)],
    ids=["windows", "duplicates", "a static table"],
)


@each
def test_a_right_job_conforms(example: Any, checked: Any) -> None:
    checked(example.job)


@each
def test_a_wrong_job_is_found_and_shrunk(example: Any, checked: Any) -> None:
    with pytest.raises(Violated) as failure:
        checked(example.wrong)
    assert len(failure.value.counterexample.history.arrivals) <= 4


def ledger(job: Callable[..., Any]) -> Sink:
    return Sink.sqlite(job, table="ledger", schema="refund boolean", without=["batch"])


def test_what_changes_nothing_changes_nothing_of_a_sink_and_a_crash_shows_the_wrong_one() -> None:
    payments = Input(
        "account string, payment_id bigint, paid_at timestamp, cents int, refund boolean",
        time="paid_at",
        key="account",
        name="payments",
    )
    assert "a crash" in invariants(ledger(payment_ledger.job), payments, histories=20).laws
    with pytest.raises(Violated, match="dying in batch"):
        invariants(ledger(payment_ledger.wrong), payments, histories=20)


def test_a_watermark_on_a_column_that_the_job_makes_is_refused_with_a_clock() -> None:
    def delayed(payments: Any) -> Any:
        return payments.selectExpr("store", "paid_at + INTERVAL 5 MINUTES AS due").withWatermark("due", "1 minute")

    with pytest.raises(BadInput, match="has its watermark on 'due', which it computes from other columns"):
        check_job(delayed, PAYMENTS, expect=drop_duplicates(["store"], delay="1 minute"), histories=HISTORIES)


def test_a_job_with_state_of_its_own_is_compared_with_itself() -> None:
    orders = Input("order_id bigint, at timestamp, paid boolean not null", time="at", key="order_id")
    check_job(unpaid_orders.job, orders, expect=other_job(unpaid_orders.job), histories=HISTORIES)


SEED = 12
"""From this the semi join's histories are drawn such that one of them tells the dialects of Spark apart."""
RULES = (
    ("session_windows(gap=10 seconds, delay=4 seconds)", "append", "default"),
    ("windows(size=10 seconds, slide=4 seconds, delay=2 seconds)", "update", "available_now"),
    ("drop_duplicates(columns=key, delay=4 seconds, within_watermark=True)", "append", "available_now"),
    ("stream_join(join=left, on=key+sub, before=10 seconds, after=3 seconds", "append", "default"),
    ("stream_join(join=left_semi, on=key+sub, before=10 seconds, after=3 seconds", "append", "available_now"),
)


def test_the_histories_of_the_semi_join_tell_the_dialects_apart() -> None:
    (name, mode, trigger) = RULES[-1]
    (case,) = [one for one in rules.CASES if one.name.startswith(name) and one.mode == mode]
    histories = rules.draw(case, 300, random.Random(f"{case.name} {trigger} {SEED}"))
    sources = [Source(one, rules.SCHEMA, "at", ("key",)) for one in case.inputs]
    run = RunOptions(trigger=trigger, mode=mode)
    (before, since) = (
        rules.join_case("left_semi", "10 seconds", "3 seconds", rules.BOTH, version).rule.expected(
            histories, sources, run
        )
        for version in ("4.1", "4.2")
    )
    assert before != since


@pytest.mark.parametrize(("name", "mode", "trigger"), RULES, ids=lambda value: value.partition(" seconds")[0])
def test_spark_emits_what_its_version_s_rules_say(name: str, mode: str, trigger: Any) -> None:
    (case,) = [one for one in rules.CASES if one.name.startswith(name) and one.mode == mode]
    emitted, differing = rules.differences(case, trigger, 300, SEED)
    assert emitted > 50
    assert differing == []
