"""A ledger of payments in SQLite, which `foreachBatch` writes batch by batch.

After a crash Spark passes the same batch again, so a batch first deletes the rows that an earlier attempt wrote under
the batch's id. `wrong` only inserts rows, so after a restart the ledger has the payments of the last batch twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

TABLE = (
    "CREATE TABLE IF NOT EXISTS ledger (batch INTEGER, account TEXT, payment_id INTEGER, cents INTEGER, refund INTEGER)"
)


def job(payments: DataFrame, database: str, checkpoint: str) -> StreamingQuery:
    """Write each payment once into the table `ledger` of a database."""

    def book(batch: DataFrame, batch_id: int) -> None:
        rows = [(batch_id, *row) for row in _ledger_rows(batch)]
        with _ledger(database) as ledger:
            ledger.execute("DELETE FROM ledger WHERE batch = ?", (batch_id,))
            ledger.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", rows)

    return payments.writeStream.foreachBatch(book).option("checkpointLocation", checkpoint).start()


def wrong(payments: DataFrame, database: str, checkpoint: str) -> StreamingQuery:
    """Append every batch to the ledger, even a repeated batch: the bug."""

    def book(batch: DataFrame, batch_id: int) -> None:
        rows = [(batch_id, *row) for row in _ledger_rows(batch)]
        with _ledger(database) as ledger:
            ledger.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", rows)

    return payments.writeStream.foreachBatch(book).option("checkpointLocation", checkpoint).start()


@contextmanager
def _ledger(database: str) -> Iterator[sqlite3.Connection]:
    """Open the ledger in a transaction, which is rolled back after an error."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(TABLE)
        yield connection


def _ledger_rows(batch: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in batch.select("account", "payment_id", "cents", "refund").collect()]
