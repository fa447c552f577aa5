"""Two tables of one log: lines of each service in windows, and its errors as they are."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("service-metrics").getOrCreate()

logs = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("subscribe", "logs")
    .load()
    .select(F.from_json(F.col("value").cast("string"), "service STRING, level STRING, at TIMESTAMP, text STRING").alias("l"))
    .select("l.*")
    .withWatermark("at", "30 seconds")
)

per_minute = logs.groupBy("service", F.window("at", "1 minute")).agg(
    F.count("*").alias("lines"),
    F.sum(F.when(F.col("level") == "ERROR", 1).otherwise(0)).alias("errors"),
)
errors = logs.filter("level = 'ERROR'").select("service", "at", "text")


def write(df, name, mode):
    return (
        df.writeStream.queryName(name)
        .outputMode(mode)
        .format("delta")
        .option("checkpointLocation", f"/lake/_checkpoints/{name}")
        .start(f"/lake/{name}")
    )


write(per_minute, "lines_per_minute", "append")
write(errors, "errors", "append")

while spark.streams.active:
    spark.streams.awaitAnyTermination()
