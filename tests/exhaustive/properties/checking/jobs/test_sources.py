"""Jobs whose sources shape their rows: what Spark reads of the wire form, and the checks of jobs that parse it."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof import (
    BadInput,
    Input,
    Violated,
    as_batch,
    avro,
    check_job,
    drop_duplicates,
    session_windows,
    windows,
)
from streamproof.properties.generators.columns.forms.rows import Row, microseconds
from streamproof.properties.generators.columns.histories.drawing import draw_histories
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.generators.columns.wire import Encoder
from streamproof.properties.witnesses.job.rows import rows_of

CLICKS = "user string, at timestamp, amount bigint"
IN_MS = "user string, ts bigint, amount bigint"
TOTAL = {"total": ("sum", "amount")}
SESSIONS = session_windows(gap="30 minutes", delay="10 minutes", aggregates=TOTAL)


def encoded(spark: SparkSession, folder: Any, given: Input) -> tuple[list[Row], DataFrame]:
    """Return drawn rows, and the frame that a job is given of them."""
    resolved = resolve(given)
    histories = draw_histories([resolved], [3_600_000_000], 40, 0)
    rows = [row for history in histories for _, row in history.arrivals]
    table = Encoder(resolved.source).table(rows, (), microseconds(datetime(2024, 7, 1, tzinfo=UTC)))
    pq.write_table(table, folder / f"{given.name}.parquet")
    return rows, spark.read.parquet(str(folder / f"{given.name}.parquet"))


PLAIN = "k string, at timestamp, i int, x decimal(10,2), f double, b boolean, d date, n timestamp_ntz, s string"
NESTED = "y binary, l array<timestamp>, m map<string,int>, t struct<`a b`: int, z: string>, g array<struct<q: date>>"


@pytest.mark.parametrize("value", ["json", "csv"])
def test_spark_reads_a_payload_as_the_rows_that_are_drawn(spark: SparkSession, tmp_path: Any, value: Any) -> None:
    columns = f"{PLAIN}, {NESTED}" if value == "json" else PLAIN
    given = Input(columns, time="at", key="k", name=value, format="kafka", value=value)
    rows, frame = encoded(spark, tmp_path, given)
    read = F.from_json if value == "json" else F.from_csv
    parsed = frame.select(read(F.col("value").cast("string"), columns).alias("row")).select("row.*")
    assert rows_of(parsed) == rows
    assert len(rows) > 100


FORMS: list[tuple[str, str | None, str]] = [
    ("bigint", "s", "timestamp_seconds(ts)"),
    ("bigint", "ms", "timestamp_millis(ts)"),
    ("bigint", "us", "timestamp_micros(ts)"),
    ("double", "s", "cast(ts as timestamp)"),
    ("double", "ms", "cast(ts / 1000 as timestamp)"),
    ("decimal(20,6)", "s", "cast(ts as timestamp)"),
    ("string", None, "to_timestamp(ts)"),
    ("string", "ms", "timestamp_millis(cast(ts as bigint))"),
    ("string", "%d/%b/%Y:%H:%M:%S %z", "to_timestamp(ts, 'dd/MMM/yyyy:HH:mm:ss Z')"),
    ("date", None, "cast(ts as timestamp)"),
]


def test_spark_reads_each_form_of_an_event_time_as_the_time_that_is_drawn(spark: SparkSession, tmp_path: Any) -> None:
    for number, (kind, time_format, read) in enumerate(FORMS):
        given = Input(f"ts {kind}", "ts", name=f"of {number}", time_format=time_format)
        rows, frame = encoded(spark, tmp_path, given)
        assert rows_of(frame.selectExpr(f"{read} AS ts")) == rows, read


def sessions(rows: DataFrame, delay: str = "10 minutes") -> DataFrame:
    windowed = rows.withWatermark("at", delay).groupBy("user", F.session_window("at", "30 minutes"))
    return windowed.agg(F.sum("amount").alias("total"))


def of_json(columns: str, at: str = "at", delay: str = "10 minutes") -> Callable[[DataFrame], DataFrame]:
    def job(records: DataFrame) -> DataFrame:
        rows = records.select(F.from_json(F.col("value").cast("string"), columns).alias("row")).select("row.*")
        return sessions(rows.withColumn("at", F.expr(at)), delay)

    return job


def clicks(columns: str, time: str | None = None, **more: Any) -> Input:
    return Input(columns, time, key="user", name="clicks", **more)


def test_a_job_that_parses_kafka_s_json_conforms_and_skips_what_is_no_row() -> None:
    shares = {"malformed": 0.05, "null_values": 0.05, "null_times": 0.05}
    given = clicks(IN_MS, "ts", time_format="ms", format="kafka", **shares)
    report = check_job(of_json(IN_MS, "timestamp_millis(ts)"), given, expect=SESSIONS, histories=200)
    assert (report.histories, report.alone, report.not_checked) == (200, "", [])


def test_a_watermark_that_is_too_short_is_found_behind_a_payload() -> None:
    with pytest.raises(Violated) as raised:
        check_job(of_json(CLICKS, delay="1 minute"), clicks(CLICKS, format="kafka"), expect=SESSIONS)
    assert len(raised.value.counterexample.history.arrivals) <= 2


@pytest.mark.parametrize(
    ("time_format", "at", "failure", "said"),
    [
        ("ms", "timestamp_seconds(ts)", BadInput, "'ts' of clicks as another time than the Input declares"),
        ("s", "timestamp_millis(ts)", Violated, "expects no such row"),
        ("ms", "timestamp_millis(ts) - interval 1 hour", Violated, "violated: in batch"),
    ],
)
def test_a_job_that_takes_another_time_from_the_payload_never_conforms(
    time_format: str, at: str, failure: type[Exception], said: str
) -> None:
    given = clicks(IN_MS, "ts", time_format=time_format, format="kafka")
    with pytest.raises(failure, match=said):
        check_job(of_json(IN_MS, at), given, expect=SESSIONS, seconds=600)


def test_a_job_that_counts_what_is_no_row_is_violated() -> None:
    def job(records: DataFrame) -> DataFrame:
        read = F.from_json(F.col("value").cast("string"), CLICKS).alias("row")
        rows = records.select(F.coalesce(F.col("key").cast("string"), F.lit("none")).alias("user"), read)
        return rows.withColumn("amount", F.coalesce("row.amount", F.lit(0))).select("user", "amount")

    def amounts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"user": row["user"], "amount": row["amount"] or 0} for row in rows]

    with pytest.raises(Violated) as raised:
        check_job(job, clicks(CLICKS, format="kafka", malformed=0.05), expect=amounts)
    history = raised.value.counterexample.history
    assert (len(history.unreadable), len(history.arrivals)) == (1, 0)


def test_windows_of_days_and_a_time_that_is_passed_on_as_it_came_conform() -> None:
    def by_week(rows: DataFrame) -> DataFrame:
        late = rows.withColumn("at", F.col("day").cast("timestamp")).withWatermark("at", "2 days")
        return late.groupBy("user", F.window("at", "7 days")).agg(F.sum("amount").alias("total"))

    weeks = windows("7 days", delay="2 days", aggregates=TOTAL)
    assert check_job(by_week, clicks("user string, day date, amount bigint", "day"), expect=weeks).histories == 300

    def once(rows: DataFrame) -> DataFrame:
        late = rows.withColumn("at", F.timestamp_millis("ts")).withWatermark("at", "10 minutes")
        return late.dropDuplicates(["user", "ts", "at"]).drop("at")

    expect = drop_duplicates(["user", "ts"], "10 minutes")
    given = clicks(IN_MS, "ts", time_format="ms", values={"amount": [1]})
    assert check_job(once, given, expect=expect).histories == 300


def test_the_file_of_a_row_is_there_and_a_batch_is_given_the_same_records() -> None:
    def job(lines: DataFrame) -> DataFrame:
        read = F.from_json("value", CLICKS).alias("row")
        rows = lines.select(read, F.col("_metadata.file_size").alias("size")).select(
            "row.*", (F.col("size") > 0).alias("is")
        )
        return rows.where("user is not null")

    assert check_job(job, clicks(CLICKS, format="text", malformed=0.05), expect=as_batch()).expecting > 250


ACCOUNTS = Input("id int, amount bigint", key="id", name="accounts", format="kafka", value="debezium", malformed=0.05)
IMAGE = "struct<id: int, amount: bigint>"
ENVELOPE = f"before {IMAGE}, after {IMAGE}, op string, ts_ms bigint, source struct<lsn: bigint>"


def latest(accounts: DataFrame, ops: str = "crud") -> DataFrame:
    """Keep the latest image of each row, and whether the row is there."""
    events = accounts.select(F.from_json(accounts.value.cast("string"), ENVELOPE).alias("e")).select("e.*")
    events = events.where(F.col("op").isin([*ops])).select(
        F.coalesce("after.id", "before.id").alias("id"),
        F.struct(F.col("source.lsn"), (F.col("op") != "d").alias("there"), F.col("after.amount")).alias("last"),
    )
    return events.groupBy("id").agg(F.max("last").alias("last")).select("id", "last.there", "last.amount")


def without_snapshots(accounts: DataFrame) -> DataFrame:
    return latest(accounts, "cud")


def without_deletes(accounts: DataFrame) -> DataFrame:
    return latest(accounts, "cru")


def table_of_accounts(accounts: list[Row]) -> list[Row]:
    last = {row["id"]: row for row in accounts}
    return [
        {"id": key, "there": not row["deleted"], "amount": None if row["deleted"] else row["amount"]}
        for key, row in last.items()
    ]


@pytest.mark.usefixtures("unshrunk")
def test_a_job_that_applies_debezium_s_changes_conforms() -> None:
    given: dict[str, Any] = {"expect": table_of_accounts, "mode": "update", "unique": ["id"]}
    report = check_job(latest, ACCOUNTS, **given)
    assert not report.alone
    for wrong in (without_snapshots, without_deletes):
        with pytest.raises(Violated):
            check_job(wrong, ACCOUNTS, **given)


VISIT = {
    "type": "record",
    "name": "Visit",
    "fields": [
        {"name": "user", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "amount", "type": ["null", "long"]},
    ],
}
HEADER = 5
COLUMNS = pa.schema([("user", pa.string()), ("at", pa.timestamp("us", "UTC")), ("amount", pa.int64())])


def from_registry(clicks: DataFrame) -> DataFrame:
    import fastavro

    def read(batches: Any) -> Any:
        for batch in batches:
            values = batch.column("value").to_pylist()
            rows = [fastavro.schemaless_reader(io.BytesIO(value[HEADER:]), VISIT) for value in values]
            yield pa.RecordBatch.from_pylist(rows, schema=COLUMNS)

    return sessions(clicks.mapInArrow(read, CLICKS))


def test_a_job_that_reads_avro_from_a_registry_conforms() -> None:
    given = Input(
        "user string, at timestamp not null, amount bigint",
        key="user",
        name="clicks",
        format="kafka",
        value=avro(VISIT, schema_id=7),
    )
    report = check_job(from_registry, given, expect=SESSIONS)
    assert not report.alone
