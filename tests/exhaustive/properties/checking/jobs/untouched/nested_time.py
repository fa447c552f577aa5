"""Quantities per shop and hour; the time is within the metadata of the message."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SCHEMA = "shop STRING, quantity INT, meta STRUCT<at: TIMESTAMP, source: STRING>"
spark = SparkSession.builder.appName("nested").getOrCreate()
df = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "k:9092").option("subscribe", "sales").load()
sales = df.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("s")).select("s.*")
hours = (
    sales.withColumn("at", F.col("meta.at"))
    .withWatermark("at", "10 minutes")
    .groupBy("shop", F.window("at", "1 hour"))
    .agg(F.sum("quantity").alias("quantity"))
)
hours.select(
    "shop", F.col("window.start").alias("start"), F.col("window.end").alias("end"), "quantity"
).writeStream.format("console").start().awaitTermination()
