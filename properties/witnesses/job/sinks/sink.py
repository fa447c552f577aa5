"""A job that writes its own result: a function that starts its query, and a function that reads the written rows."""

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
    `Sink.postgres` read the result themselves. The check calls `start` with the inputs, then two texts: the target,
    which is new and empty for each query, and the checkpoint's folder. The check calls `start` again, with the same two
    texts, after each restart of the query.

    Attributes:
        start: A function that gets the inputs, and the query's own folder (`pathlib.Path`). The function starts the
            query, with its checkpoint in that folder, and returns the query. The check calls the function again after
            each restart of the query.
        read: A function that gets the folder, and returns the written rows: rows (dicts), or a pandas, arrow or Spark
            frame.
    """

    start: Callable[..., StreamingQuery]
    read: Callable[[Any], Any]
    _store: SinkStore | None = field(default=None, repr=False, kw_only=True)

    @property
    def notes(self) -> Sequence[str]:
        """The job's actions that aren't checked, if known."""
        notes: Sequence[str] = getattr(self.start, "notes", ())
        return notes

    @property
    def code(self) -> Any:
        """The user's function that starts the query, or the code of the script."""
        return getattr(self.start, "code", self.start)

    @staticmethod
    @checked
    def parquet(start: Callable[..., StreamingQuery], *, schema: Any = None, without: Sequence[str] = ()) -> Sink:
        """Return a sink whose target is a folder of parquet files, including its subfolders.

        With Spark's own file sink, only the files in its log count. The check reads partition columns, such as `day` in
        `day=2024-10-27`, as text.

        Args:
            start: Starts the query; see `Sink`.
            schema: The types of partition columns, as DDL: "day date".
            without: Columns outside the result, such as the number of the batch.

        Raises:
            BadInput: The schema isn't valid.
        """
        return _stored(start, ParquetFiles(schema, without))

    @staticmethod
    @checked
    def json(start: Callable[..., StreamingQuery], *, schema: Any = None, without: Sequence[str] = ()) -> Sink:
        """Return a sink whose target is a folder of JSON Lines files; the rest is as in `Sink.parquet`.

        Args:
            start: Starts the query; see `Sink`.
            schema: The types of columns, as DDL: "at timestamp, price decimal(8,2)"; other columns keep JSON's types:
                text, numbers, truth values, lists and objects.
            without: Columns outside the result, such as the number of the batch.

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
            without: Columns outside the result, such as the number of the batch.

        Raises:
            MissingTool: deltalake isn't installed.
        """
        return _stored(start, DeltaTable(without=without))

    @staticmethod
    @checked
    def iceberg(start: Callable[..., StreamingQuery], *, table: str, without: Sequence[str] = ()) -> Sink:
        """Return a sink whose target is the folder of an Iceberg warehouse; the package pyiceberg reads its tables.

        The warehouse's catalog is an SQLite file in the folder, as pyiceberg's `SqlCatalog` or Iceberg's `JdbcCatalog`
        creates it, or the folder itself, as Spark's catalog of type `hadoop`.

        Args:
            start: Starts the query; see `Sink`.
            table: The result's table, with or without its namespace.
            without: Columns outside the result, such as the number of the batch.

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
            table: The table or view with the result.
            schema: The types of columns, as DDL: "at timestamp, price decimal(8,2)"; other columns keep SQLite's types:
                text, numbers and bytes.
            without: Columns outside the result, such as the number of the batch.

        Raises:
            BadInput: The schema isn't valid.
        """
        return _stored(start, SQLiteTable(schema, without, table=table))

    @staticmethod
    @checked
    def duckdb(start: Callable[..., StreamingQuery], *, table: str, without: Sequence[str] = ()) -> Sink:
        """Return a sink whose target is the file of a DuckDB database.

        Args:
            start: Starts the query; see `Sink`. The function must close its connections.
            table: The table or view with the result.
            without: Columns outside the result, such as the number of the batch.
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
        """Return a sink whose target is the URL of a separate schema in a PostgreSQL database.

        The check creates the schema before each query, and drops the schema after the query. A connection to the target
        finds only the tables of that schema by their unqualified names.

        Args:
            start: Starts the query; see `Sink`.
            table: The table or view with the result.
            url: The database; the user must be allowed to create schemas: "postgresql://user@localhost:5432/tests".
            jdbc: Whether the target is a JDBC URL, for Spark's `write.jdbc(target, …)`; the session needs the driver's
                jar.
            without: Columns outside the result, such as the number of the batch.

        Raises:
            BadInput: JDBC can't reach the database, because its address is a Unix socket.
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

        The check starts the broker for the first query. Each query gets a new topic, which the check deletes
        afterwards. The result consists of the records for a reader with the isolation level `read_committed`.

        Args:
            start: Starts the query; see `Sink`.
            value: "json": each value is a JSON object, whose members are columns; "text": each value is the column
                `value`. The key, as text, is the column `key`.
            once: The columns by which the topic's readers recognize a repeated record, such as `["batch", "row"]`: only
                the first record counts. Spark's writer to Kafka repeats records after a crash.
            schema: The types of columns, as for `Sink.json`.
            without: Columns outside the result, such as the key.

        Raises:
            BadInput: The schema isn't valid.
        """
        return _stored(start, TopicStore(schema, without, value=value, once=once))

    @contextlib.contextmanager
    def at(self, folder: Path) -> Iterator[tuple[Any, ...]]:
        """Create the further arguments of a sink's functions for a query in this folder, yield them, and then remove
        them.

        Raises:
            BadInput: An argument can't be created.
        """
        if self._store is None:
            yield (folder,)
            return
        with self._store.at(folder) as target:
            yield target, str(folder / "checkpoint")


def _stored(start: Callable[..., StreamingQuery], store: SinkStore) -> Sink:
    return Sink(start, store.read, _store=store)
