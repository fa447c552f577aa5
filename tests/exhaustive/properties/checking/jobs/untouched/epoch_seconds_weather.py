"""The highest gust of each station and day; stations send seconds since 1970."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("gusts").config("spark.sql.session.timeZone", "UTC").getOrCreate()

raw = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "mq:9092").option("subscribe", "wx").load()
parsed = raw.select(
    F.get_json_object(F.col("value").cast("string"), "$.station").alias("station"),
    F.get_json_object(F.col("value").cast("string"), "$.epoch").cast("long").alias("epoch"),
    F.get_json_object(F.col("value").cast("string"), "$.gust").cast("double").alias("gust"),
)
timed = parsed.withColumn("at", F.to_timestamp(F.from_unixtime("epoch"))).drop("epoch")

daily = (
    timed.withWatermark("at", "2 hours")
    .groupBy("station", F.window("at", "1 day"))
    .agg(F.max("gust").alias("gust"))
    .select("station", F.to_date("window.start").alias("day"), "gust")
)

query = daily.writeStream.format("csv").option("checkpointLocation", "/wx/ckpt").option("path", "/wx/daily").start()
while not query.awaitTermination(30):
    print(query.lastProgress)
