"""Sinks: what they hold is the fold of the changelog, whatever crashes, and what they can't go on from is refused."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from streamproof.properties.cohorts import one_cohort, pack
from streamproof.properties.draws import Shape, draw_histories
from streamproof.properties.spark_witness import BINDINGS, PLAIN, builder
from streamproof.reference.errors import BadInput, StreamproofError
from streamproof.reference.operators import operator_named
from streamproof.reference.play import play
from streamproof.reference.records import Change, fold
from streamproof.spark_impl import materialize as materialize_module
from streamproof.spark_impl.checkpoints import query_of
from streamproof.spark_impl.materialize import Content, Materializer, Target, folded, materialize
from streamproof.spark_impl.session_windows import session_windows
from streamproof.spark_impl.tables import DuckDBTable, Manifest, ParquetTable

KEYS = "country string, user string"
WINDOW = "window struct<start: timestamp, end: timestamp>"
REST = "timestamp timestamp, change string, reason string, cause bigint, ordinal int"
NUMBERS = f"{KEYS}, {WINDOW}, value bigint, {REST}"


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def change(user: str | None, value: Any, ordinal: int = 0, window: tuple[int, int] | None = None) -> tuple[Any, ...]:
    """One row of a changelog; without a value a tombstone."""
    bounds = window and tuple(map(at, window))
    return ("de", user, bounds, value, at(7), "tombstone" if value is None else "update", None, None, ordinal)


class ByHand:
    """Plays Spark's part: hands over batches as Spark does, without the cost of a streaming query."""

    def __init__(
        self, spark: SparkSession, checkpoint: Path, to: Any, result: str = "table", schema: str = NUMBERS
    ) -> None:
        self.spark, self.checkpoint, self.schema = spark, checkpoint, schema
        self.sink = Materializer(to, str(checkpoint), result, ("country", "user"))
        (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": f"query of {checkpoint.name}"}))

    def write(self, batch: int, *changes: tuple[Any, ...], offsets: str = "") -> None:
        """Hand over a batch, which read what the name `offsets` stands for."""
        (self.checkpoint / "offsets" / str(batch)).write_text(f"v1\n{batch} {offsets}")
        self.sink.write(self.spark.createDataFrame(list(changes), self.schema), batch)


class Crash(Exception):
    """What ends a run between two steps."""


@pytest.fixture(params=["parquet", "duckdb"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    if request.param == "parquet":
        return ParquetTable(tmp_path / "table", buckets=3)
    return DuckDBTable(tmp_path / "database.duckdb", "table of totals")


def rows_of(spark: SparkSession, to: Target) -> list[dict[str, Any]]:
    """What a reader of the table sees."""
    if isinstance(to, ParquetTable):
        rows = to.read(spark).toArrow().to_pylist()
    else:
        assert isinstance(to, DuckDBTable)
        with duckdb.connect(str(to.database)) as connection:
            rows = connection.sql(f'FROM "{to.name}"').arrow().read_all().to_pylist()
    return sorted(rows, key=repr)


def values_of(spark: SparkSession, to: Target) -> dict[str, Any]:
    return {row["user"]: row["value"] for row in rows_of(spark, to)}


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
    with pytest.raises(StreamproofError, match=r"2 rows were written to .*, and the driver sees 0"):
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
        assert f"(PID {other.pid}): disconnect that one, or raise patience, which is 0 ms" in str(failure.value)
        other.communicate(b"\n")
    assert table.content() is None


def test_a_database_holds_several_tables_and_streams(spark: SparkSession, tmp_path: Path) -> None:
    tables = [DuckDBTable(tmp_path / "database", name) for name in ("one", "two")]
    ByHand(spark, tmp_path / "first", tables[0]).write(0, change("ann", 1))
    ByHand(spark, tmp_path / "second", tables[1], "stream").write(0, change("ann", 2))
    assert [values_of(spark, table) for table in tables] == [{"ann": 1}, {"ann": 2}]


# What is refused.


def test_the_batches_of_another_query_are_refused(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    ByHand(spark, tmp_path / "checkpoint", target).write(0, change("ann", 1))
    other = ByHand(spark, tmp_path / "another", target)
    for batch in (0, 1):
        with pytest.raises(BadInput, match="it was written by the query query of checkpoint, and the checkpoint's"):
            other.write(batch, change("bob", 1))
    assert values_of(spark, target) == {"ann": 1}


def test_a_table_that_lacks_batches_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    target = ParquetTable(tmp_path / "table")
    hand = ByHand(spark, tmp_path / "checkpoint", target)
    with pytest.raises(BadInput, match="there is nothing, though the checkpoint's query has come to batch 7"):
        hand.write(7, change("ann", 1))
    hand.write(0)
    with pytest.raises(BadInput, match="holds all batches up to 0, and the checkpoint's query goes on with 2"):
        hand.write(2, change("ann", 1))


def test_an_older_copy_of_the_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    target = DuckDBTable(tmp_path / "database", "totals")
    hand = ByHand(spark, tmp_path / "checkpoint", target)
    hand.write(0, change("ann", 1))
    hand.write(1, change("ann", 2), offsets="files 3 to 5")
    with pytest.raises(BadInput, match="holds all batches up to 1, and the checkpoint's query goes on with 0"):
        hand.write(0, change("ann", 1))
    with pytest.raises(BadInput, match="holds batch 1 already, but another one by that number"):
        hand.write(1, change("ann", 2), change("bob", 1), offsets="files 3 to 6")


def test_other_columns_and_another_kind_of_result_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    target = DuckDBTable(tmp_path / "database", "totals")
    ByHand(spark, tmp_path / "checkpoint", target).write(0, change("ann", 1))
    text = f"{KEYS}, {WINDOW}, value string, {REST}"
    with pytest.raises(BadInput, match=r"it holds struct<.*value:bigint.* would give struct<.*value:string"):
        ByHand(spark, tmp_path / "checkpoint", target, schema=text).write(1, change("ann", "1"))
    with pytest.raises(BadInput, match="it holds a table, and result is 'stream'"):
        ByHand(spark, tmp_path / "checkpoint", target, "stream").write(1, change("ann", 1))


def test_what_is_there_already_and_not_ours_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").touch()
    with pytest.raises(BadInput, match=r"has no _manifest.json, but other files: name a new folder"):
        ParquetTable(tmp_path / "folder").content()
    with duckdb.connect(str(tmp_path / "database")) as connection:
        connection.execute("CREATE TABLE totals (n INTEGER)")
    with pytest.raises(BadInput, match="has a table Totals that materialize didn't make"):
        DuckDBTable(tmp_path / "database", "Totals").content()
    hand = ByHand(spark, tmp_path / "checkpoint", ParquetTable(tmp_path / "table", buckets=3))
    hand.write(0)
    with pytest.raises(BadInput, match=r"buckets is 16, but the table at .* has 3"):
        ParquetTable(tmp_path / "table").content()
    with pytest.raises(BadInput, match="there is no table at"):
        ParquetTable(tmp_path / "nothing").read(spark)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([change(None, 1)], "the key of a change is null"),
        ([change("ann", 1), change("ann", 2)], "two changes of a key have one ordinal"),
        ([(*change("ann", 1)[:5], "upsert", None, None, 0)], "a row's change is upsert, or its ordinal is null"),
        ([(*change("ann", 1)[:8], None)], "a row's change is update, or its ordinal is null"),
    ],
)
def test_rows_that_no_changelog_has_fail_the_batch(
    spark: SparkSession, tmp_path: Path, changes: list[tuple[Any, ...]], message: str
) -> None:
    table = ParquetTable(tmp_path / "table")
    with pytest.raises(PySparkException, match=message):
        ByHand(spark, tmp_path / "checkpoint", table).write(0, *changes)
    assert table.content() is None


def stream_of(spark: SparkSession, *columns: str) -> DataFrame:
    """A stream of the given columns, which is never run."""
    return spark.readStream.format("rate").load().selectExpr(*columns)


CHANGELOG = [f"null AS {name}" for name in ("user", "window", "value", "timestamp", "change", "ordinal")]


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        (["1 AS user"], {}, "has the columns user, but no window, value, timestamp, change, ordinal: give what an"),
        (CHANGELOG[1:], {}, "no column before window, so it has no key"),
        (["1 AS Value", *CHANGELOG], {}, "the name of the column 'Value' is taken: give the key another"),
        (["1 AS batch", *CHANGELOG], {}, "the name of the column 'batch' is taken"),
        ([*CHANGELOG, "1 AS country"], {}, "country would be in no table"),
        (CHANGELOG, {"result": "bag"}, "result is 'bag': choose table or stream"),
        (CHANGELOG, {"to": "totals"}, "to is 'totals': give a ParquetTable, a DuckDBTable, or a function"),
    ],
)
def test_a_wrong_declaration_is_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path, columns: list[str], arguments: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"to": print, "checkpoint": tmp_path / "checkpoint", **arguments}
    with pytest.raises(BadInput, match=message):
        materialize(stream_of(spark, *columns), **given)
    assert not (tmp_path / "checkpoint").exists()


