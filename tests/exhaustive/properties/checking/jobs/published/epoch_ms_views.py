"""Views of each video in windows of ten minutes; the player's clock sends milliseconds since 1970."""

import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructType

spark = SparkSession.builder.appName("views").getOrCreate()

schema = StructType().add("video", StringType()).add("ts", LongType()).add("seconds", LongType())
views = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("subscribe", "player")
    .load()
    .select(F.from_json(F.col("value").cast("string"), schema).alias("v"))
    .select("v.*")
    .withColumn("event_time", (F.col("ts") / 1000).cast("timestamp"))
)

watched = (
    views.withWatermark("event_time", "1 minute")
    .groupBy("video", F.window("event_time", "10 minutes"))
    .agg(F.sum("seconds").alias("seconds"))
)

query = watched.writeStream.outputMode("update").format("console").start()

while query.isActive:
    print(query.status["message"])
    time.sleep(10)
