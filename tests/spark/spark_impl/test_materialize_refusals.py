"""What a sink refuses: another query's table, lost batches, damaged files, a place that can't be written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from materialized import KEYS, NUMBERS, REST, WINDOW, ByHand, change, values_of
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from streamproof.reference.core.errors import BadInput, StreamproofError
from streamproof.spark_impl.runtime.checkpoints import query_of
from streamproof.spark_impl.sinks.materialize import Target, folded, materialize
from streamproof.spark_impl.sinks.tables import DuckDBTable, ParquetTable

# What is refused.


def test_the_batches_of_another_query_are_refused(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    ByHand(spark, tmp_path / "checkpoint", target).write(0, change("ann", 1))
    other = ByHand(spark, tmp_path / "another", target)
    for batch in (0, 1):
        with pytest.raises(BadInput, match="it was written by the query query of checkpoint, but the checkpoint's"):
            other.write(batch, change("bob", 1))
    assert values_of(spark, target) == {"ann": 1}


def test_a_table_that_lacks_batches_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    target = ParquetTable(tmp_path / "table")
    hand = ByHand(spark, tmp_path / "checkpoint", target)
    with pytest.raises(BadInput, match="the target is empty, though the checkpoint's query has reached batch 7"):
        hand.write(7, change("ann", 1))
    hand.write(0)
    with pytest.raises(BadInput, match="contains all batches up to 0, and the checkpoint's query continues with 2"):
        hand.write(2, change("ann", 1))


def test_an_older_copy_of_the_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    target = DuckDBTable(tmp_path / "database", "totals")
    hand = ByHand(spark, tmp_path / "checkpoint", target)
    hand.write(0, change("ann", 1))
    hand.write(1, change("ann", 2), offsets="files 3 to 5")
    with pytest.raises(BadInput, match="contains all batches up to 1, and the checkpoint's query continues with 0"):
        hand.write(0, change("ann", 1))
    with pytest.raises(BadInput, match="already contains another batch 1:"):
        hand.write(1, change("ann", 2), change("bob", 1), offsets="files 3 to 6")


def test_other_columns_and_another_kind_of_result_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    target = DuckDBTable(tmp_path / "database", "totals")
    ByHand(spark, tmp_path / "checkpoint", target).write(0, change("ann", 1))
    text = f"{KEYS}, {WINDOW}, value string, {REST}"
    with pytest.raises(BadInput, match=r"it contains struct<.*value:bigint.* but .* has struct<.*value:string"):
        ByHand(spark, tmp_path / "checkpoint", target, schema=text).write(1, change("ann", "1"))
    with pytest.raises(BadInput, match="it contains a table, but result is 'stream'"):
        ByHand(spark, tmp_path / "checkpoint", target, "stream").write(1, change("ann", 1))


def test_what_is_there_already_and_not_ours_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").touch()
    with pytest.raises(BadInput, match=r"contains other files, but no _manifest.json: name a new folder"):
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
        ([(None, *change(None, 1)[1:])], "the key of a change is null"),
        ([change("ann", 1), change("ann", 2)], "two changes of a key have the same ordinal"),
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
        (["1 AS user"], {}, "has the columns user, but lacks window, value, timestamp, change, ordinal: give an op"),
        (CHANGELOG[1:], {}, "no column before window, so it has no key"),
        (["1 AS Value", *CHANGELOG], {}, "the column name 'Value' is reserved: give the key another"),
        (["1 AS batch", *CHANGELOG], {}, "the column name 'batch' is reserved"),
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
    with pytest.raises(BadInput, match="it is streaming, and its table needs a query"):
        folded(stream_of(spark, *CHANGELOG))


def test_a_query_on_another_s_table_is_refused_before_anything_runs(
    spark: SparkSession, target: Target, tmp_path: Path
) -> None:
    ByHand(spark, tmp_path / "checkpoint", target).write(0, change("ann", 1))
    types = [f"cast(null AS {field.dataType.simpleString()}) {field.name}" for field in target.content().schema]  # type: ignore[union-attr]
    stream = stream_of(spark, *types, "'update' AS change", "1 AS ordinal")
    with pytest.raises(BadInput, match="the checkpoint's query is a new one, with other batches"):
        materialize(stream, to=target, checkpoint=tmp_path / "new")


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: ParquetTable("s3://bucket/table"), "s3://bucket/table has a scheme"),
        (lambda: ParquetTable("/tmp/[1]"), r"/tmp/\[1\] contains a character of a glob pattern"),
        (lambda: ParquetTable("nowhere", buckets=0), "buckets is 0: give a positive number"),
        (lambda: ParquetTable("nowhere", versions=0), "versions is 0: give a positive number"),
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
    "a text": (b"hello\n" * 1000, "isn't a DuckDB database: name another file"),
    "a short one": (b"x", "isn't a DuckDB database"),
    "an empty one": (b"", "isn't a DuckDB database"),
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
def test_a_damaged_database_is_reported_at_once(tmp_path: Path, start: int, end: int | None) -> None:
    with duckdb.connect(str(tmp_path / "database")) as connection:
        connection.execute("CREATE TABLE totals AS SELECT range n FROM range(100000)")
    content = (tmp_path / "database").read_bytes()
    damage = b"" if end is None else b"x" * (end - start) + content[end:]
    (tmp_path / "database").write_bytes(content[:start] + damage)
    table = DuckDBTable(tmp_path / "database", "totals", patience="1 hour")
    with pytest.raises(
        StreamproofError, match=r"database can't be opened \(.*\): restore the database and its checkpoint"
    ):
        table.content()


SCHEMA: dict[str, Any] = {"type": "struct", "fields": []}
HELD: dict[str, Any] = {"query": "q", "batch": 3, "offsets": "o", "result": "table", "keys": ["k"], "schema": SCHEMA}
MANIFEST: dict[str, Any] = {"content": HELD, "buckets": 16, "folders": {}, "replaced": []}


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("", "Expecting value"),
        ('{"content": ', "Expecting value"),
        ("[]", "it lacks the fields content, buckets, folders, replaced"),
        ({**MANIFEST, "buckets": "16"}, "buckets is '16'"),
        ({**MANIFEST, "folders": {"0": "../../home"}}, r"'../../home' isn't a folder of a table"),
        ({**MANIFEST, "content": {}}, "it lacks the fields query, batch"),
        ({**MANIFEST, "content": {**HELD, "batch": None}}, "batch is None"),
        ({**MANIFEST, "content": {**HELD, "schema": {"type": "odd"}}}, "schema isn't a Spark schema"),
    ],
)
def test_a_damaged_manifest_is_reported_by_its_file(tmp_path: Path, manifest: Any, message: str) -> None:
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (tmp_path / "_manifest.json").write_text(text)
    with pytest.raises(BadInput, match=rf"_manifest\.json is damaged \(.*{message}.*restore the table and its"):
        ParquetTable(tmp_path).content()


def test_a_table_without_its_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_manifest.json").write_text(json.dumps({**MANIFEST, "folders": {"0": "000000000/_bucket=0"}}))
    with pytest.raises(BadInput, match=r"_data/000000000/_bucket=0 is missing, although .*_manifest\.json lists"):
        ParquetTable(tmp_path).content()


def test_a_damaged_row_of_a_database_is_reported(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "database")) as connection:
        connection.execute("CREATE TABLE totals (n INTEGER)")
        connection.execute("CREATE TABLE streamproof_progress (table_name VARCHAR, batch BIGINT, content VARCHAR)")
        connection.execute("INSERT INTO streamproof_progress VALUES ('totals', 1, '{')")
    with pytest.raises(BadInput, match="the row of totals in streamproof_progress is damaged"):
        DuckDBTable(tmp_path / "database", "totals").content()


def full(*given: Any, **options: Any) -> None:
    raise OSError(28, os.strerror(28))


def test_a_target_that_can_not_be_written_is_reported_in_one_line_before_anything_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for table in (ParquetTable(tmp_path / "table"), DuckDBTable(tmp_path / "database", "totals")):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_bytes", full)
            with pytest.raises(
                BadInput, match=r"can't be written \(No space left on device\): name a writable folder"
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


def test_a_checkpoint_that_can_not_be_written_is_reported_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        BadInput, match=r"checkpoint: .*file/below can't be written \(.*\): name a writable folder"
    ) as failure:
        materialize(stream_of(spark, *CHANGELOG), to=print, checkpoint=tmp_path / "file" / "below")
    assert len(str(failure.value).splitlines()) == 1


def test_a_target_that_fills_up_is_reported_in_one_line_and_goes_on_later(
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
def test_a_checkpoint_with_damaged_metadata_is_reported_before_anything_runs(
    spark: SparkSession, tmp_path: Path, metadata: str
) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text(metadata)
    with pytest.raises(
        BadInput, match="checkpoint is damaged: its file metadata doesn't contain the query's id: restore"
    ):
        materialize(stream_of(spark, *CHANGELOG), to=print, checkpoint=checkpoint)
    assert [path.name for path in checkpoint.iterdir()] == ["metadata"]


def test_a_checkpoint_whose_checksum_is_wrong_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id": "a"}')
    (tmp_path / ".metadata.crc").write_bytes(b"crc\0\0\0\x02\0\x01\x02\x03\x04")
    with pytest.raises(BadInput, match=r"/metadata is damaged \(Checksum error\)"):
        query_of(spark, str(tmp_path))
