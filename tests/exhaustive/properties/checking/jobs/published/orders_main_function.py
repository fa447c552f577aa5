"""Revenue of each shop by the hour, and its large orders; other programs import `main`."""

from pyspark.sql import SparkSession


def main(spark: SparkSession) -> None:
    orders = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "orders")
        .load()
        .selectExpr("from_json(string(value), 'shop STRING, ordered_at TIMESTAMP, cents BIGINT') AS o")
        .selectExpr("o.*")
    )
    large = orders.where("cents > 1")
    large.writeStream.format("console").start()

    orders.withWatermark("ordered_at", "20 minutes").createOrReplaceTempView("orders")
    revenue = spark.sql(
        """
        SELECT shop, window.start AS hour, sum(cents) AS cents, count(*) AS orders
        FROM orders
        GROUP BY shop, window(ordered_at, '1 hour')
        """
    )
    query = revenue.writeStream.format("parquet").option("checkpointLocation", "/ckpt/revenue").start("/lake/revenue")
    query.awaitTermination()


if __name__ == "__main__":
    main(SparkSession.builder.appName("orders").getOrCreate())
