"""Published ways to keep a dimension from change events by a stream: ten right ones, and ten wrong ones.

Each writes where people write: SQLite, DuckDB, plain files, Delta by delta-rs, PostgreSQL, or a streaming aggregate.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from streamproof import Input, Sink, scd1, scd2

EVENTS = Input(
    "id string, at timestamp, seq int NOT NULL, op string, name string",
    key="id",
    values={"seq": [1, 2, 3, 4, 5], "op": ["I", "U", "D"], "name": ["x", "y", "z"]},
)
LOG = Input("id string, name string", key="id", name="customers", format="kafka", value="debezium")
GIVEN: Any = {"keys": "id", "sequence_by": "seq", "deletes": "op = 'D'"}
TYPE1 = scd1(**GIVEN, columns="name")
TYPE2 = scd2(**GIVEN, columns="name")
OF_LOG = scd2("id", "ts_ms", "name", deletes="deleted")
Frames = Callable[[DataFrame], DataFrame]
Row = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """A way to keep a dimension.

    Attributes:
        job: The sink, or the job.
        expect: The rule that judges it.
        says: What the verdict says, as a regular expression; empty: it conforms.
        rows: The most events of its smallest history, if it is wrong.
        events: The input.
        dies: Whether its queries die in the middle, too; a wrong one is right but for that.
        mode: The output mode.
        needs: What it needs beside Spark: `postgres` or nothing.
    """

    job: Any
    expect: Any
    says: str = ""
    rows: int = 3
    events: Input = EVENTS
    dies: bool = False
    mode: Any = None
    needs: str = ""


def as_it_is(events: DataFrame) -> DataFrame:
    return events


def query(events: DataFrame, checkpoint: str, write: Callable[[DataFrame, int], None]) -> StreamingQuery:
    return events.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).start()


def newest(batch: DataFrame) -> DataFrame:
    """Return the newest event of each key of a batch: `row_number`, as people write it."""
    place = F.row_number().over(Window.partitionBy("id").orderBy(F.desc("seq")))
    return batch.withColumn("place", place).where("place = 1").drop("place")


def tuples(batch: DataFrame) -> list[tuple[str, int, str, str]]:
    return [(row["id"], row["seq"], row["op"], row["name"]) for row in batch.collect()]


# SQLite.

FLAGGED = """
CREATE TABLE IF NOT EXISTS kept (id PRIMARY KEY, seq, op, name);
CREATE VIEW IF NOT EXISTS customers AS SELECT id, name FROM kept WHERE op <> 'D';
"""
LOGGED = """
CREATE TABLE IF NOT EXISTS events (id, seq, op, name);
CREATE VIEW IF NOT EXISTS customers AS
    SELECT id, name FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY seq DESC) AS place FROM events)
    WHERE place = 1 AND op <> 'D';
"""
VERSIONS = """
    SELECT id, name, seq AS valid_from, lead(seq) OVER (PARTITION BY id ORDER BY seq) AS valid_to, op
    FROM (
        SELECT *, lag(op) OVER of_id AS op_before, lag(name) OVER of_id AS name_before
        FROM ({events}) WINDOW of_id AS (PARTITION BY id ORDER BY seq)
    )
    WHERE op_before IS NULL OR op = 'D' OR op_before = 'D' OR name IS NOT name_before
