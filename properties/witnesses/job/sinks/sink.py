"""A job that writes its result itself: how its query is started, and how what it wrote is read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....system.arguments import checked
from .databases import DuckDBStore, PostgresTable, SQLiteTable
from .delta import DeltaTable
from .files import JsonFiles, ParquetFiles
from .iceberg import IcebergTable
from .kafka import TopicStore, TopicValue
from .store import SinkStore

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery


@checked
@dataclass(frozen=True)
class Sink:
    """A job that writes its result itself, such as with `foreachBatch` into a database.

    `Sink.parquet`, `Sink.json`, `Sink.delta`, `Sink.iceberg`, `Sink.kafka`, `Sink.sqlite`, `Sink.duckdb` and
    `Sink.postgres` know how to read the result. Their `start` takes the inputs, then two texts: the target, which is
    new and empty for each query, and the folder of the checkpoint. It is called again, with the same two, when the
    query is restarted.

    Attributes:
        start: A function that takes the inputs, and a folder (`pathlib.Path`) of its own; it starts the query, with its
            checkpoint in that folder, and returns it. It is called again when the query is restarted.
        read: A function that takes the folder, and returns the rows written there: rows (dicts), or a pandas, arrow or
            Spark frame.
    """

    start: Callable[..., StreamingQuery]
    read: Callable[[Any], Any]
    _store: SinkStore | None = field(default=None, repr=False, kw_only=True)

    @property
    def notes(self) -> Sequence[str]:
        """The job's actions that aren't checked, where they are known."""
        notes: Sequence[str] = getattr(self.start, "notes", ())
        return notes

    @property
    def code(self) -> Any:
        """The user's function that starts the query, or the code of the script that does."""
        return getattr(self.start, "code", self.start)

    @staticmethod
    @checked
    def parquet(start: Callable[..., StreamingQuery], *, schema: Any = None, without: Sequence[str] = ()) -> Sink:
        """Return a sink whose target is a folder of parquet files, in folders within it too.

        With Spark's own file sink, only the files named in its log count. Columns in names of folders, such as `day` in
        `day=2024-10-27`, are read as text.

        Args:
            start: Starts the query; see `Sink`.
            schema: The types of columns that are in names of folders, as DDL: "day date".
            without: Columns that aren't part of the result, such as the number of the batch.

        Raises:
            BadInput: The schema isn't valid.
        """
        return _stored(start, ParquetFiles(schema, without))

    @staticmethod
    @checked
    def json(start: Callable[..., StreamingQuery], *, schema: Any = None, without: Sequence[str] = ()) -> Sink:
        """Return a sink whose target is a folder of JSON files, a row a line; otherwise as `Sink.parquet`.

        Args:
            start: Starts the query; see `Sink`.
            schema: The types of columns, as DDL: "at timestamp, price decimal(8,2)"; other columns are the text,
                numbers, truth values, lists and objects that JSON has.
            without: Columns that aren't part of the result, such as the number of the batch.

        Raises:
            BadInput: The schema isn't valid.
        """
        return _stored(start, JsonFiles(schema, without))

    @staticmethod
    @checked
    def delta(start: Callable[..., StreamingQuery], *, without: Sequence[str] = ()) -> Sink:
        """Return a sink whose target is the folder of a Delta table, which the package deltalake reads.

        Args:
            start: Starts the query; see `Sink`.
            without: Columns that aren't part of the result, such as the number of the batch.

        Raises:
            MissingTool: deltalake isn't installed.
        """
        return _stored(start, DeltaTable(without=without))

    @staticmethod
    @checked
    def iceberg(start: Callable[..., StreamingQuery], *, table: str, without: Sequence[str] = ()) -> Sink:
        """Return a sink whose target is the folder of an Iceberg warehouse, whose tables the package pyiceberg reads.

        The warehouse's catalog is an SQLite file in it, such as `SqlCatalog` of pyiceberg or Iceberg's `JdbcCatalog`
        makes, or its folders, as Spark's catalog of the type `hadoop`.

        Args:
            start: Starts the query; see `Sink`.
            table: The table that has the result, with its namespace or without.
            without: Columns that aren't part of the result, such as the number of the batch.

        Raises:
            MissingTool: pyiceberg isn't installed.
        """
        return _stored(start, IcebergTable(without=without, table=table))

    @staticmethod
    @checked
    def sqlite(
        start: Callable[..., StreamingQuery], *, table: str, schema: Any = None, without: Sequence[str] = ()
    ) -> Sink:
        """Return a sink whose target is the file of an SQLite database.

        Args:
            start: Starts the query; see `Sink`.
            table: The table, or view, that has the result.
            schema: The types of columns, as DDL: "at timestamp, price decimal(8,2)"; other columns are the text,
                numbers and bytes that SQLite has.
            without: Columns that aren't part of the result, such as the number of the batch.

        Raises:
            BadInput: The schema isn't valid.
        """
        return _stored(start, SQLiteTable(schema, without, table=table))

    @staticmethod
    @checked
    def duckdb(start: Callable[..., StreamingQuery], *, table: str, without: Sequence[str] = ()) -> Sink:
        """Return a sink whose target is the file of a DuckDB database.

        Args:
            start: Starts the query; see `Sink`. It closes its connections.
            table: The table, or view, that has the result.
            without: Columns that aren't part of the result, such as the number of the batch.
        """
        return _stored(start, DuckDBStore(without=without, table=table))

    @staticmethod
    @checked
    def postgres(
        start: Callable[..., StreamingQuery],
        *,
        table: str,
        url: str,
        jdbc: bool = False,
        without: Sequence[str] = (),
    ) -> Sink:
        """Return a sink whose target is the URL of a schema of its own in a PostgreSQL database.

        The schema is made before each query, and dropped after it. A connection to the target finds the tables of that
        schema alone by their bare names.

        Args:
            start: Starts the query; see `Sink`.
            table: The table, or view, that has the result.
            url: The database, in which the user may make schemas: "postgresql://user@localhost:5432/tests".
            jdbc: Whether the target is a URL of JDBC, for Spark's `write.jdbc(target, …)`, whose jar the session has.
            without: Columns that aren't part of the result, such as the number of the batch.

        Raises:
            BadInput: JDBC can't reach the database, which is at a Unix socket.
            MissingTool: psycopg isn't installed.
        """
        return _stored(start, PostgresTable(without=without, table=table, url=url, jdbc=jdbc))

    @staticmethod
    @checked
    def kafka(
        start: Callable[..., StreamingQuery],
        *,
        value: TopicValue = "json",
        once: Sequence[str] = (),
        schema: Any = None,
        without: Sequence[str] = (),
    ) -> Sink:
        """Return a sink whose target is a Kafka topic on a broker of this process: "127.0.0.1:9092/topic".

        The broker is started for the first query. Each query has a new topic, which is deleted after it. The result is
        what a reader finds whose isolation level is `read_committed`.

        Args:
            start: Starts the query; see `Sink`.
            value: "json": each value is a JSON object, whose members are columns; "text": it is the column `value`.
                The key, as text, is the column `key`.
            once: The columns by which the topic's readers know a record that comes again, such as
                `["batch", "row"]`: only the first counts. Spark's writer to Kafka repeats records after a crash.
            schema: The types of columns, as for `Sink.json`.
            without: Columns that aren't part of the result, such as the key.

        Raises:
            BadInput: The schema isn't valid.
        """
        return _stored(start, TopicStore(schema, without, value=value, once=once))

    @contextlib.contextmanager
    def at(self, folder: Path) -> Iterator[tuple[Any, ...]]:
        """Make the arguments of the functions beside the inputs, for one query that has this folder; then remove them.

        Raises:
            BadInput: An argument can't be made.
        """
        if self._store is None:
            yield (folder,)
            return
        with self._store.at(folder) as target:
            yield target, str(folder / "checkpoint")


def _stored(start: Callable[..., StreamingQuery], store: SinkStore) -> Sink:
    return Sink(start, store.read, _store=store)
