"""Scripts as people publish them, each under test without a change: 21 that are right, and six with a bug.

Each is declared in a function of its name: what it reads, and what is expected of it.
"""

from __future__ import annotations

import json
import operator
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from changed_jobs import function_of
from streamproof import (
    Input,
    Script,
    Violated,
    check_job,
    drop_duplicates,
    invariants,
    session_windows,
    sql,
    static_join,
    stream_join,
    windows,
)

FOLDER = Path(__file__).parent / "published"
ALONE = 12
"""Histories that each run in a query of their own."""


def script(name: str, reads: dict[str, Input], **given: Any) -> Script:
    return Script(FOLDER / f"{name}.py", reads=reads, **given)


def check(job: Script, expect: Any, **given: Any) -> None:
    check_job(job, expect=expect, **{"histories": 60, **given})


def kafka(schema: str, key: str | Sequence[str], **given: Any) -> Input:
    return Input(schema, key=key, format="kafka", **given)


def in_sqlite(file: str, table: str) -> Callable[[Path], list[dict[str, Any]]]:
    """Return a function that reads a table of a file below a run's folder."""

    def read(folder: Path) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(Path(folder) / file)) as connection:
            connection.row_factory = sqlite3.Row
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
            rows = connection.execute(f"SELECT * FROM {table}").fetchall() if table in tables else []
        return [dict(row) for row in rows]

    return read


def in_parquet(name: str) -> Callable[[Path], list[dict[str, Any]]]:
    """Return a function that reads the files of a folder below a run's folder."""

    def read(folder: Path) -> list[dict[str, Any]]:
        files = sorted((Path(folder) / name).glob("*.parquet"))
        return [row for file in files for row in pq.read_table(file).to_pylist()]

    return read


