"""Writes the readings that are too warm into PostgreSQL, batch by batch."""

import logging
import os

import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

logging.basicConfig(level=logging.INFO)
URL = os.environ.get("DB_URL", "postgresql://postgres@localhost/plant")


def save(df, epoch_id):
    rows = [(r.sensor, r.at, r.celsius) for r in df.collect()]
    with psycopg2.connect(URL) as connection, connection.cursor() as cursor:
        execute_values(cursor, "INSERT INTO alerts VALUES %s ON CONFLICT DO NOTHING", rows)


if __name__ == "__main__":
    spark = (
        SparkSession.builder.appName("alerts")
        .config("spark.jars.packages", "org.postgresql:postgresql:42.7.3")
        .getOrCreate()
    )
    lines = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "kafka:9092")
        .option("subscribe", "readings")
        .load()
    )
    readings = lines.select(
        F.from_json(F.col("value").cast("string"), "sensor STRING, at TIMESTAMP, celsius DOUBLE").alias("r")
    ).select("r.*")
    warm = readings.filter(F.col("celsius") > 80.0)
    warm.writeStream.foreachBatch(save).option(
        "checkpointLocation", "/tmp/checkpoints/alerts"
    ).start().awaitTermination()
