"""Counts the events of each region, whose topics share a prefix."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
df = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "b:9092")
    .option("subscribePattern", "events_.*")
    .load()
)
counts = df.selectExpr("CAST(key AS STRING) AS user", "topic").groupBy("user", "topic").count()
counts.writeStream.outputMode("update").format("console").start().awaitTermination()
