"""The revenue of each store by the hour."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

COLUMNS = "store string, at timestamp, cents bigint"


def revenue(payments: DataFrame) -> DataFrame:
    """Return the revenue of each store by the hour, for payments up to five minutes late."""
    hours = payments.withWatermark("at", "5 minutes").groupBy("store", F.window("at", "1 hour"))
    return hours.agg(F.sum("cents").alias("cents"))


def main() -> None:
    """Read payments from Kafka, and write the revenue to a table."""
    spark = SparkSession.builder.appName("revenue").getOrCreate()
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "kafka:9092")
    records = source.option("subscribe", "payments").load()
    payments = records.select(F.from_json(F.col("value").cast("string"), COLUMNS).alias("payment")).select("payment.*")
    written = revenue(payments).writeStream.option("checkpointLocation", "/lake/_revenue")
    written.toTable("revenue").awaitTermination()


if __name__ == "__main__":
    main()
