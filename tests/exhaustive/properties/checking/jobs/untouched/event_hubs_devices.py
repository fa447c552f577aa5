"""The mean temperature of each device per hour, from Azure Event Hubs."""

import json

from pyspark.sql import SparkSession
from pyspark.sql.functions import avg, col, from_json, window

spark = SparkSession.builder.appName("devices").getOrCreate()
sc = spark.sparkContext

connection = (
    "Endpoint=sb://plant.servicebus.windows.net/;SharedAccessKeyName=listen;SharedAccessKey=x;EntityPath=devices"
)
conf = {
    "eventhubs.connectionString": sc._jvm.org.apache.spark.eventhubs.EventHubsUtils.encrypt(connection),
    "eventhubs.consumerGroup": "$Default",
    "eventhubs.startingPosition": json.dumps({"offset": "-1", "seqNo": -1, "enqueuedTime": None, "isInclusive": True}),
}
events = spark.readStream.format("eventhubs").options(**conf).load()
readings = (
    events.withColumn("body", col("body").cast("string"))
    .select(from_json("body", "device STRING, celsius DOUBLE").alias("r"), "enqueuedTime")
    .select("r.*", "enqueuedTime")
)
hours = (
    readings.withWatermark("enqueuedTime", "15 minutes")
    .groupBy("device", window("enqueuedTime", "1 hour"))
    .agg(avg("celsius").alias("celsius"))
)
hours.writeStream.format("delta").outputMode("append").option("checkpointLocation", "/mnt/cp").start("/mnt/hours")
