"""Counts words in a Kinesis stream."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, explode, split

spark = SparkSession.builder.appName("kinesis-words").getOrCreate()
lines = (
    spark.readStream.format("kinesis")
    .option("streamName", "words")
    .option("region", "eu-central-1")
    .option("initialPosition", "TRIM_HORIZON")
    .load()
    .selectExpr("CAST(data AS STRING) AS line", "partitionKey", "approximateArrivalTimestamp")
)
words = lines.select(explode(split(col("line"), " ")).alias("word"))
query = words.groupBy("word").count().writeStream.outputMode("complete").format("console").start()
query.awaitTermination()
