"""Orders with the shipment that left within two hours, or with null, from two folders of parquet files."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

spark = SparkSession.builder.appName("order-shipments").getOrCreate()

orders = (
    spark.readStream.format("parquet")
    .schema("order_id STRING, ordered_at TIMESTAMP, amount DECIMAL(8,2)")
    .load("/lake/orders")
    .withWatermark("ordered_at", "10 minutes")
)
shipments = (
    spark.readStream.format("parquet")
    .schema("order_id STRING, shipped_at TIMESTAMP, carrier STRING, returned BOOLEAN")
    .load("/lake/shipments")
    .where("NOT returned")
    .withWatermark("shipped_at", "20 minutes")
)
joined = (
    orders.alias("o")
    .join(
        shipments.alias("s"),
        expr("o.order_id = s.order_id AND shipped_at BETWEEN ordered_at AND ordered_at + INTERVAL 2 HOURS"),
        "left_outer",
    )
    .select("o.order_id", "ordered_at", "amount", "shipped_at", "carrier", "returned")
)

query = (
    joined.drop("returned")
    .writeStream.format("delta")
    .outputMode("append")
    .option("checkpointLocation", "/lake/_checkpoints/order_shipments")
    .start("/lake/order_shipments")
)
print(query.id, query.status)
query.awaitTermination()
