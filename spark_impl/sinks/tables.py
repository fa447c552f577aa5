"""Tables that `materialize` writes to: parquet files in a folder, and a table of a DuckDB database.

Both tables are on the file system of one machine, or on a file system that the driver and all executors share under the
same path. Both tables survive the end of any process at any time, and a crash of the machine if its file system keeps
the last writes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...reference.core.errors import BadInput, StreamproofError
from ..runtime.durations import Duration, milliseconds
from ..runtime.failures import file_system_reason
from ..runtime.logic import UPDATE
from .materialize import ANEW, Included, column

# The names begin with _, so that Spark and other parquet readers ignore these files.
MANIFEST, DATA = "_manifest.json", "_data"
BUCKET = "_bucket"
PROGRESS = "streamproof_progress"


class Manifest(NamedTuple):
    """The parts of a parquet table, stored as a file; replacing that file adds a batch to the table.

    Attributes:
        content: The table's content.
        buckets: The number of hash buckets of the keys.
        folders: For each bucket that isn't empty (for a stream: for each batch), the folder below `_data` with its
            files.
        replaced: The folders that the newest batches have replaced, one list per batch, the newest batch's first.
    """

    content: Included
    buckets: int
    folders: dict[str, str]
    replaced: list[list[str]]

    @property
    def needed(self) -> set[str]:
        """The folders that the table, or a reader of an earlier version, still needs."""
        return {*self.folders.values(), *(folder for one in self.replaced for folder in one)}


@dataclass(frozen=True)
class ParquetTable:
    """A table, or a stream, in parquet files; a reader always sees complete batches.

    The keys are hashed into buckets, and a batch rewrites the buckets that it touches. Files are never changed. The
    file `_manifest.json` names the current files. A batch replaces the manifest atomically when all files are written.
    A crash leaves files that nobody reads, and the next batch removes these files. Spark ignores files in a folder
    called `_data`, so nobody reads outdated files by mistake. Use `read`, or any parquet reader on `files`.

    Each batch of a stream adds its own files. No file is rewritten, so files stay as small as the batches.

    Attributes:
        path: The folder; created if missing.
        buckets: The number of buckets; the cost of a batch depends on the buckets that it touches. The number of
            buckets of an existing table can't be changed.
        versions: The number of readable versions of the table, including the newest. With two versions, a reader can
            still finish after one more batch is written. After two more batches the reader's query may fail because a
            file is missing; the query can be repeated, and never returns a wrong result.

    Raises:
        BadInput: The path has a scheme or a character of a glob pattern, or is a file; or `buckets` or `versions` is
            less than 1.
    """

    path: str | Path
    buckets: int = 16
    versions: int = 2

    def __post_init__(self) -> None:
        if os.path.isfile(_local("ParquetTable", self.path)):
            raise BadInput(f"ParquetTable: {self._folder} is a file: name a folder, which is created if missing")
        for name, number in (("buckets", self.buckets), ("versions", self.versions)):
            if number < 1:
                raise BadInput(f"{name} is {number}: give a positive number")

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the current table; later batches don't change the DataFrame.

        Raises:
            BadInput: There is no table yet.
        """
        manifest = self._found()
        return self._rows(spark, manifest, manifest.folders.values())

    def files(self) -> list[Path]:
        """Return the files of the current table, for other parquet readers.

        Raises:
            BadInput: There is no table yet.
        """
        folders = sorted(self._found().folders.values())
        return [file for folder in folders for file in sorted((self._data / folder).glob("*.parquet"))]

    def content(self) -> Included | None:
        """Return the table's content, or None if there is no table.

        Raises:
            BadInput: The folder contains other files, or a table with another number of buckets; or a file is damaged
                or missing.
        """
        manifest = self._manifest()
        if manifest is None:
            strange = [one.name for one in self._folder.glob("*") if not one.name.startswith("_")]
            if strange or self._folder.is_file():
                raise BadInput(
                    f"ParquetTable: {self._folder} contains other files, but no {MANIFEST}: name a new folder"
                )
            return None
        if manifest.buckets != self.buckets:
            raise BadInput(
                f"buckets is {self.buckets}, but the table at {self._folder} has {manifest.buckets}: use that number"
            )
        gone = [folder for folder in sorted(manifest.folders.values()) if not (self._data / folder).is_dir()]
        if gone:
            raise BadInput(
                f"ParquetTable: {self._data / gone[0]} is missing, although {self._folder / MANIFEST} lists it: "
                "restore the "
                f"table and its checkpoint from the same backup, or {ANEW}"
            )
        return manifest.content

    def require_writable(self) -> None:
        """Refuse a folder that isn't writable.

        Raises:
            BadInput: The message contains the reason.
        """
        _require_room("ParquetTable", self._folder)

    def commit(self, rows: DataFrame, content: Included) -> None:
        """Write a batch's files, add them to the table, and remove the files that no version needs."""
        before = self._manifest()
        folders = {} if before is None else before.folders
        earlier = [] if before is None else before.replaced
        if content.result == "stream":
            folders = {**folders, **self._added(rows, content)}
            replaced: list[str] = []
        else:
            touched, written = self._rewritten(rows, content, before)
            replaced = [folders[name] for name in touched if name in folders]
            folders = {name: folder for name, folder in folders.items() if name not in touched} | written
        after = Manifest(content, self.buckets, folders, [replaced, *earlier][: self.versions - 1])
        self._publish(after)
        self._remove_all_but(after.needed)

    def _added(self, rows: DataFrame, content: Included) -> dict[str, str]:
        if rows.isEmpty():
            return {}
        folder = f"{content.batch:09d}"
        _write(rows, self._data / folder, rows.count())
        return {str(content.batch): folder}

    def _rewritten(
        self, rows: DataFrame, content: Included, before: Manifest | None
    ) -> tuple[set[str], dict[str, str]]:
        """Rewrite the touched buckets; return their names, and the folders of the buckets that aren't empty."""
        bucket = F.pmod(F.xxhash64(*map(column, content.keys)), F.lit(self.buckets)).alias(BUCKET)
        touched = {str(row[0]) for row in rows.select(bucket).distinct().collect()}
        if not touched:
            return touched, {}
        after = rows.filter(F.col("change") == UPDATE).drop("change")
        if before is not None:
            state = self._rows(rows.sparkSession, before, [before.folders[n] for n in touched & before.folders.keys()])
            after = _without(state, rows, [*content.keys, "window"]).unionByName(after)
        version = f"{content.batch:09d}"
        after = after.select("*", bucket).repartition(BUCKET).persist()
        try:
            _write(after, self._data / version, after.count(), BUCKET)
        finally:
            after.unpersist()
        folders = {name: f"{version}/{BUCKET}={name}" for name in touched}
        return touched, {name: folder for name, folder in folders.items() if (self._data / folder).exists()}

    def _rows(self, spark: SparkSession, manifest: Manifest, folders: Any) -> DataFrame:
        paths = [_uri(self._data / folder) for folder in folders]
        if not paths:
            return spark.createDataFrame([], manifest.content.schema)
        # Whatever the session's settings are, a reader of an old version must fail on a missing file, not lose rows.
        reader = spark.read.options(ignoreMissingFiles="false", ignoreCorruptFiles="false")
        return reader.schema(manifest.content.schema).parquet(*paths)

    def _publish(self, manifest: Manifest) -> None:
        """Replace the manifest atomically."""
        hidden = self._folder / f"{MANIFEST}.writing"
        fields = {**manifest._asdict(), "content": manifest.content.to_json()}
        try:
            with _writing("ParquetTable", self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
                hidden.write_text(json.dumps(fields, indent=1), encoding="utf-8")
                hidden.replace(self._folder / MANIFEST)
        except BaseException:
            hidden.unlink(missing_ok=True)  # partial, if the disk is full
            raise

    def _remove_all_but(self, needed: set[str]) -> None:
        for version in self._data.glob("*"):
            buckets = {f"{version.name}/{bucket.name}" for bucket in version.glob(f"{BUCKET}=*")}
            gone = buckets - needed if needed & {version.name, *buckets} else {version.name}
            for folder in gone:
                shutil.rmtree(self._data / folder)

    def _found(self) -> Manifest:
        manifest = self._manifest()
        if manifest is None:
            raise BadInput(f"ParquetTable: there is no table at {self._folder} yet: materialize writes one")
        return manifest

    def _manifest(self) -> Manifest | None:
        try:
            return _manifest_of(json.loads((self._folder / MANIFEST).read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise BadInput(
                f"ParquetTable: {self._folder / MANIFEST} is damaged ({file_system_reason(error) or error}): restore "
                f"the table and its checkpoint from the same backup, or {ANEW}"
            ) from None

    @property
    def _folder(self) -> Path:
        return Path(self.path).absolute()

    @property
    def _data(self) -> Path:
        return self._folder / DATA


@dataclass(frozen=True)
class DuckDBTable:
    """A table, or a stream, in a DuckDB database; a batch is one transaction.

    Structs, arrays, maps and timestamps become DuckDB's STRUCT, LIST, MAP and TIMESTAMP WITH TIME ZONE. Executors write
    a batch's changes as parquet beside the database, and DuckDB reads them there. A row of the table
    `streamproof_progress` describes the table's content.

    The database is open only while a batch is written. The same process may connect to the database at any time (not
    with `read_only`). Another process locks the database while it is connected, and can't connect while a batch is
    written, so keep connections short.

    Attributes:
        database: The database's file; created if missing.
        name: The table's name.
        patience: How long a batch waits for another process to close the database; then the query fails.

    Raises:
        BadInput: The path has a scheme or a character of a glob pattern, its folder is missing, the file isn't a DuckDB
            database, the name is empty, or `patience` isn't a duration.
    """

    database: str | Path
    name: str
    patience: Duration = "1 minute"

    def __post_init__(self) -> None:
        database = _local("DuckDBTable", self.database)
        if not database.parent.is_dir():
            raise BadInput(f"DuckDBTable: the folder {database.parent} is missing: create it, or name another folder")
        _require_database(database)
        if not self.name or self.name.lower() == PROGRESS:
            raise BadInput(f"DuckDBTable: {self.name!r} can't be a table's name: give another name")
        milliseconds("patience", self.patience)

    def content(self) -> Included | None:
        """Return the table's content, or None if there is no table.

        Raises:
            BadInput: A table by that name exists that `materialize` didn't create.
            StreamproofError: Another process has locked the database.
        """
        if not Path(self.database).exists():
            return None
        with self._connected() as connection:
            tables = connection.execute("SELECT lower(table_name) FROM duckdb_tables() WHERE schema_name = 'main'")
            known = {name for (name,) in tables.fetchall()}
            if self.name.lower() not in known:
                return None
            query = f"SELECT content FROM {PROGRESS} WHERE table_name = ?"
            found = PROGRESS in known and connection.execute(query, [self.name.lower()]).fetchone()
            if not found:
                raise BadInput(
                    f"DuckDBTable: {self.database} has a table {self.name} that materialize didn't make: "
                    "choose another name, or drop it"
                )
            try:
                return Included.from_json(json.loads(found[0]))
            except ValueError as error:
                raise BadInput(
                    f"DuckDBTable: in {self.database} the row of {self.name} in {PROGRESS} is damaged ({error}): "
                    f"restore the database and the checkpoint from the same backup, or {ANEW}"
                ) from None

    def require_writable(self) -> None:
        """Refuse a database or folder that isn't writable.

        Raises:
            BadInput: The message contains the reason.
        """
        database = Path(self.database).absolute()
        if database.exists() and not os.access(database, os.W_OK):
            raise BadInput(f"DuckDBTable: {database} can't be written (it is read-only): make it writable, or {ANEW}")
        _require_room("DuckDBTable", database.parent)

    def commit(self, rows: DataFrame, content: Included) -> None:
        """Write a batch's rows and its number in one transaction."""
        database = Path(self.database).absolute()
        staging = database.parent / f"_{database.name}.{content.query}"
        try:
            _write(rows, staging, rows.count())
            with self._connected() as connection, _writing("DuckDBTable", database):
                connection.begin()
                self._take(connection, staging, content)
                connection.commit()
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _take(self, connection: duckdb.DuckDBPyConnection, staging: Path, content: Included) -> None:
        table, columns = _quoted(self.name), ", ".join(map(_quoted, content.schema.names))
        files = ", ".join("'{}'".format(str(file).replace("'", "''")) for file in sorted(staging.glob("*.parquet")))
        # Without partitions, because DuckDB would read a parent folder such as `day=1` as a column of the table.
        changes = f"read_parquet([{files}], hive_partitioning = false)"
        if content.batch == 0:
            connection.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM {changes} LIMIT 0")
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {PROGRESS} (table_name VARCHAR PRIMARY KEY, batch BIGINT, content VARCHAR)"
            )
        if content.result == "table":
            same = " AND ".join(
                f"t.{name} IS NOT DISTINCT FROM c.{name}" for name in map(_quoted, (*content.keys, "window"))
            )
            connection.execute(f"DELETE FROM {table} AS t USING {changes} AS c WHERE {same}")
        where = f"WHERE change = '{UPDATE}'" if content.result == "table" else ""
        connection.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {changes} {where}")
        progress = [self.name.lower(), content.batch, json.dumps(content.to_json())]
        connection.execute(f"INSERT OR REPLACE INTO {PROGRESS} VALUES (?, ?, ?)", progress)

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        end = time.monotonic() + milliseconds("patience", self.patience) / 1000
        while True:
            try:
                opened = duckdb.connect(str(self.database))
                break
            except duckdb.Error as error:
                _require_database(Path(self.database).absolute())
                held = _HELD.search(str(error))
                if held is None:  # waiting won't help
                    raise StreamproofError(
                        f"DuckDBTable: {self.database} can't be opened ({' '.join(str(error).split())}): restore the "
                        f"database and its checkpoint from the same backup, or {ANEW}"
                    ) from None
                if time.monotonic() >= end:
                    holder = f", {held[1]}" if held[1] else ""
                    raise StreamproofError(
                        f"DuckDBTable: {self.database} can't be opened: another process is connected to it{holder}: "
                        f"disconnect that process, or raise patience, which is {self.patience}"
                    ) from None
                time.sleep(0.05)
        with closing(opened) as connection:
            yield connection


_HELD = re.compile(r"Could not set lock on file(?:.*Conflicting lock is held in (.*?\(PID \d+\)))?", re.DOTALL)


def _require_database(database: Path) -> None:
    """Refuse a file that isn't a database; DuckDB itself would refuse the file only at the first batch.

    Raises:
        BadInput: The file isn't a database, or is unreadable.
    """
    try:
        with database.open("rb") as file:
            header = file.read(12)
    except FileNotFoundError:
        return
    except OSError as error:
        what = "is a folder" if database.is_dir() else f"can't be read ({error.strerror})"
        raise BadInput(f"DuckDBTable: {database} {what}: name a database's file, created if missing") from None
    if header[8:12] != b"DUCK":
        raise BadInput(
            f"DuckDBTable: {database} isn't a DuckDB database: name another file, which is created if missing"
        )


def _manifest_of(fields: Any) -> Manifest:
    """Return the manifest that `_publish` has written.

    Raises:
        ValueError: A field is missing or wrong.
    """
    if not isinstance(fields, dict) or fields.keys() != set(Manifest._fields):
        raise ValueError(f"it lacks the fields {', '.join(Manifest._fields)}")
    for name, kind in (("buckets", int), ("folders", dict), ("replaced", list)):
        if not isinstance(fields[name], kind):
            raise ValueError(f"{name} is {fields[name]!r}")
    folders = [*fields["folders"].values(), *(folder for one in fields["replaced"] for folder in one)]
    # Refuse paths out of the table's folder, because the next batch would remove folders that aren't the table's.
    strange = [one for one in folders if not isinstance(one, str) or ".." in one or one.startswith("/")]
    if strange:
        raise ValueError(f"{strange[0]!r} isn't a folder of a table")
    return Manifest(**{**fields, "content": Included.from_json(fields["content"])})


def _require_room(what: str, folder: Path) -> None:
    """Refuse a folder in which even a small file can't be written.

    Raises:
        BadInput: The message contains the reason.
    """
    probe = folder / f"_streamproof-{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            probe.write_bytes(bytes(1 << 14))
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(
            f"{what}: {folder} can't be written ({error.strerror}): name a writable folder with free space"
        ) from None


@contextmanager
def _writing(what: str, target: Path) -> Iterator[None]:
    """Convert an error of the file system to an error of one line.

    Raises:
        StreamproofError: The file system refused an operation.
    """
    try:
        yield
    except (OSError, Py4JJavaError, PySparkException, duckdb.Error) as error:
        reason = file_system_reason(error)
        if reason is None:
            raise
        raise StreamproofError(
            f"{what}: {target} can't be written ({reason}): make room, or make it writable, and start the query again; "
            "the table is as it was before this batch"
        ) from None


def _without(table: DataFrame, changes: DataFrame, by: list[str]) -> DataFrame:
    """Return the rows of a table that no change replaces or removes."""
    names = [f"_changed_{index}" for index in range(len(by))]
    changed = changes.select(*(column(name).alias(renamed) for name, renamed in zip(by, names, strict=True)))
    same = [column(name).eqNullSafe(F.col(renamed)) for name, renamed in zip(by, names, strict=True)]
    return table.join(changed, same, "left_anti")


def _write(rows: DataFrame, folder: Path, count: int, *partitions: str) -> None:
    """Write `count` rows as parquet, replacing leftovers of a crash."""
    setting, conf = "spark.sql.parquet.outputTimestampType", rows.sparkSession.conf
    # Not INT96, Spark's default format, in which other readers find no time zone.
    before = conf.get(setting) or "INT96"
    conf.set(setting, "TIMESTAMP_MICROS")
    try:
        with _writing("materialize", folder):
            rows.write.mode("overwrite").partitionBy(*partitions).parquet(_uri(folder))
    finally:
        conf.set(setting, before)
    seen = sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))
    if seen != count:
        raise StreamproofError(
            f"{count} rows were written to {folder}, but the driver sees {seen}: name a folder that executors share"
        )


def _local(what: str, path: str | Path) -> Path:
    """Return the absolute path; refuse a scheme, and characters of a glob pattern."""
    if "://" in str(path):
        raise BadInput(f"{what}: {path} has a scheme, but must be a plain path: write to other systems with a function")
    found = Path(path).absolute()
    if re.search(r"[*?\[\]{}\\]", str(found)):
        raise BadInput(f"{what}: {found} contains a character of a glob pattern: name another path")
    return found


def _uri(path: Path) -> str:
    # With the scheme, because Spark would otherwise use the cluster's default file system, such as HDFS.
    return f"file://{path}"


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
