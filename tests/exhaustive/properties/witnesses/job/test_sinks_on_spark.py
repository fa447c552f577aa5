"""Sinks on the real stores: one query writes to all of them, once or again where a batch is repeated."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from postgres_server import postgres_server, programs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from streamproof import BadInput, Input, Sink, check_job, sql
from streamproof.properties.generators.columns.forms.rows import Row
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.packing import tables_alone
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.running import Runner
from streamproof.properties.witnesses.job.sinks.store import SinkStore
from streamproof.properties.witnesses.kafka.jvm import Coordinates, kafka_jars
from streamproof.properties.witnesses.run_options import WITHIN, Crash, RunOptions
from streamproof.reference.core.errors import MissingTool

PAYMENTS = Input(
    "account string, paid timestamp, price decimal(8,2), refund boolean", key="account", name="payments", time="paid"
)
SOURCES = [given.source for given in resolve_all([PAYMENTS])]
COLUMNS = "account TEXT, paid TIMESTAMP{}, price DECIMAL(8,2), refund BOOLEAN, batch INTEGER"
EACH_MICROSECOND = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
NOON = datetime(2024, 7, 15, 12, tzinfo=UTC)


def row(account: str, second: int, price: str) -> Row:
    return {"account": account, "paid": NOON.replace(second=second), "price": Decimal(price), "refund": second > 1}


HISTORY = JobHistory(
    (
        (Arrival("payments", row("a", 0, "0.10")), Arrival("payments", row("b", 1, "2.00"))),
        (Arrival("payments", row("a", 2, "123456.78")),),
    )
)


def in_files(rows: DataFrame, batch: int, target: str, again: bool, *, kind: str) -> None:
    writer = rows.write.format(kind).options(**(EACH_MICROSECOND if kind == "json" else {}))
    if again:
        writer.mode("append").save(target)
    else:
        writer.mode("overwrite").save(f"{target}/batch={batch}")


def text_of(price: Decimal | None) -> str | None:
    return None if price is None else str(price)


def in_sqlite(rows: DataFrame, batch: int, target: str, again: bool) -> None:
    found = [
        (one["account"], one["paid"].isoformat(" "), text_of(one["price"]), one["refund"], batch)
        for one in rows.toArrow().to_pylist()
    ]
    with contextlib.closing(sqlite3.connect(target)) as database, database:
        database.execute(f"CREATE TABLE IF NOT EXISTS ledger ({COLUMNS.format('')})")
        if not again:
            database.execute("DELETE FROM ledger WHERE batch = ?", [batch])
        database.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", found)


def in_duckdb(rows: DataFrame, batch: int, target: str, again: bool) -> None:
    found = rows.toArrow()
    with duckdb.connect(target) as database:
        database.execute(f"CREATE TABLE IF NOT EXISTS ledger ({COLUMNS.format('TZ')})")
        if not again:
            database.execute("DELETE FROM ledger WHERE batch = ?", [batch])
        database.execute("INSERT INTO ledger SELECT *, ? FROM found", [batch])
    assert found is not None


def in_delta(rows: DataFrame, batch: int, target: str, again: bool) -> None:
    import deltalake
    import pyarrow as pa

    found = rows.toArrow()
    found = found.append_column("batch", pa.array([batch] * found.num_rows, pa.int64()))
    if again or not deltalake.DeltaTable.is_deltatable(target):
        deltalake.write_deltalake(target, found, mode="append")
    else:
        deltalake.write_deltalake(target, found, mode="overwrite", predicate=f"batch = {batch}")


def in_iceberg(rows: DataFrame, batch: int, target: str, again: bool) -> None:
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog

    found = rows.toArrow()
    found = found.append_column("batch", pa.array([batch] * found.num_rows, pa.int64()))
    catalog = SqlCatalog("tests", uri=f"sqlite:///{target}/catalog.db", warehouse=f"file://{target}")
    catalog.create_namespace_if_not_exists("money")
    table = catalog.create_table_if_not_exists("money.ledger", schema=found.schema)
    table.append(found) if again else table.overwrite(found, overwrite_filter=f"batch == {batch}")
    catalog.close()


def by_jdbc(rows: DataFrame, batch: int, target: str, again: bool, guarded: bool = False) -> None:
    """Let Spark append each partition by itself, after the batch's rows are deleted, or unless there are some."""
    import psycopg

    schema = target.rpartition("currentSchema=")[2]
    server = target.removeprefix("jdbc:").partition("?")[0].replace("//", "//tests@")
    with psycopg.connect(server, options=f"-c search_path={schema}") as database:
        database.execute(f"CREATE TABLE IF NOT EXISTS ledger ({COLUMNS.format('TZ')})".encode())
        if guarded and database.execute("SELECT 1 FROM ledger WHERE batch = %s", [batch]).fetchall():
            return
        if not (again or guarded):
            database.execute("DELETE FROM ledger WHERE batch = %s", [batch])
    rows = rows.repartition(2)  # of one partition, which Spark writes in a transaction, nothing stands
    properties = {"driver": "org.postgresql.Driver"}
    rows.withColumn("batch", F.lit(batch)).write.jdbc(target, "ledger", mode="append", properties=properties)


