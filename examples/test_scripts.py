"""Tests of the ten example jobs as scripts that read and write by themselves: the inputs and verdict of each script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import payment_ledger as ledger
import pytest
import visit_sessions as visits
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from streamproof import (
    Input,
    Script,
    Sink,
    Violated,
    as_batch,
    check_job,
    drop_duplicates,
    invariants,
    other_job,
    session_windows,
    sql,
    static_join,
)
from streamproof.properties.checking.jobs import smallest
from test_examples import BUSINESS_DAYS, CUSTOMERS, HISTORIES, SHIPPED_ORDERS, Billing, reminded

SCRIPTS = Path(__file__).parent / "scripts"


def visit_sessions(source: Path) -> None:
    """The script reads JSON from Kafka; the previous version, the oracle, reads the same payloads."""
    columns = "visitor string, viewed_at timestamp, spent decimal(10,2)"

    def previous(records: DataFrame) -> DataFrame:
        row = F.from_json(records.value.cast("string"), columns)
        return visits.previous(records.select(row.alias("row")).select("row.*"))

    job = Script(source, reads={"page_views": Input(columns, key="visitor", format="kafka")})
    check_job(job, expect=other_job(previous), timeouts=["30 minutes"], histories=HISTORIES)


def hourly_revenue(source: Path) -> None:
    """The script reads JSON from Kafka, and has command-line arguments."""
    payments = Input(
        "store int, payment_id string, paid_at timestamp, amount decimal(10,2)", key="store", format="kafka"
    )
    job = Script(source, reads={"tills": payments}, args=["--topic", "tills", "--delay", "10 minutes"])
    check_job(job, expect=as_batch(), out_of_order="10 minutes", histories=HISTORIES)


def page_views(source: Path) -> None:
    """The script reads files from a folder that an argument names."""
    columns = "tenant string, user_id bigint, session_id string, at timestamp, duration_ms int"
    views = Input(columns, key=["tenant", "user_id"])
    job = Script(source, reads={"/lake/views": views}, args=["/lake/views", "{folder}/sessions"])
    aggregates = {"views": "count", "longest_ms": ("max", "duration_ms")}
    sessions = session_windows(gap="20 minutes", delay="5 minutes", aggregates=aggregates)
    check_job(job, expect=sessions, histories=HISTORIES)


def unpaid_orders(source: Path) -> None:
    """The script reads JSON from Kafka, and an environment variable."""
    orders = Input("order_id bigint, at timestamp, paid boolean not null", key="order_id", format="kafka")
    job = Script(source, reads={"orders": orders}, env={"KAFKA": "broker:9092"})
    check_job(job, expect=reminded, timeouts=["30 minutes"], histories=HISTORIES)


def meter_hours(source: Path) -> None:
    """The script reads files in a function `main(spark)`."""
    readings = Input("meter string, read_at timestamp, wh bigint not null", key="meter")
    check_job(Script(source, reads={"readings": readings}), expect=Billing, timeouts=["1 hour"], histories=HISTORIES)


def order_regions(source: Path) -> None:
    """The script is a notebook that reads a streaming table and a static table."""
    orders = Input(
        "order_id bigint, ordered_at timestamp, customer_id bigint, amount decimal(8,2), express boolean",
        key="order_id",
        values={"customer_id": [1, 2, 3, None]},
    )
    job = Script(source, reads={"shop.orders": orders})
    expected = static_join(CUSTOMERS, on="customer_id", join="left")
    check_job(job, static={"customers": CUSTOMERS}, expect=expected, histories=HISTORIES)


def payment_ledger(source: Path) -> None:
    """The script reads JSON from Kafka, and a function reads the output from the run's own folder."""
    columns = "account string, payment_id bigint, paid_at timestamp, cents int, refund boolean"
    payments = Input(columns, key="account", name="payments", format="kafka")
    read = Sink.sqlite(ledger.job, table="ledger", schema="refund boolean", without=["batch"]).read
    env = {"LEDGER_FOLDER": "{folder}"}
    job = Script(source, {"bank.payments": payments}, env=env, read=lambda folder: read(f"{folder}/ledger.sqlite"))
    expected = sql("SELECT account, payment_id, cents, refund FROM payments")
    check_job(job, expect=expected, histories=HISTORIES)
    invariants(job, histories=20)