def test_a_batch_frame_needs_no_query_and_a_stream_does(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it is a batch DataFrame, which needs no query"):
        materialize(spark.createDataFrame([], NUMBERS), to=print, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(BadInput, match="it is streaming, and a table of it needs a query"):
        folded(stream_of(spark, *CHANGELOG))


def test_a_query_on_another_s_table_is_refused_before_anything_runs(
    spark: SparkSession, target: Target, tmp_path: Path
) -> None:
    ByHand(spark, tmp_path / "checkpoint", target).write(0, change("ann", 1))
    types = [f"cast(null AS {field.dataType.simpleString()}) {field.name}" for field in target.content().schema]  # type: ignore[union-attr]
    stream = stream_of(spark, *types, "'update' AS change", "1 AS ordinal")
    with pytest.raises(BadInput, match="the checkpoint's query is a new one, whose batches are others"):
        materialize(stream, to=target, checkpoint=tmp_path / "new")


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: ParquetTable("s3://bucket/table"), "s3://bucket/table has a scheme"),
        (lambda: ParquetTable("/tmp/[1]"), r"/tmp/\[1\] has a character that makes it a pattern"),
        (lambda: ParquetTable("/tmp/x", buckets=0), "buckets is 0: give a positive number"),
        (lambda: ParquetTable("/tmp/x", versions=0), "versions is 0: give a positive number"),
        (lambda: DuckDBTable("/nowhere/x", "t"), "the folder /nowhere is missing"),
        (lambda: DuckDBTable("x", ""), "'' can't be a table's name"),
        (lambda: DuckDBTable("x", "Streamproof_Progress"), "can't be a table's name"),
        (lambda: DuckDBTable("x", "t", patience="5"), "patience is '5', without a unit"),
    ],
)
def test_a_wrong_target_is_refused_where_it_is_declared(declare: Callable[[], Target], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        declare()


# What is damaged, or can't be written.


NO_DATABASES: dict[str, tuple[bytes | None, str]] = {
    "a text": (b"hello\n" * 1000, "is no database of DuckDB's: name another file"),
    "a short one": (b"x", "is no database of DuckDB's"),
    "an empty one": (b"", "is no database of DuckDB's"),
    "a folder": (None, "is a folder: name a database's file"),
}


@pytest.mark.parametrize("name", NO_DATABASES)
def test_a_file_that_is_no_database_is_refused_where_it_is_declared(tmp_path: Path, name: str) -> None:
    content, message = NO_DATABASES[name]
    if content is None:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=message):
        DuckDBTable(tmp_path / name, "totals")


