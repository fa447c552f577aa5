"""Clicks per page in windows of five minutes, from JSON in Kafka."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, from_json, window
from pyspark.sql.types import StringType, StructType, TimestampType

spark = SparkSession.builder.appName("clicks").master("local[*]").getOrCreate()
spark.sparkContext.setLogLevel("WARN")

schema = StructType().add("page", StringType()).add("user", StringType()).add("at", TimestampType())

raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("subscribe", "clicks")
    .option("startingOffsets", "latest")
    .option("failOnDataLoss", "false")
    .load()
)
clicks = raw.select(from_json(col("value").cast("string"), schema).alias("data")).select("data.*")
views = (
    clicks.withWatermark("at", "10 minutes").groupBy(window("at", "5 minutes"), "page").agg(count("*").alias("views"))
)

query = (
    views.select("page", col("window.start").alias("start"), col("window.end").alias("end"), "views")
    .writeStream.outputMode("append")
    .format("console")
    .option("truncate", False)
    .trigger(processingTime="30 seconds")
    .start()
)
query.awaitTermination()
