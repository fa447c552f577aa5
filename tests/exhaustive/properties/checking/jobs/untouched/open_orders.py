"""What is on order of each product by the hour. Bug: an order without a state is lost with the cancelled ones."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json, sum, window


def main():
    spark = SparkSession.builder.appName("open-orders").getOrCreate()
    schema = "product STRING, ordered_at TIMESTAMP, state STRING, quantity BIGINT"
    orders = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "orders")
        .load()
        .select(from_json(col("value").cast("string"), schema).alias("order"))
        .select("order.*")
    )
    open_orders = orders.filter(col("state") != "cancelled")
    by_hour = (
        open_orders.withWatermark("ordered_at", "15 minutes")
        .groupBy("product", window("ordered_at", "1 hour"))
        .agg(sum("quantity").alias("quantity"))
    )
    query = (
        by_hour.select("product", "window.start", "quantity")
        .writeStream.format("parquet")
        .option("path", "/data/open_orders")
        .option("checkpointLocation", "/data/open_orders/_checkpoint")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
