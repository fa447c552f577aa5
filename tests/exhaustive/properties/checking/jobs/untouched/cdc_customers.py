"""Passes on what changes of customers: Debezium's envelopes become rows with an operation."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

IMAGE = "STRUCT<id: INT, city: STRING>"
spark = SparkSession.builder.appName("cdc").getOrCreate()
events = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "kafka:9092")
    .option("subscribe", "dbserver1.inventory.customers")
    .load()
    .where("value IS NOT NULL")
    .select(
        F.from_json(F.col("value").cast("string"), f"op STRING, ts_ms BIGINT, before {IMAGE}, after {IMAGE}").alias("e")
    )
    .select("e.*")
)
rows = events.select(
    F.coalesce("after.id", "before.id").alias("id"),
    (F.col("op") == "d").alias("deleted"),
    F.timestamp_millis("ts_ms").alias("ts_ms"),
)
rows.writeStream.format("delta").option("checkpointLocation", "/cp/customers").start("/lake/customers_changes")
spark.streams.awaitAnyTermination()