def business_days(source: Path) -> None:
    """Files of JSON."""
    columns = "sale_id string, sold_at timestamp, till smallint, amount decimal(8,2)"
    job = Script(source, reads={"s3a://chain/sales/": Input(columns, key="sale_id", name="sales")})
    check_job(job, expect=sql(BUSINESS_DAYS), histories=HISTORIES)


def resent_events(source: Path) -> None:
    """Kafka's JSON."""
    columns = "device string, event_id bigint, sent_at timestamp, level double, alarm boolean"
    job = Script(source, reads={"device-events": Input(columns, key=["device", "event_id"], format="kafka")})
    once = drop_duplicates(["device", "event_id"], delay="1 hour", within_watermark=True)
    check_job(job, expect=once, histories=HISTORIES)


def order_shipments(source: Path) -> None:
    """The script reads two folders of files."""
    orders = Input("order_id string, ordered_at timestamp, amount decimal(8,2)", key="order_id", name="orders")
    columns = "order_id string, shipped_at timestamp, carrier string, returned boolean"
    shipments = Input(columns, key="order_id", name="shipments")
    job = Script(source, reads={"orders": orders, "shipments": shipments})
    check_job(job, expect=sql(SHIPPED_ORDERS), histories=HISTORIES)


Change = tuple[str, str]
"""A part of a right script's text, and the text with the bug that replaces this part."""
CHECKS: Mapping[Callable[..., None], Sequence[Change]] = {
    visit_sessions: [("started - visits[-1][1] <= GAP_US", "started - visits[-1][1] < GAP_US")],
    hourly_revenue: [('withWatermark("paid_at", args.delay)', 'withWatermark("paid_at", "1 minute")')],
    page_views: [
        ('groupBy("tenant", "user_id", session)', 'groupBy("tenant", "session_id", session)'),
        (".agg(", '.agg(F.first("user_id").alias("user_id"), '),
    ],
    unpaid_orders: [("DECIDE_AFTER_MS = 30 * 60 * 1000", "DECIDE_AFTER_MS = 30 * 60")],
    meter_hours: [("if hour_end <= timerValues.getCurrentWatermarkInMs():", "if False:")],
    order_regions: [('how="left"', 'how="inner"')],
    payment_ledger: [('        ledger.execute("DELETE FROM ledger WHERE batch = ?", (batch_id,))\n', "")],
    business_days: [("F.to_date(local)", 'F.to_date("sold_at")')],
    resent_events: [
        (
            'dropDuplicatesWithinWatermark(["device", "event_id"])',
            'dropDuplicates(["device", "event_id", "sent_at"])',
        )
    ],
    order_shipments: [
        ('    .where("NOT returned")\n', ""),
        ('joined.drop("returned")', 'joined.where("NOT returned").drop("returned")'),
    ],
}
each_script = pytest.mark.parametrize("check", CHECKS, ids=[check.__name__ for check in CHECKS])


@each_script
def test_the_script_conforms(check: Callable[..., None]) -> None:
    """The right script agrees with its oracle on every history."""
    check(SCRIPTS / f"{check.__name__}.py")


@each_script
def test_the_bug_is_found(check: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same script with the bug of `wrong` is violated."""
    text = (SCRIPTS / f"{check.__name__}.py").read_text()
    for right, wrong in CHECKS[check]:
        assert text.count(right) == 1, right
        text = text.replace(right, wrong)
    for limit in ("SHRINKING", "SHRINKING_S"):  # not here: test_examples shrinks
        monkeypatch.setattr(smallest, limit, 0)
    broken = tmp_path / f"{check.__name__}.py"
    broken.write_text(text)
    with pytest.raises(Violated):
        check(broken)