@pytest.mark.parametrize(("start", "end"), [(300, 400), (100, None), (12_288, 20_000)])
def test_a_damaged_database_is_told_at_once(tmp_path: Path, start: int, end: int | None) -> None:
    with duckdb.connect(str(tmp_path / "database")) as connection:
        connection.execute("CREATE TABLE totals AS SELECT range n FROM range(100000)")
    content = (tmp_path / "database").read_bytes()
    damage = b"" if end is None else b"x" * (end - start) + content[end:]
    (tmp_path / "database").write_bytes(content[:start] + damage)
    table = DuckDBTable(tmp_path / "database", "totals", patience="1 hour")
    with pytest.raises(StreamproofError, match=r"database can't be opened \(.*\): restore it and its checkpoint"):
        table.content()


SCHEMA: dict[str, Any] = {"type": "struct", "fields": []}
HELD: dict[str, Any] = {"query": "q", "batch": 3, "offsets": "o", "result": "table", "keys": ["k"], "schema": SCHEMA}
MANIFEST: dict[str, Any] = {"content": HELD, "buckets": 16, "folders": {}, "replaced": []}


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("", "Expecting value"),
        ('{"content": ', "Expecting value"),
        ("[]", "it hasn't the fields content, buckets, folders, replaced"),
        ({**MANIFEST, "buckets": "16"}, "buckets is '16'"),
        ({**MANIFEST, "folders": {"0": "../../home"}}, r"'../../home' is no folder of a table"),
        ({**MANIFEST, "content": {}}, "it hasn't the fields query, batch"),
        ({**MANIFEST, "content": {**HELD, "batch": None}}, "batch is None"),
        ({**MANIFEST, "content": {**HELD, "schema": {"type": "odd"}}}, "schema is none of Spark's"),
    ],
)
def test_a_damaged_manifest_is_told_by_its_file(tmp_path: Path, manifest: Any, message: str) -> None:
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (tmp_path / "_manifest.json").write_text(text)
    with pytest.raises(BadInput, match=rf"_manifest\.json is damaged \(.*{message}.*restore the table and its"):
        ParquetTable(tmp_path).content()


