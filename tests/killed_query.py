"""Runs a query of three batches in a process that kills itself and its JVM after a sink's second write, the first time.

Its arguments are the folder of the query, which has the batches, and the name of a writer.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

SCHEMA = "user string, amount bigint"


def appended(rows: DataFrame, batch: int, target: str) -> None:
    rows.write.mode("append").parquet(target)


def by_batch(rows: DataFrame, batch: int, target: str) -> None:
    rows.write.mode("overwrite").parquet(f"{target}/batch={batch}")


def inserted(rows: DataFrame, batch: int, target: str) -> None:
    found = [(row["user"], row["amount"], batch) for row in rows.collect()]
    with contextlib.closing(sqlite3.connect(target)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS ledger (user, amount, batch)")
        database.executemany("INSERT INTO ledger VALUES (?, ?, ?)", found)


def replaced(rows: DataFrame, batch: int, target: str) -> None:
    with contextlib.closing(sqlite3.connect(target)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS ledger (user, amount, batch)")
        database.execute("DELETE FROM ledger WHERE batch = ?", [batch])
    inserted(rows, batch, target)


WRITERS: Mapping[str, Callable[[DataFrame, int, str], None]] = {
    one.__name__: one for one in (appended, by_batch, inserted, replaced)
}


def started(rows: DataFrame, name: str, target: str, checkpoint: str, died: Path | None = None) -> StreamingQuery:
    """Start the query; with a path it kills this process in the second micro-batch, and notes that there."""

    def write(frame: DataFrame, batch: int) -> None:
        WRITERS[name](frame, batch, target)
        if died is not None and batch == 1 and not died.exists():
            died.touch()
            jvm = rows.sparkSession._jvm
            os.kill(jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start()


if __name__ == "__main__":
    from streamproof.properties.witnesses.spark.session import spark_session

    folder, name = Path(sys.argv[1]), sys.argv[2]
    stream = spark_session(cores=1).readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    query = started(
        stream.parquet(str(folder / "input")),
        name,
        str(folder / "result"),
        str(folder / "checkpoint"),
        folder / "died",
    )
    query.awaitTermination()
