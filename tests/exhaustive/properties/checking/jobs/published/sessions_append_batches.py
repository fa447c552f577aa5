"""Sessions of players, appended to a folder. Bug: a batch that comes again after a crash is appended again."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, from_json, session_window

output = sys.argv[1]
spark = SparkSession.builder.appName("game-sessions").getOrCreate()

moves = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("subscribe", "moves")
    .load()
    .select(from_json(col("value").cast("string"), "player STRING, moved_at TIMESTAMP, move STRING").alias("m"))
    .select("m.*")
)

sessions = (
    moves.withWatermark("moved_at", "5 minutes")
    .groupBy("player", session_window("moved_at", "15 minutes").alias("session"))
    .agg(count("*").alias("moves"))
    .select("player", "session.start", "session.end", "moves")
)


def append(batch, batch_id):
    batch.write.mode("append").parquet(f"{output}/sessions")


query = sessions.writeStream.foreachBatch(append).option("checkpointLocation", f"{output}/checkpoint").start()
query.awaitTermination()
