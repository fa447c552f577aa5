"""The sources of the shop's jobs."""

from pyspark.sql import functions as F


def from_kafka(spark, topic, schema):
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "kafka:9092")
        .option("subscribe", topic)
        .load()
    )
    return raw.select(F.from_json(F.col("value").cast("string"), schema).alias("v")).select("v.*")
