"""Sinks whose `foreachBatch` function writes to a database: by appending, by key, or with a guard table."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...generators.columns.forms.rows import Row
from ...witnesses.job.sinks.databases import DuckDBStore, SQLiteTable
from .contracts import GUIDE, SinkContract, WriteBatch, halves
from .places import AFTER, BEFORE, BETWEEN, CHECKED, WITHIN, Places

ROWS = "CREATE TABLE IF NOT EXISTS result (history BIGINT, key VARCHAR(9), amount BIGINT, id BIGINT)"
TOTALS = "CREATE TABLE IF NOT EXISTS result (history BIGINT, key VARCHAR(9), total BIGINT, PRIMARY KEY (history, key))"
GUARD = "CREATE TABLE IF NOT EXISTS done (batch BIGINT PRIMARY KEY)"
INSERT = "INSERT INTO result VALUES (?, ?, ?, ?)"
UPSERT = "INSERT INTO result VALUES (?, ?, ?) ON CONFLICT (history, key) DO UPDATE SET total = excluded.total"
NO_PROMISE = "no document: common in articles"
Database = Any
"""A connection of SQLite or DuckDB."""


@contextlib.contextmanager
def sqlite(target: str) -> Iterator[Database]:
    """Open an SQLite database with explicit transactions only."""
    with contextlib.closing(sqlite3.connect(target, timeout=2, isolation_level=None)) as database:
        yield database


@contextlib.contextmanager
def duckdb(target: str) -> Iterator[Database]:
    """Open a DuckDB database."""
    from ...witnesses.duckdb.connection import open_file

    with open_file(target) as database:
        yield database


@contextlib.contextmanager
def transaction(database: Database) -> Iterator[None]:
    """Commit all changes of the block, or none of them."""
    database.execute("BEGIN")
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # ROLLBACK fails if the database has rolled back
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def insert(database: Database, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows; do nothing if there are no rows."""
    if rows:
        database.executemany(statement, rows)


def insert_halves(
    database: Database, statement: str, parts: tuple[Sequence[Any], Sequence[Any]], batch: int, at: Places
) -> None:
    """Insert both halves of a micro-batch; a fault may kill the process between the halves."""
    first, second = parts
    insert(database, statement, first)
    at.reach(WITHIN, batch)
    insert(database, statement, second)


def at_once(
    opened: Callable[[str], contextlib.AbstractContextManager[Database]], create: str, statement: str
) -> WriteBatch:
    """Return a function that writes a micro-batch in one transaction."""

    def write(rows: Any, batch: int, target: str, at: Places) -> None:
        parts = halves(rows)
        with opened(target) as database:
            database.execute(create)
            with transaction(database):
                insert_halves(database, statement, parts, batch, at)

    return write


def by_row(rows: Any, batch: int, target: str, at: Places) -> None:
    """Write each half of a micro-batch in its own transaction, as a database driver with autocommit would."""
    first, second = halves(rows)
    with sqlite(target) as database:
        database.execute(ROWS)
        with transaction(database):
            insert(database, INSERT, first)
        at.reach(WITHIN, batch)
        with transaction(database):
            insert(database, INSERT, second)


def is_done(database: Database, batch: int) -> bool:
    """Return whether the guard table contains a micro-batch."""
    database.execute(ROWS)
    database.execute(GUARD)
    return bool(database.execute("SELECT 1 FROM done WHERE batch = ?", [batch]).fetchall())


def guard_after(rows: Any, batch: int, target: str, at: Places) -> None:
    """Write a micro-batch unless the guard table contains it, then add it to the guard table."""
    parts = halves(rows)
    with sqlite(target) as database:
        if is_done(database, batch):
            return
        at.reach(CHECKED, batch)
        with transaction(database):
            insert_halves(database, INSERT, parts, batch, at)
        at.reach(BETWEEN, batch)
        database.execute("INSERT OR IGNORE INTO done VALUES (?)", [batch])


def guard_before(rows: Any, batch: int, target: str, at: Places) -> None:
    """Add a micro-batch to the guard table, unless the table contains it, then write the micro-batch."""
    parts = halves(rows)
    with sqlite(target) as database:
        if is_done(database, batch):
            return
        at.reach(CHECKED, batch)
        database.execute("INSERT OR IGNORE INTO done VALUES (?)", [batch])
        at.reach(BETWEEN, batch)
        with transaction(database):
            insert_halves(database, INSERT, parts, batch, at)


def guard_within(rows: Any, batch: int, target: str, at: Places) -> None:
    """Write a micro-batch and its number in one transaction; the number is a primary key, so a repeated transaction
    fails.
    """
    parts = halves(rows)
    with sqlite(target) as database:
        if is_done(database, batch):
            return
        at.reach(CHECKED, batch)
        with transaction(database):
            database.execute("INSERT INTO done VALUES (?)", [batch])
            insert_halves(database, INSERT, parts, batch, at)


def rows_of_sqlite(target: str) -> list[Row]:
    """Return the rows of the table `result`; return no rows if there is no table."""
    return SQLiteTable(table="result").rows(target)


_GUARDED = (BEFORE, CHECKED, WITHIN, BETWEEN, AFTER)
_USING = f"{GUIDE}#foreachbatch"
SINKS = [
    SinkContract(
        "sqlite-append",
        "foreachBatch inserts the batch into SQLite, in one transaction",
        "at least once",
        _USING,
        rows_of_sqlite,
        at_once(sqlite, ROWS, INSERT),
        places=(BEFORE, WITHIN, AFTER),
    ),
    SinkContract(
        "sqlite-by-row",
        "foreachBatch inserts the batch into SQLite in two commits, as drivers with autocommit do",
        "at least once",
        _USING,
        rows_of_sqlite,
        by_row,
        places=(BEFORE, WITHIN, AFTER),
    ),
    SinkContract(
        "sqlite-upsert",
        "foreachBatch upserts the total of each key into SQLite, in one transaction",
        "exactly once",
        "https://sqlite.org/lang_upsert.html",
        rows_of_sqlite,
        at_once(sqlite, TOTALS, UPSERT),
        result="totals",
        places=(BEFORE, WITHIN, AFTER),
    ),
    SinkContract(
        "duckdb-upsert",
        "foreachBatch upserts the total of each key into DuckDB, in one transaction",
        "exactly once",
        "https://duckdb.org/docs/stable/sql/statements/insert#on-conflict-clause",
        DuckDBStore(table="result").rows,
        at_once(duckdb, TOTALS, UPSERT),
        result="totals",
        places=(BEFORE, WITHIN, AFTER),
        library="duckdb",
    ),
    SinkContract(
        "guard-after",
        "foreachBatch writes the batch unless a guard table contains it, then adds it to the guard table",
        "nothing",
        NO_PROMISE,
        rows_of_sqlite,
        guard_after,
        places=_GUARDED,
    ),
    SinkContract(
        "guard-before",
        "foreachBatch adds the batch to a guard table, unless the table contains it, then writes the batch",
        "nothing",
        NO_PROMISE,
        rows_of_sqlite,
        guard_before,
        places=_GUARDED,
    ),
    SinkContract(
        "transaction",
        "foreachBatch writes the batch and its number, a primary key, in one transaction",
        "exactly once",
        _USING,
        rows_of_sqlite,
        guard_within,
        places=(BEFORE, CHECKED, WITHIN, AFTER),
    ),
]
