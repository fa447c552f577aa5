"""Sinks hold the fold of the changelog, whatever crashes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from materialized import KEYS, REST, WINDOW, ByHand, Crash, at, change, rows_of, values_of
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from streamproof.reference.core.errors import StreamproofError
from streamproof.spark_impl.session_windows import session_windows
from streamproof.spark_impl.sinks.materialize import Target, folded
from streamproof.spark_impl.sinks.tables import DuckDBTable, Manifest, ParquetTable

# What a table holds.


def test_a_table_has_each_key_and_window_with_its_last_value(
    spark: SparkSession, target: Target, tmp_path: Path
) -> None:
    hand = ByHand(spark, tmp_path / "checkpoint", target)
    early, late = (0, 10), (20, 30)
    hand.write(0, change("ann", 1, window=early), change("ann", 2, window=late), change("bob", 3), change("eve", 4))
    # Spark hands rows over in any order: the ordinal alone says which is the last.
    hand.write(1, change("bob", 6, 2), change("bob", None, 1), change("bob", 5, 0), change("ann", None, window=early))
    hand.write(2, change("eve", 7, 0), change("eve", None, 1), change("new", None))
    window = {"start": at(20), "end": at(30)}
    assert rows_of(spark, target) == [
        {"country": "de", "user": "ann", "window": window, "value": 2, "timestamp": at(7)},
        {"country": "de", "user": "bob", "window": None, "value": 6, "timestamp": at(7)},
    ]


def test_a_row_is_named_by_a_key_of_which_a_column_is_null(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    # As a one-to-many join emits a left row that has no foreign key.
    hand = ByHand(spark, tmp_path / "checkpoint", target)
    hand.write(0, change(None, 1), change("ann", 2), (None, *change("bob", 3)[1:]))
    assert [row["value"] for row in rows_of(spark, target)] == [2, 1, 3]
    hand.write(1, change(None, 4), (None, *change("bob", None)[1:]))
    assert [row["value"] for row in rows_of(spark, target)] == [2, 4]
    hand.write(2, change(None, None))
    assert [row["user"] for row in rows_of(spark, target)] == ["ann"]


def test_nested_values_keep_their_types(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    value = "struct<left: struct<tags: array<string>, at: timestamp>, right: struct<amount: decimal(9,2)>>"
    hand = ByHand(spark, tmp_path / "checkpoint", target, schema=f"{KEYS}, {WINDOW}, value {value}, {REST}")
    hand.write(0, change("ann", ((["x", None], at(1)), None)), change("bob", (None, None)))
    hand.write(1, change("bob", ((None, None), None)))
    left = {"tags": ["x", None], "at": at(1)}
    assert values_of(spark, target) == {
        "ann": {"left": left, "right": None},
        "bob": {"left": {"tags": None, "at": None}, "right": None},
    }


def test_dropped_rows_and_empty_batches_change_nothing(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    hand = ByHand(spark, tmp_path / "checkpoint", target)
    hand.write(0)
    dropped = (None, None, None, None, at(1), "dropped", "null key", None, 0)
    hand.write(1, change("ann", 1), dropped, (*change("ann", None, 1)[:5], "dropped", "late", None, 1))
    hand.write(2)
    assert values_of(spark, target) == {"ann": 1}
    assert target.content().batch == 2  # type: ignore[union-attr]


def test_a_stream_has_every_change_once(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    hand = ByHand(spark, tmp_path / "checkpoint", target, "stream")
    hand.write(0, change("ann", 1, 0), change("ann", 1, 1), change(None, 2))
    for _ in range(2):
        hand.write(1, change("ann", 1))
    found = [(row["user"], row["value"], row["batch"], row["ordinal"]) for row in rows_of(spark, target)]
    assert sorted(found, key=repr) == [("ann", 1, 0, 0), ("ann", 1, 0, 1), ("ann", 1, 1, 0), (None, 2, 0, 0)]


def test_a_batch_runs_whatever_the_target_does_with_it(spark: SparkSession, tmp_path: Path) -> None:
    # Spark saves the state of an operator only where it has run. Here a row that fails shows that it has.
    wrong = (*change("ann", 1)[:5], "upsert", None, None, 0)
    hand = ByHand(spark, tmp_path / "checkpoint", ParquetTable(tmp_path / "table"))
    hand.write(0, change("ann", 1))
    ignoring = ByHand(spark, tmp_path / "another", lambda changes, batch: None, "stream")
    for one in (hand, ignoring):
        with pytest.raises(PySparkException, match="a row's change is upsert"):
            one.write(0, wrong)


def test_a_batch_frame_is_folded_without_a_query(spark: SparkSession) -> None:
    events = spark.createDataFrame([("ann", 0), ("ann", 5), ("ann", 50)], "user string, time bigint")
    table = folded(session_windows(events, key="user", timestamp="time", gap="10 ms"))
    assert table.columns == ["user", "window", "value", "timestamp"]
    assert sorted(row.value for row in table.collect()) == [1, 2]


# Crashes.


class CrashesBeforeItsManifest(ParquetTable):
    def _publish(self, manifest: Manifest) -> None:
        raise Crash


class CrashesAfterItsManifest(ParquetTable):
    def _publish(self, manifest: Manifest) -> None:
        super()._publish(manifest)
        raise Crash


class CrashesInItsTransaction(DuckDBTable):
    def _take(self, *given: Any) -> None:
        super()._take(*given)
        raise Crash


@pytest.mark.parametrize(
    ("whole", "crashing", "seen"),
    [
        (ParquetTable, CrashesBeforeItsManifest, {"ann": 1, "bob": 1}),
        (ParquetTable, CrashesAfterItsManifest, {"bob": 2, "eve": 2}),
        (DuckDBTable, CrashesInItsTransaction, {"ann": 1, "bob": 1}),
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_a_crash_leaves_a_batch_wholly_in_the_table_or_wholly_out(
    spark: SparkSession, tmp_path: Path, whole: Any, crashing: Any, seen: dict[str, int], first: int
) -> None:
    arguments = (tmp_path / "there", "totals") if whole is DuckDBTable else (tmp_path / "there",)
    hand = ByHand(spark, tmp_path / "checkpoint", crashing(*arguments))
    changes = [change("ann", None), change("bob", 2), change("eve", 2)]
    if first:
        ByHand(spark, tmp_path / "checkpoint", whole(*arguments)).write(0, change("ann", 1), change("bob", 1))
    with pytest.raises(Crash):
        hand.write(first, *changes)
    if first:
        assert values_of(spark, whole(*arguments)) == seen
    again = ByHand(spark, tmp_path / "checkpoint", whole(*arguments))
    again.write(first, *changes)
    assert values_of(spark, whole(*arguments)) == {"bob": 2, "eve": 2}
    again.write(first + 1, change("eve", None))
    assert values_of(spark, whole(*arguments)) == {"bob": 2}
    assert not [one for one in tmp_path.iterdir() if one.name.startswith("_")]


# Parquet tables.


def test_a_batch_writes_only_the_buckets_that_it_touches(spark: SparkSession, tmp_path: Path) -> None:
    table = ParquetTable(tmp_path / "table", buckets=8)
    hand = ByHand(spark, tmp_path / "checkpoint", table)
    hand.write(0, *(change(f"user {number}", number) for number in range(40)))
    before = set(table.files())
    hand.write(1, change("user 7", None))
    assert len(before) == 8
    assert len(before - set(table.files())) == 1
    assert sorted(values_of(spark, table).values()) == [number for number in range(40) if number != 7]


def test_what_a_reader_has_begun_to_read_stays_for_one_more_version(spark: SparkSession, tmp_path: Path) -> None:
    table = ParquetTable(tmp_path / "table", buckets=1)
    hand = ByHand(spark, tmp_path / "checkpoint", table)
    hand.write(0, change("ann", 0))
    reader, files = table.read(spark), table.files()
    hand.write(1, change("ann", 1))
    assert [row.value for row in reader.collect()] == [0]
    hand.write(2, change("ann", 2))
    assert not any(file.exists() for file in files)
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Py4JJavaError, match="FILE_NOT_EXIST"):
            reader.collect()  # an error, and never a table without some rows
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    assert len(list((tmp_path / "table").rglob("*.parquet"))) == 2


def test_spark_finds_no_table_in_the_folder_itself(spark: SparkSession, tmp_path: Path) -> None:
    hand = ByHand(spark, tmp_path / "checkpoint", ParquetTable(tmp_path / "table"))
    hand.write(0, change("ann", 0))
    with pytest.raises(PySparkException, match="UNABLE_TO_INFER_SCHEMA"):
        spark.read.parquet(str(tmp_path / "table"))


def test_rows_that_the_driver_does_not_see_are_no_table(
    spark: SparkSession, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = ByHand(spark, tmp_path / "checkpoint", target)
    monkeypatch.setattr(Path, "rglob", lambda self, pattern: [])
    with pytest.raises(StreamproofError, match=r"2 rows were written to .*, but the driver sees 0"):
        hand.write(0, change("ann", 0), change("bob", 0))
    assert target.content() is None


# DuckDB.


def test_a_database_that_another_process_keeps_fails_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    table = DuckDBTable(tmp_path / "database", "totals", patience="0 ms")
    script = f"import duckdb; c = duckdb.connect({str(table.database)!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"open"
        with pytest.raises(StreamproofError, match=r"can't be opened: .*another process is connected") as failure:
            table.content()
        assert f"(PID {other.pid}): disconnect that process, or raise patience, which is 0 ms" in str(failure.value)
        other.communicate(b"\n")
    assert table.content() is None


def test_a_database_holds_several_tables_and_streams(spark: SparkSession, tmp_path: Path) -> None:
    tables = [DuckDBTable(tmp_path / "database", name) for name in ("one", "two")]
    ByHand(spark, tmp_path / "first", tables[0]).write(0, change("ann", 1))
    ByHand(spark, tmp_path / "second", tables[1], "stream").write(0, change("ann", 2))
    assert [values_of(spark, table) for table in tables] == [{"ann": 1}, {"ann": 2}]


# A user's function.


@pytest.fixture
def derby(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    """A connection to a database in memory, which Spark reaches over JDBC too."""
    jvm = spark._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    connection = jvm.java.sql.DriverManager.getConnection("jdbc:derby:memory:sink;create=true")
    yield connection
    connection.close()
    with suppress(Exception):  # Derby emits success with an exception
        jvm.java.sql.DriverManager.getConnection("jdbc:derby:memory:sink;drop=true")


def test_a_function_writes_to_a_database_over_jdbc(spark: SparkSession, derby: Any, tmp_path: Path) -> None:
    statement = derby.createStatement()
    statement.execute('CREATE TABLE totals ("user" VARCHAR(20), "value" BIGINT)')

    def to_derby(changes: DataFrame, batch: int) -> None:
        writer = changes.select("user", "value", "change").write.mode("overwrite")
        types = '"user" VARCHAR(20), "change" VARCHAR(20)'.replace('"', "")
        writer.option("createTableColumnTypes", types).jdbc("jdbc:derby:memory:sink", "changes")
        statement.execute("""
            MERGE INTO totals t USING changes c ON t."user" = c."user"
            WHEN MATCHED AND c."change" = 'tombstone' THEN DELETE
            WHEN MATCHED THEN UPDATE SET "value" = c."value"
            WHEN NOT MATCHED AND c."change" = 'update' THEN INSERT VALUES (c."user", c."value")
        """)

    hand = ByHand(spark, tmp_path / "checkpoint", to_derby)
    hand.write(0, change("ann", 1), change("bob", 1))
    for _ in range(2):
        hand.write(1, change("ann", None), change("bob", 2, 1), change("bob", None, 0), change("eve", 1))
    found = spark.read.jdbc("jdbc:derby:memory:sink", "totals").collect()
    assert sorted((row.user, row.value) for row in found) == [("bob", 2), ("eve", 1)]
