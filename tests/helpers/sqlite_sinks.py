"""Sinks of SQLite, right and wrong, for the faults that no crash shows."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from typing import Any

from streamproof import Sink

TABLES = """
CREATE TABLE IF NOT EXISTS result (user, amount, at);
CREATE TABLE IF NOT EXISTS keyed (user, amount, at, PRIMARY KEY (user, amount, at));
CREATE TABLE IF NOT EXISTS done (batch);
CREATE TABLE IF NOT EXISTS once (batch PRIMARY KEY);
"""
Rows = list[tuple[Any, ...]]
Write = Callable[[sqlite3.Connection, Rows, int, str], None]
ALREADY: set[tuple[str, int]] = set()


def insert(database: sqlite3.Connection, rows: Rows) -> None:
    database.executemany("INSERT INTO result VALUES (?, ?, ?)", rows)


def by_key(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    database.executemany("INSERT OR IGNORE INTO keyed VALUES (?, coalesce(?, -1), ?)", rows)


def numbered(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    if not database.execute("SELECT 1 FROM once WHERE batch = ?", [batch]).fetchall():
        database.execute("INSERT INTO once VALUES (?)", [batch])
        insert(database, rows)


def checked_before(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    database.execute("COMMIT")
    found = database.execute("SELECT 1 FROM done WHERE batch = ?", [batch]).fetchall()
    if not found:
        database.execute("BEGIN")
        database.execute("INSERT INTO done VALUES (?)", [batch])
        insert(database, rows)


def noted_in_memory(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    if (target, batch) not in ALREADY:
        ALREADY.add((target, batch))
        numbered(database, rows, batch, target)


def swallowing(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    with contextlib.suppress(sqlite3.Error):
        numbered(database, rows, batch, target)
        database.execute("COMMIT")


def sqlite_sink(write: Write, table: str = "result", timeout_s: float = 1) -> Sink:
    """Return a sink that writes each micro-batch within a transaction, and waits so long for a lock."""

    def start(clicks: Any, target: str, checkpoint: str) -> Any:
        def of_batch(rows: Any, batch: int) -> None:
            found = [(row["user"], row["amount"], str(row["at"])) for row in rows.toArrow().to_pylist()]
            with contextlib.closing(sqlite3.connect(target, timeout=timeout_s, isolation_level=None)) as database:
                database.executescript(TABLES)
                database.execute("BEGIN")
                write(database, found, batch, target)
                if database.in_transaction:
                    database.execute("COMMIT")

        return clicks.writeStream.foreachBatch(of_batch).option("checkpointLocation", checkpoint).start()

    return Sink.sqlite(start, table=table)
