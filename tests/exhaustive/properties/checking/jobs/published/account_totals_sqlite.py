"""Keeps the balance of each account in a database, which a web page reads."""

import argparse
import sqlite3
from contextlib import closing

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--db", default="balances.sqlite")
parser.add_argument("--checkpoint", default="/tmp/balances-checkpoint")
args = parser.parse_args()

UPSERT = """
    INSERT INTO balances (account, cents, payments) VALUES (?, ?, ?)
    ON CONFLICT (account) DO UPDATE SET cents = excluded.cents, payments = excluded.payments
"""


def upsert(batch: DataFrame, batch_id: int) -> None:
    rows = [(row["account"], row["cents"], row["payments"]) for row in batch.collect()]
    with closing(sqlite3.connect(args.db)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS balances (account TEXT PRIMARY KEY, cents INT, payments INT)")
        connection.executemany(UPSERT, rows)
    print(f"batch {batch_id}: {len(rows)} accounts")


spark = SparkSession.builder.appName("balances").getOrCreate()
payments = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("subscribe", "payments")
    .load()
    .select(F.from_json(F.col("value").cast("string"), "account STRING, cents BIGINT, paid_at TIMESTAMP").alias("p"))
    .select("p.*")
)
balances = payments.groupBy("account").agg(F.sum("cents").alias("cents"), F.count(F.lit(1)).alias("payments"))

query = (
    balances.writeStream.outputMode("update")
    .foreachBatch(upsert)
    .option("checkpointLocation", args.checkpoint)
    .start()
)
query.awaitTermination()