"""
OF_VERSIONS = "SELECT id, name, valid_from, valid_to FROM ({versions}) WHERE op <> 'D'"
EVERY = OF_VERSIONS.format(versions=VERSIONS.format(events="SELECT * FROM events"))
ONCE = OF_VERSIONS.format(versions=VERSIONS.format(events="SELECT DISTINCT * FROM events"))
KEPT_VERSIONS = """
CREATE TABLE IF NOT EXISTS events (id, seq, op, name, UNIQUE (id, seq));
CREATE TABLE IF NOT EXISTS customers (id, name, valid_from, valid_to);
"""
UPSERT = """
INSERT INTO kept VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, op = excluded.op, name = excluded.name
"""


@contextlib.contextmanager
def sqlite(target: str, tables: str) -> Iterator[sqlite3.Connection]:
    """Give a connection that commits each statement unless a transaction begins."""
    with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as database:
        database.executescript(tables)
        yield database


def on_sqlite(tables: str, write: Callable[[sqlite3.Connection, DataFrame], None], before: Frames = as_it_is) -> Sink:
    def start(events: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        def of_batch(batch: DataFrame, number: int) -> None:
            with sqlite(target, tables) as database:
                write(database, batch)

        return query(before(events), checkpoint, of_batch)

    return Sink.sqlite(start, table="customers")


def upsert_newer(database: sqlite3.Connection, batch: DataFrame) -> None:
    database.executemany(f"{UPSERT} WHERE excluded.seq > kept.seq", tuples(newest(batch)))


def upsert_whatever(database: sqlite3.Connection, batch: DataFrame) -> None:
    database.executemany(UPSERT, tuples(newest(batch)))


def upsert_all_newer_than_the_batch(database: sqlite3.Connection, batch: DataFrame) -> None:
    stored = dict(database.execute("SELECT id, seq FROM kept"))
    database.executemany(UPSERT, [row for row in tuples(batch) if row[1] > stored.get(row[0], 0)])


def upsert_last_arrival(database: sqlite3.Connection, batch: DataFrame) -> None:
    last = F.row_number().over(Window.partitionBy("id").orderBy(F.desc("at")))
    rows = tuples(batch.withColumn("place", last).where("place = 1"))
    database.executemany(UPSERT, rows)


def deletes_before_inserts(database: sqlite3.Connection, batch: DataFrame) -> None:
    with database:
        database.execute("BEGIN")
        deletes = [(row[0], row[1]) for row in tuples(batch) if row[2] == "D"]
        database.executemany("DELETE FROM kept WHERE id = ? AND seq < ?", deletes)
        rows = sorted((row for row in tuples(batch) if row[2] != "D"), key=lambda row: row[1])
        database.executemany(f"{UPSERT} WHERE excluded.seq > kept.seq", rows)


def log(database: sqlite3.Connection, batch: DataFrame) -> None:
    database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", tuples(batch))


def rewrite_versions(database: sqlite3.Connection, batch: DataFrame) -> None:
    rows = tuples(batch)
    with database:
        database.execute("BEGIN")
        database.executemany("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?)", rows)
        for key in {row[0] for row in rows}:
            database.execute("DELETE FROM customers WHERE id = ?", [key])
            database.execute(f"INSERT INTO customers SELECT * FROM ({EVERY}) WHERE id = ?", [key])


def close_and_insert(database: sqlite3.Connection, batch: DataFrame) -> None:
    for key, seq, op, name in sorted(tuples(batch), key=lambda row: row[1]):
        same = "SELECT 1 FROM customers WHERE id = ? AND valid_to IS NULL AND name = ? AND ? <> 'D'"
        if database.execute(same, [key, name, op]).fetchall():
            continue
        with database:
            database.execute("BEGIN")
            database.execute("UPDATE customers SET valid_to = ? WHERE id = ? AND valid_to IS NULL", [seq, key])
            if op != "D":
                database.execute("INSERT INTO customers VALUES (?, ?, ?, NULL)", [key, name, seq])


def views(select: str) -> str:
    return f"CREATE TABLE IF NOT EXISTS events (id, seq, op, name); CREATE VIEW IF NOT EXISTS customers AS {select};"


def without_late(events: DataFrame) -> DataFrame:
    return events.withWatermark("at", "1 minute").dropDuplicates(["id", "seq", "at"])


def without_duplicates_of_a_key(events: DataFrame) -> DataFrame:
    return events.dropDuplicates(["id"])


# The changes of a database's log, which keeps the order of each key: two steps, in a transaction or not.

IMAGE = "struct<id: string, name: string>"
OF_LOG_TABLES = """
CREATE TABLE IF NOT EXISTS customers (id, name, valid_from, valid_to);
CREATE TABLE IF NOT EXISTS batch (id, seq, op, name);
CREATE TABLE IF NOT EXISTS changes (id, name, valid_from, valid_to, op);
"""


def changes_of(records: DataFrame) -> DataFrame:
    event = F.from_json(records.value.cast("string"), f"op string, ts_ms bigint, before {IMAGE}, after {IMAGE}")
    events = records.where("value IS NOT NULL").select(event.alias("event"), "offset").select("event.*", "offset")
    identity = F.coalesce("after.id", "before.id").alias("id")
    return events.select(
        identity, F.col("ts_ms").alias("seq"), F.upper("op").alias("op"), F.col("after.name").alias("name")
    )


NEWEST = "SELECT max(max(valid_from, coalesce(valid_to, 0))) FROM customers WHERE customers.id = batch.id"
STAGE = "DELETE FROM batch; DELETE FROM changes;"
OPEN = "SELECT id, valid_from AS seq, 'C' AS op, name FROM customers WHERE valid_to IS NULL"
FRESH = f"SELECT * FROM batch WHERE seq > coalesce(({NEWEST}), 0)"
CHANGES = f"INSERT INTO changes {VERSIONS.format(events=f'{OPEN} UNION {FRESH}')}"
SAME = "changes.id = customers.id AND changes.valid_from = customers.valid_from"
CLOSE = f"UPDATE customers SET valid_to = (SELECT valid_to FROM changes WHERE {SAME}) WHERE valid_to IS NULL"
INSERT = f"""
INSERT INTO customers SELECT id, name, valid_from, valid_to FROM changes
WHERE op <> 'D' AND NOT EXISTS (SELECT 1 FROM customers WHERE {SAME})
"""


def stage(database: sqlite3.Connection, rows: list[tuple[str, int, str, str]]) -> None:
    # A query dies after each line of `write`, and each death costs a restart: so these are one line of it.
    database.executescript(STAGE)
    database.executemany("INSERT INTO batch VALUES (?, ?, ?, ?)", rows)
    database.execute(CHANGES)


def in_two_steps(begin: str, commit: str) -> Sink:
    """Close the versions that a batch ends, then insert the new ones; events that the table knows are left out."""

    def write(database: sqlite3.Connection, batch: DataFrame) -> None:
        stage(database, tuples(batch))
        database.execute(begin)
        database.execute(CLOSE)
        database.execute(INSERT)
        database.execute(commit)

    return on_sqlite(OF_LOG_TABLES, write, changes_of)


# DuckDB.

OF_DUCKDB = """
CREATE TABLE IF NOT EXISTS kept (id TEXT, seq INT, op TEXT, name TEXT);
CREATE VIEW IF NOT EXISTS customers AS SELECT id, name FROM kept WHERE op <> 'D';
"""
MERGE = """
MERGE INTO kept USING changes ON kept.id = changes.id
WHEN MATCHED AND changes.seq > kept.seq THEN UPDATE SET seq = changes.seq, op = changes.op, name = changes.name
WHEN NOT MATCHED THEN INSERT VALUES (changes.id, changes.seq, changes.op, changes.name)
"""
MERGE_AND_DELETE = """
MERGE INTO kept USING changes ON kept.id = changes.id
WHEN MATCHED AND changes.seq > kept.seq AND changes.op = 'D' THEN DELETE
WHEN MATCHED AND changes.seq > kept.seq THEN UPDATE SET seq = changes.seq, op = changes.op, name = changes.name
WHEN NOT MATCHED AND changes.op <> 'D' THEN INSERT VALUES (changes.id, changes.seq, changes.op, changes.name)
"""


def on_duckdb(statement: str) -> Sink:
    def start(events: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        def of_batch(batch: DataFrame, number: int) -> None:
            with duckdb.connect(target) as database:
                database.execute(OF_DUCKDB)
                database.register("changes", newest(batch).toArrow())
                database.execute(statement)

        return query(events, checkpoint, of_batch)

    return Sink.duckdb(start, table="customers")


# Plain files: a folder of events that readers sort out, or a snapshot that each batch replaces.


def in_files(is_newest: bool) -> Sink:
    def start(events: DataFrame, folder: Path) -> StreamingQuery:
        def of_batch(batch: DataFrame, number: int) -> None:
            (folder / "out").mkdir(exist_ok=True)
            new = folder / f"{number}.new"
            new.write_text("".join(json.dumps(row) + "\n" for row in tuples(batch)))
            new.rename(folder / "out" / f"{number:05}.json")

        return query(events, str(folder / "checkpoint"), of_batch)

    def read(folder: Path) -> list[Row]:
        files = sorted((folder / "out").glob("*.json"))
        rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        last: dict[str, Any] = {row[0]: row for row in (sorted(rows, key=lambda row: row[1]) if is_newest else rows)}
        return [{"id": row[0], "name": row[3]} for row in last.values() if row[2] != "D"]

    return Sink(start, read)


# Delta, written by delta-rs.


def on_delta(is_newer: str) -> Sink:
    def start(events: DataFrame, folder: Path) -> StreamingQuery:
        def of_batch(batch: DataFrame, number: int) -> None:
            import deltalake

            target, changes = str(folder / "kept"), newest(batch).select("id", "seq", "op", "name").toArrow()
            if not deltalake.DeltaTable.is_deltatable(target):
                deltalake.write_deltalake(target, changes.slice(0, 0))
            merge = deltalake.DeltaTable(target).merge(changes, "t.id = s.id", source_alias="s", target_alias="t")
            merge.when_matched_update_all(is_newer).when_not_matched_insert_all().execute()

        return query(events, str(folder / "checkpoint"), of_batch)

    def read(folder: Path) -> list[Row]:
        import deltalake

        if not deltalake.DeltaTable.is_deltatable(str(folder / "kept")):
            return []
        rows = deltalake.DeltaTable(str(folder / "kept")).to_pyarrow_table().to_pylist()
        return [{"id": row["id"], "name": row["name"]} for row in rows if row["op"] != "D"]

    return Sink(start, read)


# PostgreSQL.

OF_POSTGRES = """
CREATE TABLE IF NOT EXISTS kept (id TEXT PRIMARY KEY, seq INT, op TEXT, name TEXT);
CREATE OR REPLACE VIEW customers AS SELECT id, name FROM kept WHERE op <> 'D';
"""


def on_postgres(url: str, condition: str) -> Sink:
    def start(events: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
        def of_batch(batch: DataFrame, number: int) -> None:
            import psycopg

            with psycopg.connect(target) as connection, connection.cursor() as cursor:
                cursor.execute(OF_POSTGRES.encode())
                cursor.executemany(f"{UPSERT.replace('?', '%s')} {condition}".encode(), tuples(newest(batch)))

        return query(events, checkpoint, of_batch)

    return Sink.postgres(start, table="customers", url=url)


# A streaming aggregate.


def aggregate(events: DataFrame) -> DataFrame:
    last = events.groupBy("id").agg(F.max_by(F.struct("op", "name"), "seq").alias("last"))
    return last.where("last.op <> 'D'").select("id", "last.name")


def without_deletes_first(events: DataFrame) -> DataFrame:
    last = events.where("op <> 'D'").groupBy("id").agg(F.max_by("name", "seq").alias("name"))
    return last.select("id", "name")


SHOWN = r"(?s)^violated: .*(scd\d\(.*\)) expects"
RIGHT = {
    "SQLite: newest of the batch, compared with the stored sequence, deletes flagged": Recipe(
        on_sqlite(FLAGGED, upsert_newer), TYPE1, dies=True
    ),
    "SQLite: insert-only, and a view of the newest": Recipe(on_sqlite(LOGGED, log), TYPE1, dies=True),
    "SQLite: insert-only, and a view of the versions, each event once": Recipe(on_sqlite(views(ONCE), log), TYPE2),
    "SQLite: versions of a batch's keys made anew in a transaction": Recipe(
        on_sqlite(KEPT_VERSIONS, rewrite_versions), TYPE2, dies=True
    ),
    "SQLite: a log's changes closed and inserted in a transaction": Recipe(
        in_two_steps("BEGIN", "COMMIT"), OF_LOG, events=LOG, dies=True
    ),
    "DuckDB: MERGE of the newest, deletes flagged": Recipe(on_duckdb(MERGE), TYPE1),
    "files: a file of events each batch, sorted by readers": Recipe(in_files(is_newest=True), TYPE1),
    "Delta: MERGE of the newest, deletes flagged": Recipe(on_delta("s.seq > t.seq"), TYPE1),
    "PostgreSQL: upsert of the newest, deletes flagged": Recipe(
        lambda url: on_postgres(url, "WHERE excluded.seq > kept.seq"), TYPE1, needs="postgres"
    ),
    "aggregate: max_by of the sequence, deletes left out above it": Recipe(aggregate, TYPE1, mode="complete"),
}
WRONG = {
    "SQLite: all events of a batch upserted, without row_number": Recipe(
        on_sqlite(FLAGGED, upsert_all_newer_than_the_batch), TYPE1, SHOWN, rows=2
    ),
    "SQLite: the stored sequence isn't compared": Recipe(on_sqlite(FLAGGED, upsert_whatever), TYPE1, SHOWN, rows=2),
    "SQLite: the last arrival wins": Recipe(on_sqlite(FLAGGED, upsert_last_arrival), TYPE1, SHOWN, rows=2),
    "SQLite: a batch's deletes before its inserts": Recipe(
        on_sqlite(FLAGGED, deletes_before_inserts), TYPE1, SHOWN, rows=2
    ),
    "SQLite: dropDuplicates before": Recipe(
        on_sqlite(FLAGGED, upsert_newer, without_duplicates_of_a_key), TYPE1, SHOWN, rows=2
    ),
    "SQLite: a watermark before, which drops late events": Recipe(
        on_sqlite(FLAGGED, upsert_newer, without_late), TYPE1, SHOWN, rows=2
    ),
    "SQLite: closed and inserted whatever is late": Recipe(
        on_sqlite(KEPT_VERSIONS, close_and_insert), TYPE2, SHOWN, rows=3
    ),
    "SQLite: insert-only, and a view in which each event is a version": Recipe(
        on_sqlite(views(EVERY.replace("op_before IS NULL OR", "true OR")), log), TYPE2, SHOWN, rows=2
    ),
    "SQLite: closed and inserted in two commits": Recipe(
        in_two_steps("SELECT 1", "SELECT 1"),
        OF_LOG,
        r"(?s)^violated: dying in .*in the middle of its output",
        events=LOG,
        dies=True,
    ),
    "DuckDB: MERGE that deletes, so that a deleted key comes back": Recipe(
        on_duckdb(MERGE_AND_DELETE), TYPE1, SHOWN, rows=2
    ),
    "Delta: the stored sequence isn't compared": Recipe(on_delta("true"), TYPE1, SHOWN, rows=2),
    "PostgreSQL: the stored sequence isn't compared": Recipe(
        lambda url: on_postgres(url, ""), TYPE1, SHOWN, rows=2, needs="postgres"
    ),
    "files: the last file wins": Recipe(in_files(is_newest=False), TYPE1, SHOWN, rows=2),
    "aggregate: deletes left out below it": Recipe(without_deletes_first, TYPE1, SHOWN, rows=2, mode="complete"),
}
