"""What a parquet table keeps on disk: the files of its newest versions, and no others; without Spark."""

from __future__ import annotations

import os
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T
from streamproof import BadInput
from streamproof.spark_impl.runtime.logic import TOMBSTONE, UPDATE
from streamproof.spark_impl.sinks import tables
from streamproof.spark_impl.sinks.materialize import Included
from streamproof.spark_impl.sinks.tables import BUCKET, DATA, DuckDBTable, ParquetTable, _quoted

SCHEMA = T.StructType().add("key", "string").add("value", "long")


def file_in(folder: Path) -> bool:
    folder.mkdir(parents=True)
    (folder / "part.parquet").touch()
    return True


@pytest.mark.parametrize("result", ["table", "stream"])
@pytest.mark.parametrize("versions", [1, 2, 3])
def test_the_files_of_as_many_versions_stay_as_are_asked_for_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: str, versions: int
) -> None:
    generator = random.Random(versions)

    def rewritten(self: ParquetTable, rows: Any, content: Included, before: Any) -> tuple[set[str], dict[str, str]]:
        touched = set(generator.sample("0123", generator.randint(0, 3)))
        left = [name for name in sorted(touched) if generator.random() < 0.8]  # a bucket may become empty
        folders = {name: f"{content.batch:09d}/{BUCKET}={name}" for name in left}
        return touched, {name: folder for name, folder in folders.items() if file_in(self._data / folder)}

    monkeypatch.setattr(ParquetTable, "_rewritten", rewritten)
    monkeypatch.setattr(tables, "_write", lambda rows, folder, count: file_in(folder))
    seen: list[list[Path]] = []
    for batch in (*range(8), 10, 100, 1000, 1001, 10**9, 10**9 + 1):
        table = ParquetTable(tmp_path / "table", 4, versions)
        content = Included("query", batch, "offsets", result, ("key",), SCHEMA)
        rows: Any = SimpleNamespace(isEmpty=lambda: generator.random() < 0.2, count=lambda: 1)
        table.commit(rows, content)
        assert table.content() == content
        seen.append(table.files())
        readable = {file for files in seen[-versions:] for file in files}
        assert {*(tmp_path / "table" / DATA).rglob("*.parquet")} == readable
    assert len({*map(tuple, seen)}) > 4


@pytest.mark.parametrize("name", ["totals", 'of "a"', '"', "sum's"])
def test_a_name_of_a_table_is_quoted_as_duckdb_reads_it(name: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE {_quoted(name)} (n INT)")
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [(name,)]


def test_whether_a_folder_can_be_written_is_tried_and_nothing_of_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = [ParquetTable(tmp_path / "new" / "table"), DuckDBTable(tmp_path / "database.duckdb", "totals")]
    for target in targets:
        target.require_writable()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set()

    def full(path: Path, content: bytes) -> None:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    for target in targets:
        with pytest.raises(BadInput, match=r"can't be written \(No space left on device\): name a writable folder"):
            target.require_writable()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set()


def test_a_database_that_can_only_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = DuckDBTable(tmp_path / "database.duckdb", "totals")
    monkeypatch.setattr(tables.os, "access", lambda path, mode: mode != os.W_OK)
    target.require_writable()  # it isn't there yet
    with duckdb.connect(tmp_path / "database.duckdb"):
        pass
    with pytest.raises(BadInput, match=r"database.duckdb can't be written \(it is read-only\): make it writable"):
        target.require_writable()


@pytest.mark.parametrize("name", ["totals", "sum's"])
def test_a_change_replaces_or_removes_the_row_of_its_key_and_window_alone(tmp_path: Path, name: str) -> None:
    table = DuckDBTable(tmp_path / "database.duckdb", name)
    schema = T.StructType().add("user", "string").add("item", "long").add("window", "long").add("value", "long")
    batches: list[list[tuple[Any, ...]]] = [
        [("a", 1, 0, 5), ("a", 1, 10, 6), ("a", 2, 0, 7), (None, 1, None, 8)],
        [("a", 1, 10, 9), ("a", 2, 0, None), (None, 1, None, 4)],
    ]
    with duckdb.connect() as connection:
        for batch, changes in enumerate(batches):
            rows = [dict(zip(schema.names, one, strict=True)) for one in changes]
            rows = [{**row, "change": UPDATE if row["value"] else TOMBSTONE} for row in rows]
            staging = tmp_path / str(batch)
            staging.mkdir()
            pq.write_table(pa.Table.from_pylist(rows), staging / "part.parquet")
            table._take(connection, staging, Included("query", batch, "offsets", "table", ("user", "item"), schema))
        found = connection.execute(f"SELECT * FROM {_quoted(name)} ORDER BY ALL").fetchall()
    assert found == [("a", 1, 0, 5), ("a", 1, 10, 9), (None, 1, None, 4)]
