"""A ledger of payments in SQLite, written batch by batch with foreachBatch.

After a crash Spark hands the same batch over again, so the rows of a batch replace those of an earlier attempt by its
id. `wrong` inserts them: after a restart the payments of the last batch are in the ledger twice.
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
    """Write payments into the table `ledger` of a database, each once."""

    def book(batch: DataFrame, batch_id: int) -> None:
        rows = [(batch_id, *row) for row in _ledger_rows(batch)]
        with _ledger(database) as ledger:
            ledger.execute("DELETE FROM ledger WHERE batch = ?", (batch_id,))
            ledger.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", rows)

    return payments.writeStream.foreachBatch(book).option("checkpointLocation", checkpoint).start()


def wrong(payments: DataFrame, database: str, checkpoint: str) -> StreamingQuery:
    """The same, appending whatever batch comes."""

    def book(batch: DataFrame, batch_id: int) -> None:
        rows = [(batch_id, *row) for row in _ledger_rows(batch)]
        with _ledger(database) as ledger:
            ledger.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", rows)

    return payments.writeStream.foreachBatch(book).option("checkpointLocation", checkpoint).start()


@contextmanager
def _ledger(database: str) -> Iterator[sqlite3.Connection]:
    """The ledger in a transaction, which an error takes back."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(TABLE)
        yield connection


def _ledger_rows(batch: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in batch.select("account", "payment_id", "cents", "refund").collect()]
