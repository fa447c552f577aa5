"""Payments from Kafka into a ledger in SQLite: a repeated batch replaces the rows that it wrote before."""

import os
import sqlite3
from contextlib import closing

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

FOLDER = os.environ["LEDGER_FOLDER"]
COLUMNS = "batch INTEGER, account TEXT, payment_id INTEGER, cents INTEGER, refund INTEGER"


def book(batch: DataFrame, batch_id: int) -> None:
    """Write a batch in one transaction."""
    rows = [(batch_id, *row) for row in batch.select("account", "payment_id", "cents", "refund").collect()]
    with closing(sqlite3.connect(f"{FOLDER}/ledger.sqlite")) as ledger, ledger:
        ledger.execute(f"CREATE TABLE IF NOT EXISTS ledger ({COLUMNS})")
        ledger.execute("DELETE FROM ledger WHERE batch = ?", (batch_id,))
        ledger.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", rows)


if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").appName("ledger").getOrCreate()
    schema = "account STRING, payment_id BIGINT, paid_at TIMESTAMP, cents INT, refund BOOLEAN"
    payments = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "bank.payments")
        .load()
        .select(F.from_json(F.col("value").cast("string"), schema).alias("payment"))
        .select("payment.*")
    )
    query = payments.writeStream.foreachBatch(book).option("checkpointLocation", f"{FOLDER}/checkpoint").start()
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        query.stop()
        spark.stop()
