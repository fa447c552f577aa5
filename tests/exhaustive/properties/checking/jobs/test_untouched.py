"""Scripts written after public ones, each under test without a change: what is passed, and the verdict."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from streamproof import (
    Input,
    Script,
    Violated,
    as_batch,
    check_job,
    drop_duplicates,
    invariants,
    sql,
    static_join,
    windows,
)

FOLDER = Path(__file__).parent / "untouched"
FEW = 12
"""Histories that each run in a query of their own."""


@dataclass(frozen=True)
class Case:
    """The arguments beside a script's path.

    Attributes:
        reads: What it reads.
        expect: What is expected; None: the invariants are asked.
        of_check: What the check is given beside.
        verdict: The expected verdict.
        more: Further arguments of `Script`.
    """

    reads: Mapping[str, Any]
    expect: Any = None
    of_check: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = "conforms"
    more: Mapping[str, Any] = field(default_factory=dict)


def kafka(schema: str, key: str, **given: Any) -> Input:
    return Input(schema, key=key, format="kafka", **given)


def words(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    counts = Counter(word for line in lines for word in line["line"].split(" "))
    return [{"word": word, "count": count} for word, count in counts.items()]


def loud(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "word": row["word"].upper()} for row in words(lines)]


def in_parquet(folder: Path) -> list[dict[str, Any]]:
    return [row for file in sorted(folder.glob("payments/*.parquet")) for row in pq.read_table(file).to_pylist()]


def in_sqlite(folder: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(folder / "spend.sqlite")) as connection:
        connection.row_factory = sqlite3.Row
        there = connection.execute("SELECT name FROM sqlite_master").fetchall()
        return [dict(row) for row in (connection.execute("SELECT * FROM spend") if there else ())]


class Records:
    """The records of each sensor, each reported at the end of its batch."""

    def __init__(self) -> None:
        self.highest: dict[str, int] = {}
        self.broken: set[str] = set()

    def arrive(self, row: dict[str, Any]) -> None:
        sensor, celsius = row["sensor"], row["celsius"]
        if celsius is not None and celsius > self.highest.get(sensor, -(2**31)):
            self.highest[sensor] = celsius
            self.broken.add(sensor)

    def advance(self, clock: datetime) -> Iterator[dict[str, Any]]:
        broken, self.broken = self.broken, set()
        return ({"sensor": sensor, "record": self.highest[sensor]} for sensor in broken)


LINES = {"line": ["cat dog", "cat", "", "dog  cat"]}
PAYMENTS = Input("account string, at timestamp, cents bigint", key="account", name="payments")
LARGE = {"cents": [999, 1000, 1001, None]}
PRODUCTS = [{"product_id": 1, "title": "tea", "shelf": "A1"}, {"product_id": 2, "title": "jam", "shelf": None}]
CUSTOMERS = [{"customer": "c1", "name": "ann"}, {"customer": "c2", "name": None}]
ALONE = {"histories": FEW}
CASES = {
    "argparse_main": Case(
        {"events": kafka("device string, at timestamp, kind string", "device")},
        sql("SELECT device, kind FROM events"),
        more={"args": ["--topic", "events", "--out", "s3a://lake/events"]},
    ),
    "campaign_spend_merge": Case(
        {"bids": kafka("campaign string, at timestamp, cents bigint", "campaign")},
        sql("""
            SELECT campaign, epoch(date_trunc('hour', "at"))::BIGINT AS hour_epoch, sum(cents) AS cents
            FROM bids GROUP BY ALL
        """),
        verdict="violated",
        more={"env": {"SPEND_DB": "{folder}/spend.sqlite"}, "read": in_sqlite},
    ),
    "cassandra_users": Case(
        {"users_created": kafka("id string, name string", "id", name="users")}, sql("SELECT id, name FROM users")
    ),
    "cdc_customers": Case(
        {"customers": kafka("id int, city string", "id", value="debezium")},
        sql("SELECT id, deleted, ts_ms FROM customers"),
    ),
    "clickstream_sql": Case(
        {"clicks": kafka("page string, user bigint, clicked_at timestamp", "page")},
        windows("5 minutes", delay="2 minutes", aggregates={"views": "count", "newest_user": ("max", "user")}),
    ),
    "databricks_bronze_silver": Case(
        {
            "readings": Input(
                "meter string, read_at timestamp, kwh double", key="meter", values={"kwh": [-1.0, 0.0, 2.5]}
            )
        },
        as_batch(),
        more={"query": "silver"},
    ),
    "delta_upsert": Case(
        {"payments": PAYMENTS}, sql("SELECT account, sum(cents) AS cents FROM payments GROUP BY account")
    ),
    "epoch_seconds_weather": Case(
        {"wx": kafka("station string, epoch bigint, gust double", "station", time="epoch", time_format="s")},
        sql("SELECT station, CAST(epoch AS DATE) AS day, max(gust) AS gust FROM wx GROUP BY ALL"),
    ),
    "event_hubs_devices": Case(
        {"devices": Input("device string, celsius double", key="device", format="eventhubs")},
        windows("1 hour", delay="15 minutes", aggregates={"celsius": ("avg", "celsius")}),
    ),
    "findspark_socket": Case({"socket": Input("line string", format="text", value="text", values=LINES)}, loud, ALONE),
    "fixed_parquet": Case(
        {"/srv/landing/payments": PAYMENTS},
        None,
        ALONE,
        "violated",
        {"read": in_parquet, "targets": {"/srv/lake/payments": "payments"}},
    ),
    "fixed_table": Case(
        {"bank.payments": Input("account string, at timestamp, cents bigint", key="account", values=LARGE)},
        sql("SELECT * FROM payments WHERE cents >= 1000"),
        ALONE,
        more={"read": in_parquet, "targets": {"bank.large": "payments"}},
    ),
    "highest_temperature": Case({"readings": kafka("sensor string, celsius int, at timestamp", "sensor")}, Records),
    "inferred_schema": Case(
        {
            "devices": Input(
                "device string, time timestamp, action string", key="device", values={"action": ["ok", "error"]}
            )
        },
        sql("SELECT device, count(*) AS count FROM devices WHERE action = 'error' GROUP BY device"),
    ),
    "kafka_json_windows": Case(
        {"clicks": kafka("page string, user string, at timestamp", "page")},
        windows("5 minutes", delay="10 minutes", aggregates={"views": "count"}),
    ),
    "kinesis_words": Case(
        {"words": Input("line string", format="kinesis", value="text", values=LINES)}, words, {**ALONE, "seed": 1}
    ),
    "nested_time": Case(
        {
            "sales": kafka(
                "shop string, quantity int, meta struct<at: timestamp, source: string>", "shop", time="meta.at"
            )
        },
        windows("1 hour", delay="10 minutes", aggregates={"quantity": ("sum", "quantity")}),
    ),
    "notebook_main": Case(
        {"trades": kafka("symbol string, at timestamp, price double, volume bigint", "symbol")},
        sql("SELECT * FROM trades WHERE volume > 100"),
        more={"query": "big"},
    ),
    "open_orders": Case(
        {
            "orders": kafka(
                "product string, ordered_at timestamp, state string, quantity bigint",
                "product",
                values={"state": ["open", "cancelled", None]},
            )
        },
        sql("""
            SELECT product, date_trunc('hour', ordered_at) AS start, sum(quantity) AS quantity
            FROM orders WHERE state IS DISTINCT FROM 'cancelled' GROUP BY ALL
        """),
        verdict="violated",
    ),
    "order_items": Case(
        {
            "orders": kafka(
                "order_id string, ordered_at string, items array<struct<sku: string, quantity: int>>",
                "order_id",
                time="ordered_at",
            )
        },
        sql("""
            SELECT order_id, ordered_at, item.sku AS sku, item.quantity AS quantity
            FROM (SELECT *, unnest(items) AS item FROM orders)
        """),
    ),
    "orders_enriched_csv": Case(
        {
            "orders": kafka(
                "order_id string, product_id int, ordered_at timestamp, quantity int",
                "order_id",
                values={"product_id": [1, 2, 3, None]},
            )
        },
        static_join(PRODUCTS, on="product_id", join="left"),
        {"static": {"data/products.csv": PRODUCTS}},
    ),
    "pattern_counts": Case({name: kafka("user string, at timestamp", "user") for name in ("events_eu", "events_us")}),
    "postgres_batches": Case(
        {"readings": kafka("sensor string, at timestamp, celsius double", "sensor")},
        sql("SELECT * FROM readings WHERE celsius > 80"),
    ),
    "pubsub_orders": Case(
        {"orders": Input("id string, at timestamp, cents bigint", key="id", format="pubsub")},
        sql("SELECT * FROM orders WHERE cents > 0"),
    ),
    "shop/jobs/revenue_app": Case(
        {"sales": kafka("shop string, at timestamp, cents bigint", "shop")},
        sql("SELECT shop, sum(cents) AS cents FROM sales GROUP BY shop"),
    ),
    "sql_lookup": Case(
        {
            "orders": Input(
                "id string, customer string, at timestamp", key="id", values={"customer": ["c1", "c2", "c3"]}
            ),
            "shop.customers": CUSTOMERS,
        },
        as_batch(),
    ),
    "trades_csv_pandas_udf": Case(
        {
            "trades": kafka(
                "symbol string, traded_at timestamp, price double, quantity int, currency string",
                "symbol",
                value="csv",
                values={"symbol": ["ACME", "INIT", "ZORG"], "currency": ["EUR", "USD", "GBP", "CHF"]},
            )
        },
        sql("""
            SELECT symbol, traded_at, price * quantity
                * CASE currency WHEN 'EUR' THEN 1 WHEN 'USD' THEN 0.5 WHEN 'GBP' THEN 1.25 ELSE 0 END AS worth
            FROM trades WHERE price IS NOT NULL AND quantity IS NOT NULL
        """),
    ),
    "two_topics": Case(
        {
            "orders": kafka("id string, ordered timestamp, cents int", "id"),
            "payments": kafka("of string, paid timestamp", "of"),
        },
        sql(
            "SELECT id, ordered, paid, cents FROM orders JOIN payments "
            'ON id = "of" AND paid BETWEEN ordered AND ordered + INTERVAL 1 HOUR'
        ),
    ),
    "views_state": Case(
        {"views": kafka("user bigint, page string, at timestamp", "user")},
        sql('SELECT "user", count(*) AS views FROM views GROUP BY ALL'),
        verdict="violated",
    ),
    "yaml_config": Case(
        {"orders": kafka("id string, at timestamp, cents bigint", "id")},
        drop_duplicates(["id", "at"], delay="30 minutes"),
    ),
}
HELPERS = {"notebook_functions", "shop/__init__", "shop/jobs/__init__", "shop/sources"}


def test_each_script_has_a_case() -> None:
    found = {str(file.relative_to(FOLDER).with_suffix("")) for file in FOLDER.rglob("*.py")}
    assert found == CASES.keys() | HELPERS


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.in_ci(
    "campaign_spend_merge",
    "notebook_main",
    "order_items",
    "orders_enriched_csv",
    "two_topics",
    "views_state",
)
def test_a_script_reaches_its_verdict_untouched(name: str) -> None:
    case = CASES[name]
    script = Script(FOLDER / f"{name}.py", reads=case.reads, **case.more)
    try:
        report = (
            invariants(script, **{"histories": 20, **case.of_check})
            if case.expect is None
            else check_job(script, expect=case.expect, **{"histories": 60, **case.of_check})
        )
        verdict = report.verdict
    except Violated:
        verdict = "violated"
    assert verdict == case.verdict
