"""Runs a query of three batches in a process that kills itself and its JVM at a sink's second write, the first time.

It does so after the write, or before the third, once the second has been committed, if the writer is `summed`.
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
from pyspark.sql import functions as F
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


def summed(rows: DataFrame, batch: int, target: str) -> None:
    by_batch(rows, batch, target)


WRITERS: Mapping[str, Callable[[DataFrame, int, str], None]] = {
    one.__name__: one for one in (appended, by_batch, inserted, replaced, summed)
}


def started(rows: DataFrame, name: str, target: str, checkpoint: str, died: Path | None = None) -> StreamingQuery:
    """Start the query; with a path it kills this process once, and notes that there."""
    own = os.getpid()
    jvm = 0 if died is None else rows.sparkSession._jvm.java.lang.ProcessHandle.current().pid()

    def die() -> None:
        assert died is not None
        if not died.exists():
            died.touch()
            for process in (jvm, own):
                os.kill(process, signal.SIGKILL)

    def write(frame: DataFrame, batch: int) -> None:
        if died is not None and name == "summed" and batch == 2:
            die()
        WRITERS[name](frame, batch, target)
        if died is not None and name != "summed" and batch == 1:
            die()

    result = rows.groupBy("user").agg(F.sum("amount").alias("amount")) if name == "summed" else rows
    writer = result.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    return writer.outputMode("update" if name == "summed" else "append").trigger(availableNow=True).start()


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