def in_postgres(rows: DataFrame, batch: int, target: str, again: bool) -> None:
    import psycopg

    found = [[*one.values(), batch] for one in rows.toArrow().to_pylist()]
    with psycopg.connect(target) as database:
        database.execute(f"CREATE TABLE IF NOT EXISTS ledger ({COLUMNS.format('TZ')})".encode())
        if not again:
            database.execute("DELETE FROM ledger WHERE batch = %s", [batch])
        database.cursor().executemany("INSERT INTO ledger VALUES (%s, %s, %s, %s, %s)", found)


WRITERS: Mapping[str, Callable[[DataFrame, int, str, bool], None]] = {
    "parquet": partial(in_files, kind="parquet"),
    "json": partial(in_files, kind="json"),
    "sqlite": in_sqlite,
    "duckdb": in_duckdb,
    "delta": in_delta,
    "iceberg": in_iceberg,
    "jdbc": by_jdbc,
    "postgres": in_postgres,
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[str | None]:
    """Give the URL of a PostgreSQL server, where it and its client are installed."""
    folder = programs()
    if folder is None or importlib.util.find_spec("psycopg") is None:
        yield None
        return
    with postgres_server(folder) as url:
        yield url


@pytest.fixture(scope="module")
def driver(spark: SparkSession) -> bool:
    """Give the session PostgreSQL's driver, and whether it could be had."""
    try:
        jars = kafka_jars(Coordinates("org.postgresql", "postgresql", "42.7.7"))
    except MissingTool:
        return False
    for jar in jars.glob("postgresql-*.jar"):
        spark.sql(f"ADD JAR '{jar}'")
    return True


@pytest.fixture
def stores(postgres: str | None, driver: bool) -> Callable[[bool], Mapping[str, SinkStore]]:
    """Give all stores that are installed, for rows that come again or not."""

    def made(again: bool) -> Mapping[str, SinkStore]:
        def never(*given: Any) -> Any:
            raise AssertionError("all are started together")

        types, batch = "paid timestamp, price decimal(8,2)", ["batch"]
        of_folders = [] if again else batch
        sinks = {
            "parquet": Sink.parquet(never, without=of_folders),
            "json": Sink.json(never, schema=types, without=of_folders),
            "sqlite": Sink.sqlite(never, table="ledger", schema=f"{types}, refund boolean", without=batch),
            "duckdb": Sink.duckdb(never, table="ledger", without=batch),
        }
        if importlib.util.find_spec("deltalake"):
            sinks["delta"] = Sink.delta(never, without=batch)
        if importlib.util.find_spec("pyiceberg"):
            sinks["iceberg"] = Sink.iceberg(never, table="ledger", without=batch)
        if postgres and driver:
            sinks["jdbc"] = Sink.postgres(never, table="ledger", url=postgres, jdbc=True, without=batch)
        if postgres:
            sinks["postgres"] = Sink.postgres(never, table="ledger", url=postgres, without=batch)
        return {name: sink._store for name, sink in sinks.items() if sink._store is not None}

    return made


@dataclass(frozen=True)
class Together(SinkStore):
    """Several stores, of which each row is in one: its column `store` says in which."""

    stores: Mapping[str, SinkStore] = field(default_factory=dict)
    name = "together"

    @contextlib.contextmanager
    def at(self, folder: Path) -> Iterator[str]:
        with contextlib.ExitStack() as opened:
            targets = {}
            for name, store in self.stores.items():
                (folder / name).mkdir()
                targets[name] = opened.enter_context(store.at(folder / name))
            yield json.dumps(targets)

    def rows(self, target: str) -> list[Row]:
        targets = json.loads(target)
        return [{**row, "store": name} for name, store in self.stores.items() for row in store.read(targets[name])]


def together(stores: Mapping[str, SinkStore], again: bool) -> Sink:
    def start(payments: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        def write(rows: DataFrame, batch: int) -> None:
            rows.persist()
            for name, its_target in json.loads(target).items():
                WRITERS[name](rows, batch, its_target, again)
            rows.unpersist()

        return payments.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).start()

    store = Together(stores=stores)
    return Sink(start, store.read, _store=store)


def written(sink: Sink, run: RunOptions) -> list[Row]:
    (rows,) = Runner(sink, SOURCES).run(tables_alone(HISTORY, SOURCES), (), run).batches
    return rows


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("delta", None if importlib.util.find_spec("deltalake") else "deltalake"),
        ("iceberg", None if importlib.util.find_spec("pyiceberg") else "pyiceberg"),
        ("postgres", None if importlib.util.find_spec("psycopg") else "psycopg"),
        ("postgres", None if programs() else "PostgreSQL's server (Debian: apt-get install postgresql)"),
    ],
)
def test_optional_stores_are_asked(name: str, missing: str | None, stores: Any) -> None:
    if missing:
        pytest.skip(f"Sink.{name} isn't asked: there is no {missing}")
    assert name in stores(False)


