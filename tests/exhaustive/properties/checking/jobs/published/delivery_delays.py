"""Parcels with their delivery within two days. Bug: the bounds of the time range are the wrong way round."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr, from_json

spark = SparkSession.builder.appName("delivery-delays").getOrCreate()


def read(topic, schema):
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", topic)
        .load()
        .select(from_json(col("value").cast("string"), schema).alias("v"))
        .select("v.*")
    )


sent = read("sent", "parcel STRING, sent_at TIMESTAMP").withWatermark("sent_at", "1 hour").alias("sent")
delivered = (
    read("delivered", "parcel STRING, delivered_at TIMESTAMP, depot STRING")
    .withWatermark("delivered_at", "1 hour")
    .alias("delivered")
)

joined = sent.join(
    delivered,
    expr("sent.parcel = delivered.parcel AND sent_at BETWEEN delivered_at AND delivered_at + INTERVAL 2 DAYS"),
    "inner",
).select("sent.parcel", "sent_at", "delivered_at", "depot")

query = (
    joined.writeStream.format("parquet")
    .option("path", "/data/deliveries")
    .option("checkpointLocation", "/data/deliveries/_checkpoint")
    .start()
)
query.awaitTermination()