def test_a_table_without_its_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_manifest.json").write_text(json.dumps({**MANIFEST, "folders": {"0": "000000000/_bucket=0"}}))
    with pytest.raises(BadInput, match=r"_data/000000000/_bucket=0 is gone, which .*_manifest\.json names"):
        ParquetTable(tmp_path).content()


def test_a_damaged_row_of_a_database_is_told(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "database")) as connection:
        connection.execute("CREATE TABLE totals (n INTEGER)")
        connection.execute("CREATE TABLE streamproof_progress (table_name VARCHAR, batch BIGINT, content VARCHAR)")
        connection.execute("INSERT INTO streamproof_progress VALUES ('totals', 1, '{')")
    with pytest.raises(BadInput, match="the row of totals in streamproof_progress is damaged"):
        DuckDBTable(tmp_path / "database", "totals").content()


def full(*given: Any, **options: Any) -> None:
    raise OSError(28, os.strerror(28))


def test_a_target_that_can_not_be_written_is_told_in_one_line_before_anything_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for table in (ParquetTable(tmp_path / "table"), DuckDBTable(tmp_path / "database", "totals")):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_bytes", full)
            with pytest.raises(
                BadInput, match=r"can't be written \(No space left on device\): name a folder"
            ) as failure:
                materialize(stream_of(spark, *CHANGELOG), to=table, checkpoint=tmp_path / "checkpoint")
        assert len(str(failure.value).splitlines()) == 1
        assert not (tmp_path / "checkpoint").exists()
    with pytest.raises(BadInput, match="is a file: name a folder"):
        ParquetTable(tmp_path / "file")
    below = ParquetTable(tmp_path / "file" / "table")
    with pytest.raises(BadInput, match=r"can't be written \((Not a directory|File exists)\)"):
        materialize(stream_of(spark, *CHANGELOG), to=below, checkpoint=tmp_path / "checkpoint")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "table"]


def test_a_checkpoint_that_can_not_be_written_is_told_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"checkpoint: .*file/below can't be written \(.*\): name a folder") as failure:
        materialize(stream_of(spark, *CHANGELOG), to=print, checkpoint=tmp_path / "file" / "below")
    assert len(str(failure.value).splitlines()) == 1


