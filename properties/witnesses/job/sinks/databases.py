"""Stores in database tables."""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from .....reference.core.errors import BadInput, import_extra
from ....generators.columns.forms.rows import Row
from ....system.arguments import short
from ....system.visible import first_line
from ..rows import rows_of
from .store import SinkStore

_SCHEMA = "currentSchema"
"""The schema parameter of a JDBC URL."""
_OF_BOTH = ("user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey")
"""The connection parameters with the same name in JDBC."""


@dataclass(frozen=True)
class DatabaseTable(SinkStore):
    """A table or view.

    Attributes:
        table: The table's name.
    """

    table: str = ""

    @abstractmethod
    def names(self, connection: Any) -> Sequence[str]:
        """Return the names of the database's tables and views."""

    def quoted(self, connection: Any) -> str:
        """Return the table's quoted name; empty if the database is empty.

        Raises:
            BadInput: The database contains other tables.
        """
        names = self.names(connection)
        if self.table not in names and names:
            raise BadInput(
                f"{self.name}: the target has no table {self.table!r}, but has {', '.join(map(repr, names))}: name "
                "one of these with table=, or let start create the table in its target"
            )
        return '"' + self.table.replace('"', '""') + '"' if names else ""

    def unreadable(self, error: Exception) -> BadInput:
        """Return the error for an unreadable table."""
        return BadInput(f"{self.name} can't read the table {self.table!r}: {first_line(error)}")


@dataclass(frozen=True)
class SQLiteTable(DatabaseTable):
    """An SQLite table."""

    name = "Sink.sqlite"
    file = "result.sqlite"

    def names(self, connection: sqlite3.Connection) -> Sequence[str]:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        return [name for (name,) in found]

    def rows(self, target: str) -> list[Row]:
        if not Path(target).exists():
            return []
        try:
            with contextlib.closing(sqlite3.connect(target)) as connection:
                if not (table := self.quoted(connection)):
                    return []
                found = connection.execute(f"SELECT * FROM {table}")
                columns = [column[0] for column in found.description]
                return [dict(zip(columns, row, strict=True)) for row in found]
        except sqlite3.Error as error:
            raise self.unreadable(error) from None


@dataclass(frozen=True)
class DuckDBStore(DatabaseTable):
    """A DuckDB table."""

    name = "Sink.duckdb"
    file = "result.duckdb"

    def names(self, connection: Any) -> Sequence[str]:
        return [name for (name,) in connection.sql("SELECT table_name FROM information_schema.tables").fetchall()]

    def rows(self, target: str) -> list[Row]:
        import duckdb

        from ...duckdb.connection import open_file

        if not Path(target).exists():
            return []
        try:
            with open_file(target) as connection:
                table = self.quoted(connection)
                return [*rows_of(connection.sql(f"SELECT * FROM {table}").to_arrow_table())] if table else []
        except duckdb.Error as error:
            raise self.unreadable(error) from None


@dataclass(frozen=True)
class PostgresTable(DatabaseTable):
    """A PostgreSQL table, in a separate schema for each query.

    Attributes:
        url: The database.
        jdbc: Whether the target is a JDBC URL.
    """

    url: str = ""
    jdbc: bool = False
    name = "Sink.postgres"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.url.startswith(("postgresql://", "postgres://")):
            raise BadInput(
                f'{self.name}: url is {short(self.url)}: give a URL such as "postgresql://user@localhost/tests"'
            )
        import_extra("psycopg", "postgres", self.name)

    @contextlib.contextmanager
    def at(self, folder: Path) -> Iterator[str]:
        """Create a schema, yield the URL for its tables, and drop the schema."""
        schema = f"streamproof_{uuid.uuid4().hex}"
        target = self._of_jdbc(schema) if self.jdbc else self._of_schema(schema)
        self._run(f"CREATE SCHEMA {schema}")
        try:
            yield target
        finally:
            self._run(f"DROP SCHEMA {schema} CASCADE")

    def _of_schema(self, schema: str) -> str:
        return f"{self.url}{'&' if '?' in self.url else '?'}options={quote(f'-c search_path={schema}')}"

    def _of_jdbc(self, schema: str) -> str:
        from psycopg.conninfo import conninfo_to_dict

        given = {name: str(value) for name, value in conninfo_to_dict(self.url).items()}
        host, kept = given.get("host", ""), {name: given[name] for name in _OF_BOTH if name in given}
        if not host or host.startswith("/"):
            raise BadInput(f"{self.name}: JDBC can't use a Unix socket: name a host, postgresql://user@localhost/tests")
        place = f"{host}:{given.get('port', 5432)}/{given.get('dbname', '')}"
        return f"jdbc:postgresql://{place}?{urlencode({**kept, _SCHEMA: schema})}"

    def _run(self, statement: str) -> None:
        import psycopg

        try:
            with psycopg.connect(self.url) as connection:
                # wait at most 10 s for locks, because an open connection of the job may lock the schema
                connection.execute("SET lock_timeout = '10s'")
                connection.execute(statement.encode())
        except psycopg.Error as error:
            raise BadInput(
                f"{self.name}: PostgreSQL at {_without_password(self.url)} refuses {statement}: {first_line(error)}: "
                "name a running server on which the user may create schemas, and close each connection in start"
            ) from None

    def names(self, connection: Any) -> Sequence[str]:
        found = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY table_name"
        )
        return [name for (name,) in found]

    def rows(self, target: str) -> list[Row]:
        import psycopg
        from psycopg.rows import dict_row

        if self.jdbc:
            target = self._of_schema(target.rpartition(f"{_SCHEMA}=")[2])
        try:
            with psycopg.connect(target) as connection:
                if not (table := self.quoted(connection)):
                    return []
                cursor = connection.cursor(row_factory=dict_row)
                return [*rows_of(cursor.execute(f"SELECT * FROM {table}".encode()))]
        except psycopg.Error as error:
            raise self.unreadable(error) from None


def _without_password(url: str) -> str:
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    shown = {name: value for name, value in conninfo_to_dict(url).items() if name != "password"}
    without: str = make_conninfo("", **shown)
    return without