def test_jdbc_is_asked(stores: Any, postgres: str | None, driver: bool) -> None:
    if not (postgres and driver):
        pytest.skip("Sink.postgres isn't asked by JDBC: there is no server, or its driver can't be fetched")
    assert "jdbc" in stores(False)


def test_a_batch_that_is_repeated_is_read_twice_where_the_store_has_it_twice(stores: Any) -> None:
    wrong = stores(True)
    rows = written(together(wrong, again=True), RunOptions(crash_in=(Crash(0),)))
    first, second = ([arrival.row for arrival in batch] for batch in HISTORY.batches)
    for name in wrong:
        found = [{**one, "store": None} for one in rows if one["store"] == name]
        assert Counter((one["account"], one["price"], one["refund"]) for one in found) == Counter(
            (one["account"], one["price"], one["refund"]) for one in [*first, *first, *second]
        ), name


def test_every_store_has_the_table_that_is_expected(stores: Any) -> None:
    right = stores(False)
    names = ", ".join(f"'{name}'" for name in right)
    expected = sql(f"SELECT *, unnest([{names}]) AS store FROM payments")
    report = check_job(together(right, again=False), PAYMENTS, expect=expected, histories=100)
    assert (report.alone, report.comparing) == ("", "end")


def alone(store: SinkStore, write: Callable[[DataFrame, int, str], None]) -> Sink:
    def start(payments: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        writer = payments.writeStream.foreachBatch(lambda rows, batch: write(rows, batch, target))
        return writer.option("checkpointLocation", checkpoint).start()

    return Sink(start, store.read, _store=store)


BY_JDBC = {
    "guarded by its rows": partial(by_jdbc, again=False, guarded=True),
    "deleted before": partial(by_jdbc, again=False),
}


@pytest.mark.parametrize(("write", "step", "left"), [("guarded by its rows", 1, 2), ("deleted before", 1, 3)])
def test_of_a_death_within_spark_s_jdbc_writer_the_partitions_stand_that_it_has_written(
    write: str, step: int, left: int, stores: Any
) -> None:
    if "jdbc" not in (found := stores(False)):
        pytest.skip("Sink.postgres isn't asked by JDBC: there is no server, or its driver can't be fetched")
    died = RunOptions(crash_in=(Crash(0, True, WITHIN, step),), is_sink=True, trigger="available_now")
    assert len(written(alone(found["jdbc"], BY_JDBC[write]), died)) == left


def test_of_spark_s_file_sink_what_its_log_names_counts() -> None:
    def start(payments: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        if not Path(target).exists():
            empty = payments.sparkSession.createDataFrame([("left", NOON)], "account string, paid timestamp")
            empty.write.parquet(target)  # as a query leaves it that died before it committed
        query = payments.select("account", "paid").writeStream.option("checkpointLocation", checkpoint)
        return query.format("parquet").start(target)

    def accounts(rows: Sequence[Row]) -> list[str]:
        return sorted(row["account"] for row in rows)

    assert accounts(written(Sink.parquet(start), RunOptions())) == ["a", "a", "b"]


def test_a_schema_of_postgresql_goes_with_its_query(postgres: str | None, tmp_path: Path) -> None:
    if postgres is None:
        pytest.skip("Sink.postgres isn't asked: there is no server, or no psycopg")
    import psycopg

    sink = Sink.postgres(lambda *given: given, table="ledger", url=postgres)
    with sink.at(tmp_path) as (target, _):
        assert sink.read(target) == []
        with psycopg.connect(target) as database:
            database.execute("CREATE TABLE ledger AS SELECT 1 AS n, NULL AS nothing")
        assert sink.read(target) == [{"n": 1, "nothing": None}]
        with pytest.raises(BadInput, match="the target has no table 'other', but has 'ledger'"):
            Sink.postgres(lambda *given: given, table="other", url=postgres).read(target)
    with psycopg.connect(postgres) as database:
        left = database.execute("SELECT schema_name FROM information_schema.schemata").fetchall()
    assert not [name for (name,) in left if name.startswith("streamproof_")]