def test_a_target_that_fills_up_is_told_in_one_line_and_goes_on_later(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ParquetTable(tmp_path / "table")
    hand = ByHand(spark, tmp_path / "checkpoint", table)
    hand.write(0, change("ann", 1))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        (hand.checkpoint / "offsets" / "1").write_bytes(b"v1\n1 ")
        with pytest.raises(StreamproofError, match=r"table can't be written \(No space left on device\): make room"):
            hand.sink.write(spark.createDataFrame([change("ann", 2)], NUMBERS), 1)
    assert values_of(spark, table) == {"ann": 1}
    hand.write(1, change("ann", 2))
    assert values_of(spark, table) == {"ann": 2}


@pytest.mark.parametrize("metadata", ["", "hello", '{"id":"12', "[]", "{}", '{"id": 1}'])
def test_a_checkpoint_with_damaged_metadata_is_told_before_anything_runs(
    spark: SparkSession, tmp_path: Path, metadata: str
) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text(metadata)
    with pytest.raises(BadInput, match="checkpoint is damaged: its file metadata doesn't hold the query's id: restore"):
        materialize(stream_of(spark, *CHANGELOG), to=print, checkpoint=checkpoint)
    assert [path.name for path in checkpoint.iterdir()] == ["metadata"]


def test_a_checkpoint_whose_checksum_is_wrong_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id": "a"}')
    (tmp_path / ".metadata.crc").write_bytes(b"crc\0\0\0\x02\0\x01\x02\x03\x04")
    with pytest.raises(BadInput, match=r"/metadata is damaged \(Checksum error\)"):
        query_of(spark, str(tmp_path))


# A user's function.


@pytest.fixture
def derby(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    """A connection to a database in memory, which Spark reaches over JDBC too."""
    jvm = spark._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    connection = jvm.java.sql.DriverManager.getConnection("jdbc:derby:memory:sink;create=true")
    yield connection
    connection.close()
    with suppress(Exception):  # Derby tells success with an exception
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


# The law: whatever stops and crashes, the target holds the fold of the reference's changelog.

SHAPE = Shape({"gap_ms": 10, "grace_ms": 30, "aggregate": "list"}, schedule=(40, 80, 120), arrivals=16)
REPEATED = (1,)


def starting(spark: SparkSession, source: Path, build: Callable[[DataFrame], DataFrame]) -> Callable[..., Any]:
    """Give what materializes the files of a folder, each as a batch, and waits for the end."""
    schema = spark.read.parquet(str(source)).schema

    def run(to: Any, checkpoint: Path, **options: Any) -> list[int]:
        """Give the batches that were run."""
        events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
        query = materialize(build(events), to=to, checkpoint=checkpoint, availableNow=True, **options)
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return [progress["batchId"] for progress in query.recentProgress]

    return run


def put(source: Path, tables: Sequence[pa.Table]) -> None:
    source.mkdir()
    for number, table in enumerate(tables):
        file = source / f"{number:06d}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))


class Several:
    """Several targets, with which Spark may crash between a batch's output and its commit."""

    def __init__(self, *targets: Target, crash_in: int | None = None) -> None:
        self.targets, self.crash_in = targets, crash_in

    def content(self) -> Content | None:
        first, *others = (target.content() for target in self.targets)
        assert all(other == first for other in others)
        return first

    def commit(self, rows: DataFrame, content: Content) -> None:
        for target in self.targets:
            target.commit(rows, content)
        if content.batch == self.crash_in:
            raise Crash


def test_the_sessions_of_random_histories_are_the_reference_s_after_a_crash_and_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    histories = list(draw_histories(SHAPE, 60, seed=1))
    cohort, binding = one_cohort(histories), BINDINGS["session_windows"]
    definition = operator_named("session_windows").declare(SHAPE.options)
    records = [record for history in histories for record in history.records]
    put(tmp_path / "source", pack(cohort, binding.fields(definition, records)))
    run = starting(spark, tmp_path / "source", builder("session_windows", SHAPE.options, PLAIN, 8))
    targets = ParquetTable(tmp_path / "table", buckets=5), DuckDBTable(tmp_path / "database", "sessions")
    with pytest.raises(StreamingQueryException, match="Crash"):
        run(Several(*targets, crash_in=1), tmp_path / "checkpoint")
    assert run(Several(*targets), tmp_path / "checkpoint")[0] == 1  # Spark did run the batch again
    expected = {
        (f"{place:05d}|{key}", window): row
        for place, history in enumerate(histories)
        for (key, window), row in play(history).result.items()  # type: ignore[union-attr]
    }
    assert len(expected) > 100
    for target in targets:
        found = {
            (row["key"], bounds(row)): (binding.decode(definition, row["value"]), ms(row["timestamp"]))
            for row in rows_of(spark, target)
            if row["key"] != "~clock"
        }
        assert found == expected


def bounds(row: dict[str, Any]) -> tuple[int, int]:
    return ms(row["window"]["start"]), ms(row["window"]["end"])


def ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def random_changelog(seed: int) -> list[list[tuple[Any, ...]]]:
    """What the reference tells of random histories: rows of a changelog by batch, in no order."""
    histories = list(draw_histories(SHAPE, 30, seed))
    batches: list[list[tuple[Any, ...]]] = [[] for _ in SHAPE.schedule]
    for history in histories:
        for ordinal, entry in enumerate(play(history).entries):
            told = entry.output
            if isinstance(told, Change):
                value = None if told.value is None else len(told.value)
                batches[entry.batch].append((history.name, *change(told.key, value, ordinal, told.window)[1:]))
    for batch in batches:
        random.Random(seed).shuffle(batch)
    return batches


def fold_of(batches: Sequence[Sequence[tuple[Any, ...]]]) -> dict[Any, Any]:
    """What the changelog comes to, by the reference's fold."""
    changes = [
        Change(f"{row[0]}|{row[1]}", tuple(map(ms, row[2])), row[3], ms(row[4]))  # type: ignore[arg-type]
        for batch in batches
        for row in sorted(batch, key=lambda row: row[8])
    ]
    return {row: value for row, (value, _) in fold(changes).items()}


def table_of(spark: SparkSession, to: Target) -> dict[Any, Any]:
    return {(f"{row['country']}|{row['user']}", bounds(row)): row["value"] for row in rows_of(spark, to)}


def table_breaks(spark: SparkSession, folder: Path, to: Target, seed: int) -> bool:
    """Whether a table, of which a new run repeats batches, parts from the fold."""
    batches = random_changelog(seed)
    for number, batch in enumerate(batches):
        for _ in range(1 + (number in REPEATED)):
            ByHand(spark, folder / "checkpoint", to).write(number, *batch)
    return table_of(spark, to) != fold_of(batches)


def stream_breaks(spark: SparkSession, folder: Path, to: Target, seed: int) -> bool:
    """Whether a stream, of which a new run repeats batches, has other than every change once."""
    batches = random_changelog(seed)
    for number, batch in enumerate(batches):
        for _ in range(1 + (number in REPEATED)):
            ByHand(spark, folder / "checkpoint", to, "stream").write(number, *batch)
    found = [(row["country"], row["user"], row["batch"], row["ordinal"], row["value"]) for row in rows_of(spark, to)]
    told = [(row[0], row[1], number, row[8], row[3]) for number, batch in enumerate(batches) for row in batch]
    return sorted(found, key=repr) != sorted(told, key=repr)


def test_a_table_is_the_fold_of_a_random_changelog(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    assert not table_breaks(spark, tmp_path, target, seed=2)


def test_a_stream_is_all_of_a_random_changelog(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    assert not stream_breaks(spark, tmp_path, target, seed=3)


class LeavesTombstonesOut(DuckDBTable):
    def commit(self, rows: DataFrame, content: Content) -> None:
        super().commit(rows.filter("change = 'update'"), content)


def test_a_table_without_tombstones_is_caught(spark: SparkSession, tmp_path: Path) -> None:
    assert table_breaks(spark, tmp_path, LeavesTombstonesOut(tmp_path / "database", "totals"), seed=2)


def test_a_table_that_takes_any_change_for_the_last_is_caught(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def any_change(changelog: DataFrame, keys: tuple[str, ...]) -> DataFrame:
        return changelog.dropDuplicates([*keys, "window"]).drop("reason", "cause", "ordinal")

    monkeypatch.setattr(materialize_module, "last_changes", any_change)
    assert table_breaks(spark, tmp_path, DuckDBTable(tmp_path / "database", "totals"), seed=2)


def test_a_stream_that_forgets_its_batch_is_caught(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(materialize_module, "follows", lambda before, now: True)
    assert stream_breaks(spark, tmp_path, DuckDBTable(tmp_path / "database", "totals"), seed=3)
