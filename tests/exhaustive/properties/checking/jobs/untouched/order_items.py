"""The items of orders, a row each; the time of an order is text in ISO 8601."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, explode, from_json, to_timestamp
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

item = StructType([StructField("sku", StringType()), StructField("quantity", IntegerType())])
order = StructType(
    [
        StructField("order_id", StringType()),
        StructField("ordered_at", StringType()),
        StructField("items", ArrayType(item)),
    ]
)

spark = SparkSession.builder.appName("order-items").getOrCreate()

items = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("subscribe", "orders")
    .load()
    .select(from_json(col("value").cast("string"), order).alias("o"))
    .select("o.order_id", to_timestamp("o.ordered_at").alias("ordered_at"), explode("o.items").alias("item"))
    .select("order_id", "ordered_at", col("item.sku"), col("item.quantity"))
)

(
    items.writeStream.format("iceberg")
    .outputMode("append")
    .option("checkpointLocation", "s3://warehouse/checkpoints/items")
    .toTable("lake.shop.items")
    .awaitTermination()
)
