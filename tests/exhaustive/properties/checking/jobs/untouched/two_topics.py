"""Finds the payment of each order within an hour; both come from one read."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("paid").getOrCreate()
raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "broker:9092")
    .option("subscribe", "orders,payments")
    .load()
)
json = F.col("value").cast("string")
orders = (
    raw.where("topic = 'orders'")
    .select(F.from_json(json, "id STRING, ordered TIMESTAMP, cents INT").alias("v"))
    .select("v.*")
)
paid = (
    raw.where(F.col("topic") == "payments")
    .select(F.from_json(json, "of STRING, paid TIMESTAMP").alias("v"))
    .select("v.*")
)

joined = orders.withWatermark("ordered", "10 minutes").join(
    paid.withWatermark("paid", "10 minutes"),
    F.expr("id = of AND paid BETWEEN ordered AND ordered + INTERVAL 1 HOUR"),
)
joined.select("id", "ordered", "paid", "cents").writeStream.format("delta").option(
    "checkpointLocation", "/cp/paid"
).toTable("silver.paid")
spark.streams.awaitAnyTermination()
