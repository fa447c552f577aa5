"""Spend of each campaign and hour, merged into a table. Bug: the key of the merge lacks the hour."""

import os
import sqlite3

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json, sum as sum_, unix_timestamp, window

DATABASE = os.environ["SPEND_DB"]


def merge(batch, batch_id):
    connection = sqlite3.connect(DATABASE)
    connection.execute("CREATE TABLE IF NOT EXISTS spend (campaign TEXT PRIMARY KEY, hour_epoch INT, cents INT)")
    for row in batch.collect():
        connection.execute(
            "INSERT OR REPLACE INTO spend VALUES (?, ?, ?)",
            (row.campaign, row.hour_epoch, row.cents),
        )
    connection.commit()
    connection.close()


def main():
    spark = SparkSession.builder.appName("campaign-spend").getOrCreate()
    schema = "campaign STRING, at TIMESTAMP, cents BIGINT"
    bids = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", os.getenv("BROKERS", "localhost:9092"))
        .option("subscribe", "bids")
        .load()
        .select(from_json(col("value").cast("string"), schema).alias("bid"))
        .select("bid.*")
        .withWatermark("at", "1 hour")
    )
    spend = (
        bids.groupBy("campaign", window("at", "1 hour"))
        .agg(sum_("cents").alias("cents"))
        .select("campaign", unix_timestamp("window.start").alias("hour_epoch"), "cents")
    )
    query = (
        spend.writeStream.foreachBatch(merge)
        .outputMode("update")
        .option("checkpointLocation", os.path.dirname(DATABASE) + "/checkpoint")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
