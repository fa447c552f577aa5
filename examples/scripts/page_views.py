"""Sessions of page views, from parquet files to parquet files: each run processes the new files, and ends."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SCHEMA = "tenant STRING, user_id BIGINT, session_id STRING, at TIMESTAMP, duration_ms INT"

source, target = sys.argv[1:3]
spark = SparkSession.builder.appName("page views").getOrCreate()

views = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 100).parquet(source)
session = F.session_window("at", "20 minutes").alias("session")
sessions = (
    views.withWatermark("at", "5 minutes")
    .groupBy("tenant", "user_id", session)
    .agg(F.count("*").alias("views"), F.max("duration_ms").alias("longest_ms"))
    .select("tenant", "user_id", "session.start", "session.end", "views", "longest_ms")
)

(
    sessions.writeStream.format("parquet")
    .option("path", target)
    .option("checkpointLocation", f"{target}/_checkpoint")
    .trigger(availableNow=True)
    .start()
    .awaitTermination()
)
print(f"sessions are up to date in {target}")
