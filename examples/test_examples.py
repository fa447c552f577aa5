"""Tests of the ten example jobs: the inputs of each job, and its expected result in the simplest form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import business_days
import hourly_revenue
import meter_hours
import order_regions
import order_shipments
import page_views
import payment_ledger
import pytest
import resent_events
import unpaid_orders
import visit_sessions
from streamproof import (
    Input,
    JobReport,
    Sink,
    Violated,
    check_job,
    drop_duplicates,
    invariants,
    other_job,
    session_windows,
    sql,
    windows,
)

Check = Callable[..., Any]
HISTORIES = 100
CUSTOMERS = [
    {"customer_id": 1, "name": "Ann", "region": "north"},
    {"customer_id": 2, "name": "Bo", "region": None},
]
MIDNIGHTS = [
    datetime(2025, month, 1, tzinfo=ZoneInfo("America/New_York")) + timedelta(seconds=seconds)
    for month in (1, 2, 5, 7)
    for seconds in (-1, 0)
]
BUSINESS_DAYS = """
    WITH local AS (
        SELECT *, (sold_at AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York')::DATE AS day FROM sales
    ), shifted AS (SELECT *, day - INTERVAL 1 MONTH AS fiscal FROM local)
    SELECT sale_id, till, amount, day, 'FY' || year(fiscal) || '-Q' || quarter(fiscal) AS quarter FROM shifted
"""
ORDER_REGIONS = "SELECT orders.*, name, region FROM orders LEFT JOIN customers USING (customer_id)"
SHIPPED_ORDERS = """
    SELECT o.order_id, ordered_at, amount, shipped_at, carrier
    FROM orders o LEFT JOIN shipments s ON o.order_id = s.order_id AND NOT returned
        AND shipped_at BETWEEN ordered_at AND ordered_at + INTERVAL 2 HOURS
"""


def check_visit_sessions(job: Any, **options: Any) -> JobReport:
    """The oracle is another job: the previous version, which the tested job rewrites."""
    views = Input("visitor string, viewed_at timestamp, spent decimal(10,2)", time="viewed_at", key="visitor")
    return check_job(job, views, expect=other_job(visit_sessions.previous), timeouts=["30 minutes"], **options)


def check_hourly_revenue(job: Any, **options: Any) -> JobReport:
    """The oracle is a chain of two rules of Spark's operators, which includes late payments."""
    payments = Input(
        "store int, payment_id string, paid_at timestamp, amount decimal(10,2)", time="paid_at", key="store"
    )
    once = drop_duplicates(["store", "payment_id", "paid_at", "amount"], delay="10 minutes")
    hours = windows("1 hour", aggregates={"revenue": ("sum", "amount"), "payments": "count"})
    return check_job(job, payments, expect=once >> hours, **options)


def check_page_views(job: Any, **options: Any) -> JobReport:
    """The oracle is a rule of a Spark operator, with the right key."""
    views = Input(
        "tenant string, user_id bigint, session_id string, at timestamp, duration_ms int",
        time="at",
        key=["tenant", "user_id"],
    )
    aggregates = {"views": "count", "longest_ms": ("max", "duration_ms")}
    sessions = session_windows(gap="20 minutes", delay="5 minutes", aggregates=aggregates)
    return check_job(job, views, expect=sessions, **options)


def reminded(rows: list[dict[str, Any]], clock: datetime) -> list[dict[str, Any]]:
    """Return the reminders emitted up to a time: orders without a payment within 30 minutes."""
    unpaid = []
    for order_id in {row["order_id"] for row in rows}:
        events = [row for row in rows if row["order_id"] == order_id]
        placed = min((row["at"] for row in events if not row["paid"]), default=None)
        if placed is not None and placed + timedelta(minutes=30) <= clock - timedelta(minutes=10):
            in_time = (row["at"] for row in events if row["paid"])
            if not any(placed <= at <= placed + timedelta(minutes=30) for at in in_time):
                unpaid.append({"order_id": order_id, "placed_at": placed})
    return unpaid


def check_unpaid_orders(job: Any, **options: Any) -> JobReport:
    """The oracle is a function that returns the reminders emitted up to the latest event time so far."""
    orders = Input("order_id bigint, at timestamp, paid boolean not null", time="at", key="order_id")
    return check_job(job, orders, expect=reminded, timeouts=["30 minutes"], **options)


class Billing:
    """The expected bills of the meters: readings arrive, and the clock advances after each batch."""

    def __init__(self) -> None:
        self.hours: dict[tuple[str, datetime], list[int]] = {}
        self.watermark = datetime.min

    def arrive(self, row: dict[str, Any]) -> None:
        """Add a reading, unless its hour is over."""
        hour = row["read_at"].replace(minute=0, second=0, microsecond=0)
        if hour.replace(tzinfo=None) + timedelta(hours=1) > self.watermark:
            self.hours.setdefault((row["meter"], hour), []).append(row["wh"])

    def advance(self, clock: datetime) -> list[dict[str, Any]]:
        """Bill the hours that ended an hour ago."""
        self.watermark = clock.replace(tzinfo=None) - timedelta(hours=1)
        over = [
            (meter, hour)
            for meter, hour in self.hours
            if hour.replace(tzinfo=None) + timedelta(hours=1) <= self.watermark
        ]
        used = [(meter, hour, self.hours.pop((meter, hour))) for meter, hour in over]
        return [{"meter": meter, "hour": hour, "wh": sum(wh), "readings": len(wh)} for meter, hour, wh in used]


def check_meter_hours(job: Any, **options: Any) -> JobReport:
    """The oracle is a class that handles each reading, late readings included."""
    readings = Input("meter string, read_at timestamp, wh bigint not null", time="read_at", key="meter")
    return check_job(job, readings, expect=Billing, timeouts=["1 hour"], **options)


def check_order_regions(job: Any, **options: Any) -> JobReport:
    """The oracle is a SQL statement with all columns; customers 3 and null are not in the table."""
    orders = Input(
        "order_id bigint, ordered_at timestamp, customer_id bigint, amount decimal(8,2), express boolean",
        time="ordered_at",
        key="order_id",
        name="orders",
        values={"customer_id": [1, 2, 3, None]},
    )
    return check_job(job, orders, static={"customers": CUSTOMERS}, expect=sql(ORDER_REGIONS), **options)


def check_payment_ledger(job: Any, **options: Any) -> JobReport:
    """The ledger has each payment once, even after restarts and crashes."""
    payments = Input(
        "account string, payment_id bigint, paid_at timestamp, cents int, refund boolean",
        time="paid_at",
        key="account",
        name="payments",
    )
    ledger = Sink.sqlite(job, table="ledger", schema="refund boolean", without=["batch"])
    expected = sql("SELECT account, payment_id, cents, refund FROM payments")
    report = check_job(ledger, payments, expect=expected, **options)
    invariants(ledger, payments)
    return report


def check_business_days(job: Any, **options: Any) -> JobReport:
    """The oracle is a SQL statement, for sales close to the midnights at which fiscal years and quarters begin."""
    sales = Input(
        "sale_id string, sold_at timestamp, till smallint, amount decimal(8,2)",
        time=False,
        key="sale_id",
        name="sales",
        values={"sold_at": MIDNIGHTS},
    )
    return check_job(job, sales, expect=sql(BUSINESS_DAYS), **options)


def check_resent_events(job: Any, **options: Any) -> JobReport:
    """The oracle is a rule of a Spark operator."""
    events = Input(
        "device string, event_id bigint, sent_at timestamp, level double, alarm boolean",
        time="sent_at",
        key=["device", "event_id"],
    )
    once = drop_duplicates(["device", "event_id"], delay="1 hour", within_watermark=True)
    return check_job(job, events, expect=once, **options)


def check_order_shipments(job: Any, **options: Any) -> JobReport:
    """The oracle is a SQL statement over both inputs, for rows that are up to twenty minutes late."""
    orders = Input(
        "order_id string, ordered_at timestamp, amount decimal(8,2)", time="ordered_at", key="order_id", name="orders"
    )
    shipments = Input(
        "order_id string, shipped_at timestamp, carrier string, returned boolean",
        time="shipped_at",
        key="order_id",
        name="shipments",
    )
    return check_job(job, orders, shipments, expect=sql(SHIPPED_ORDERS), out_of_order="20 minutes", **options)


EXAMPLES = [
    (visit_sessions, check_visit_sessions),
    (hourly_revenue, check_hourly_revenue),
    (page_views, check_page_views),
    (unpaid_orders, check_unpaid_orders),
    (meter_hours, check_meter_hours),
    (order_regions, check_order_regions),
    (payment_ledger, check_payment_ledger),
    (business_days, check_business_days),
    (resent_events, check_resent_events),
    (order_shipments, check_order_shipments),
]
each_example = pytest.mark.parametrize(
    ("example", "check"), EXAMPLES, ids=[example.__name__ for example, _ in EXAMPLES]
)


@each_example
def test_the_job_conforms(example: Any, check: Check) -> None:
    """The right job differs on none of 100 histories."""
    check(example.job, histories=HISTORIES)


@each_example
def test_the_bug_is_found_and_shrunk(example: Any, check: Check) -> None:
    """A check of 100 histories finds the wrong job, and shrinks the history to at most four rows in two batches."""
    with pytest.raises(Violated) as failure:
        check(example.wrong, histories=HISTORIES)
    history = failure.value.counterexample.history
    batches = [batch for batch in history.batches if batch]
    assert (len(history.arrivals) <= 4, len(batches) <= 2) == (True, True), str(failure.value)


@each_example
def test_the_job_conforms_on_many_histories(example: Any, check: Check) -> None:
    """The right job differs on none of 2,000 histories."""
    check(example.job, histories=2000)
