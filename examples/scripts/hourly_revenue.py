"""The revenue of each store and hour, from Kafka to the console, with the watermark's delay as an option."""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, from_json, sum, window
from pyspark.sql.types import DecimalType, IntegerType, StringType, StructField, StructType, TimestampType

parser = argparse.ArgumentParser()
parser.add_argument("--bootstrap-servers", default="localhost:9092")
parser.add_argument("--topic", default="payments")
parser.add_argument("--delay", default="10 minutes", help="how late a payment may come")
args = parser.parse_args()

schema = StructType(
    [
        StructField("store", IntegerType()),
        StructField("payment_id", StringType()),
        StructField("paid_at", TimestampType()),
        StructField("amount", DecimalType(10, 2)),
    ]
)

spark = SparkSession.builder.appName("HourlyRevenue").config("spark.sql.shuffle.partitions", "8").getOrCreate()
spark.sparkContext.setLogLevel("WARN")

payments = (
    spark.readStream.format("kafka")
    .options(**{"kafka.bootstrap.servers": args.bootstrap_servers, "subscribe": args.topic})
    .load()
    .select(from_json(col("value").cast("string"), schema).alias("payment"))
    .select("payment.*")
)

revenue = (
    payments.withWatermark("paid_at", args.delay)
    .dropDuplicates(["store", "payment_id", "paid_at", "amount"])
    .groupBy("store", window("paid_at", "1 hour").alias("hour"))
    .agg(sum("amount").alias("revenue"), count("*").alias("payments"))
    .select("store", "hour.start", "hour.end", "revenue", "payments")
)

query = (
    revenue.writeStream.outputMode("append")
    .format("console")
    .option("truncate", False)
    .trigger(processingTime="1 minute")
    .start()
)
query.awaitTermination()
