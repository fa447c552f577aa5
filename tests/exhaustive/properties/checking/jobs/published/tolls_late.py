"""Tolls of each bridge by the quarter of an hour. Bug: gates send ten minutes late, and the watermark waits for one."""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def build(spark, options):
    gates = spark.readStream.format("kafka").options(**options).load()
    tolls = gates.select(F.from_json(F.col("value").cast("string"), "bridge INT, at TIMESTAMP, cents INT").alias("t"))
    return (
        tolls.select("t.*")
        .withWatermark("at", "1 minute")
        .groupBy("bridge", F.window("at", "15 minutes").alias("quarter"))
        .agg(F.sum("cents").alias("cents"), F.count("*").alias("vehicles"))
        .selectExpr("bridge", "quarter.start AS start", "cents", "vehicles")
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("brokers")
    parser.add_argument("topics", nargs="+")
    parser.add_argument("--checkpoint", default="/tmp/tolls")
    given = parser.parse_args()
    session = SparkSession.builder.appName("tolls").getOrCreate()
    kafka = {"kafka.bootstrap.servers": given.brokers, "subscribe": ",".join(given.topics)}
    table = build(session, kafka)
    table.writeStream.option("checkpointLocation", given.checkpoint).format("console").start().awaitTermination()