def words(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    counts = Counter(word for line in lines for word in line["value"].split(" "))
    return [{"word": word, "count": count} for word, count in counts.items()]


def failed_logins(logins: list[dict[str, Any]]) -> list[dict[str, Any]]:
    failed = [login for login in logins if login["ok"] is False]
    return [
        {"key": login["user"], "value": json.dumps({"ip": login["ip"].upper()}).replace(" ", "")} for login in failed
    ]


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


def device_windows() -> None:
    readings = kafka("device string, temperature double, ts timestamp", "device", malformed=0.1)
    aggregates = {"mean": ("avg", "temperature"), "readings": "count"}
    expected = windows("10 minutes", delay="5 minutes", aggregates=aggregates)
    check(script("device_windows", {"temperatures": readings}), expected)


def socket_word_count() -> None:
    lines = Input("value string", format="text", value="text", values={"value": ["cat dog", "cat", "", "dog  cat"]})
    job = script("socket_word_count", {"socket": lines}, args=["localhost", "9999"])
    check(job, words, histories=ALONE)


def user_sessions() -> None:
    clicks = kafka("user string, at timestamp, page string, cents bigint", "user", headers=True)
    args = ["--brokers", "broker:9092", "--topic", "clicks", "--output", "{folder}/sessions"]
    aggregates = {"pages": ("count", "page"), "cents": ("sum", "cents")}
    expected = session_windows("30 minutes", delay="10 minutes", aggregates=aggregates)
    check(script("user_sessions", {"clicks": clicks}, args=args), expected)


def ad_clicks() -> None:
    impressions = kafka("adId bigint, shownAt timestamp, site string", "adId", name="impressions")
    clicks = kafka("clickAdId bigint, clickedAt timestamp", "clickAdId", name="clicks")
    delay = {"impressions": "10 minutes", "clicks": "20 minutes"}
    expected = stream_join(on=(["adId"], ["clickAdId"]), before="0 seconds", after="1 hour", delay=delay)
    check(script("ad_clicks", {"impressions": impressions, "clicks": clicks}), expected)


def delivery_delays() -> None:
    sent = kafka("parcel string, sent_at timestamp", "parcel", name="sent")
    delivered = kafka("parcel string, delivered_at timestamp, depot string", "parcel", name="delivered")
    expected = """
        SELECT * FROM sent JOIN delivered USING (parcel)
        WHERE delivered_at BETWEEN sent_at AND sent_at + INTERVAL 2 DAYS
    """
    check(script("delivery_delays", {"sent": sent, "delivered": delivered}), expected)


def dedup_to_parquet() -> None:
    events = kafka("event_id string, event_time timestamp, kind string", "event_id")
    job = script("dedup_to_parquet", {"events.*": events}, args=["broker:9092", "events", "/lake"])
    check(job, drop_duplicates(["event_id", "event_time"], delay="30 minutes"))


def orders_enriched_csv() -> None:
    columns = "order_id string, product_id int, ordered_at timestamp, quantity int"
    orders = kafka(columns, "order_id", values={"product_id": [1, 2, 3, None]})
    products = [
        {"product_id": 1, "title": "tea", "shelf": "A1"},
        {"product_id": 2, "title": "jam", "shelf": None},
    ]
    job = script("orders_enriched_csv", {"orders": orders})
    check(job, static_join(products, on="product_id", join="left"), static={"data/products.csv": products})


def sensor_alerts_notebook() -> None:
    celsius = [80, 81, 120, 121, None]
    readings = Input("sensor string, read_at timestamp, celsius int", key="sensor", values={"celsius": celsius})
    dbutils = SimpleNamespace(widgets=SimpleNamespace(text=lambda name, default: None, get=lambda name: "80"))
    job = script("sensor_alerts_notebook", {"readings": readings}, query="alerts", globals={"dbutils": dbutils})
    level = "CASE WHEN celsius > 120 THEN 'critical' ELSE 'warning' END AS level"
    check(job, sql(f"SELECT *, {level} FROM readings WHERE celsius > 80"))


def movie_ratings_jupyter() -> None:
    ratings = Input("movie_id bigint, rating double, rated_at timestamp", key="movie_id", name="ratings")
    expected = "SELECT movie_id, avg(rating) AS average, count(rating) AS votes FROM ratings GROUP BY movie_id"
    check(script("movie_ratings_jupyter", {"data/ratings/": ratings}), expected)


def clickstream_sql() -> None:
    clicks = kafka("page string, user bigint, clicked_at timestamp", "page")
    aggregates = {"views": "count", "newest_user": ("max", "user")}
    check(script("clickstream_sql", {"clicks": clicks}), windows("5 minutes", delay="2 minutes", aggregates=aggregates))


def account_totals_sqlite() -> None:
    payments = kafka("account string, cents bigint, paid_at timestamp", "account", name="payments")
    args = ["--db", "{folder}/totals.sqlite", "--checkpoint", "{folder}/checkpoint"]
    read = in_sqlite("totals.sqlite", "balances")
    job = script("account_totals_sqlite", {"payments": payments}, args=args, read=read)
    check(job, "SELECT account, sum(cents) AS cents, count(*) AS payments FROM payments GROUP BY account")


def campaign_spend_merge() -> None:
    bids = kafka("campaign string, at timestamp, cents bigint", "campaign", name="bids")
    env = {"SPEND_DB": "{folder}/spend.sqlite"}
    job = script("campaign_spend_merge", {"bids": bids}, env=env, read=in_sqlite("spend.sqlite", "spend"))
    hour = "epoch(date_trunc('hour', \"at\"))::BIGINT AS hour_epoch"
    check(job, f"SELECT campaign, {hour}, sum(cents) AS cents FROM bids GROUP BY ALL")


def kafka_to_kafka() -> None:
    values = {"ip": ["10.0.0.1", "fe80::1"], "ok": [True, False, None]}
    logins = kafka("user string, at timestamp, ip string, ok boolean", "user", values=values)
    check(script("kafka_to_kafka", {"logins": logins}), failed_logins, alone=True, seed=1, histories=12)


def rate_even() -> None:
    numbers = Input("timestamp timestamp, value bigint", key="value", name="numbers")
    parity = "if(value % 2 = 0, 'even', 'odd') AS parity"
    expected = f'SELECT "timestamp" AS created, value, {parity} FROM numbers'
    check(script("rate_even", {"rate": numbers}), expected)


def iot_nested() -> None:
    messages = kafka("id bigint, sent timestamp, data struct<celsius: double, humidity: int>", "id", name="iot")
    expected = """
        SELECT id, date_trunc('minute', sent) AS minute, avg(data.celsius) AS celsius, max(data.humidity) AS humidity
        FROM iot GROUP BY ALL
    """
    check(script("iot_nested", {"iot": messages}), expected)


def trades_csv_pandas_udf() -> None:
    columns = "symbol string, traded_at timestamp, price double, quantity int, currency string"
    values = {"symbol": ["ACME", "INIT", "ZORG"], "currency": ["EUR", "USD", "GBP", "CHF"]}
    trades = kafka(columns, "symbol", name="trades", value="csv", values=values)
    rate = "CASE currency WHEN 'EUR' THEN 1 WHEN 'USD' THEN 0.5 WHEN 'GBP' THEN 1.25 ELSE 0 END"
    known = "price IS NOT NULL AND quantity IS NOT NULL"
    expected = f"SELECT symbol, traded_at, price * quantity * {rate} AS worth FROM trades WHERE {known}"
    check(script("trades_csv_pandas_udf", {"trades": trades}), expected)


def taxi_files() -> None:
    trips = Input("zone string, pickup timestamp, fare double", key="zone")
    aggregates = {"trips": "count", "takings": ("sum", "fare")}
    expected = windows("1 hour", slide="15 minutes", delay="30 minutes", aggregates=aggregates)
    check(script("taxi_files", {"incoming": trips}), expected)


def views_state() -> None:
    views = kafka("user bigint, page string, at timestamp", "user", name="views")
    check(script("views_state", {"views": views}), 'SELECT "user", count(*) AS views FROM views GROUP BY ALL')


def highest_temperature() -> None:
    check(
        script("highest_temperature", {"readings": kafka("sensor string, celsius int, at timestamp", "sensor")}),
        Records,
    )


def epoch_ms_views() -> None:
    views = kafka("video string, ts bigint, seconds bigint", "video", time="ts", time_format="ms")
    expected = windows("10 minutes", delay="1 minute", aggregates={"seconds": ("sum", "seconds")})
    check(script("epoch_ms_views", {"player": views}), expected)


def epoch_seconds_weather() -> None:
    gusts = kafka("station string, epoch bigint, gust double", "station", name="wx", time="epoch", time_format="s")
    expected = "SELECT station, CAST(epoch AS DATE) AS day, max(gust) AS gust FROM wx GROUP BY ALL"
    check(script("epoch_seconds_weather", {"wx": gusts}), expected)


def sales_by_date() -> None:
    sales = Input("store string, day date, amount decimal(10,2)", key="store", name="sales", time="day")
    expected = "SELECT store, CAST(day AS DATE) AS day, sum(amount) AS amount FROM sales GROUP BY ALL"
    check(script("sales_by_date", {"sales": sales}), expected)


def order_items() -> None:
    columns = "order_id string, ordered_at string, items array<struct<sku: string, quantity: int>>"
    orders = kafka(columns, "order_id", name="orders", time="ordered_at")
    expected = """
        SELECT order_id, ordered_at, item.sku AS sku, item.quantity AS quantity
        FROM (SELECT *, unnest(items) AS item FROM orders)
    """
    check(script("order_items", {"orders": orders}), expected)


def open_orders() -> None:
    columns, values = "product string, ordered_at timestamp, state string, quantity bigint", ["open", "cancelled", None]
    orders = kafka(columns, "product", name="orders", values={"state": values})
    expected = """
        SELECT product, date_trunc('hour', ordered_at) AS start, sum(quantity) AS quantity
        FROM orders WHERE state IS DISTINCT FROM 'cancelled' GROUP BY ALL
    """
    check(script("open_orders", {"orders": orders}), expected)


def orders_main_function() -> None:
    orders = kafka("shop string, ordered_at timestamp, cents bigint", "shop", name="orders")
    main = function_of(FOLDER / "orders_main_function.py", "main")
    hours = "date_trunc('hour', ordered_at) AS hour, sum(cents) AS cents, count(*) AS orders"
    job = Script(main, reads={"orders": orders}, query=1)
    check(job, f"SELECT shop, {hours} FROM orders GROUP BY ALL")


def tolls_late() -> None:
    tolls = kafka("bridge int, at timestamp, cents int", "bridge", name="tolls")
    quarter = 'time_bucket(INTERVAL 15 MINUTES, "at") AS start'
    expected = f"SELECT bridge, {quarter}, sum(cents) AS cents, count(*) AS vehicles FROM tolls GROUP BY ALL"
    job = script("tolls_late", {"tolls": tolls}, args=["broker:9092", "tolls"])
    check(job, expected, out_of_order="10 minutes")


def sessions_append_batches() -> None:
    moves = kafka("player string, moved_at timestamp, move string", "player")
    job = script("sessions_append_batches", {"moves": moves}, args=["{folder}"], read=in_parquet("sessions"))
    invariants(job, histories=ALONE)


WRONG = [
    campaign_spend_merge,
    delivery_delays,
    open_orders,
    sessions_append_batches,
    tolls_late,
    views_state,
]
SLOW = [kafka_to_kafka, socket_word_count]
NAME = operator.attrgetter("__name__")
RIGHT = [
    order_items,
    orders_enriched_csv,
    sensor_alerts_notebook,
    account_totals_sqlite,
    ad_clicks,
    clickstream_sql,
    dedup_to_parquet,
    device_windows,
    epoch_ms_views,
    epoch_seconds_weather,
    highest_temperature,
    iot_nested,
    movie_ratings_jupyter,
    orders_main_function,
    rate_even,
    sales_by_date,
    taxi_files,
    trades_csv_pandas_udf,
    user_sessions,
]


def test_each_script_has_a_declaration() -> None:
    declared = [each.__name__ for each in [*RIGHT, *SLOW, *WRONG]]
    assert sorted(declared) == sorted(file.stem for file in FOLDER.glob("*.py"))


@pytest.mark.parametrize("declared", RIGHT, ids=NAME)
@pytest.mark.in_ci("order_items", "orders_enriched_csv", "sensor_alerts_notebook")
def test_a_right_script_conforms(declared: Callable[[], None]) -> None:
    declared()


@pytest.mark.parametrize("declared", SLOW, ids=NAME)
@pytest.mark.in_ci
def test_a_right_script_whose_histories_run_alone_conforms(declared: Callable[[], None]) -> None:
    declared()


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("declared", WRONG, ids=NAME)
@pytest.mark.in_ci("campaign_spend_merge", "views_state")
def test_the_bug_of_a_script_is_found(declared: Callable[[], None]) -> None:
    with pytest.raises(Violated):
        declared()
