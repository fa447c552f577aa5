"""Nested messages of sensors; each batch of averages goes to two places."""

import json
import logging

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

log = logging.getLogger(__name__)

MESSAGE = StructType.fromJson(
    json.loads(
        """
        {"type": "struct", "fields": [
            {"name": "id", "type": "long", "nullable": true, "metadata": {}},
            {"name": "sent", "type": "timestamp", "nullable": true, "metadata": {}},
            {"name": "data", "nullable": true, "metadata": {}, "type": {"type": "struct", "fields": [
                {"name": "celsius", "type": "double", "nullable": true, "metadata": {}},
                {"name": "humidity", "type": "integer", "nullable": true, "metadata": {}}
            ]}}
        ]}
        """
    )
)


def write_twice(batch: DataFrame, epoch: int) -> None:
    batch.persist()
    log.info("epoch %s", epoch)
    batch.write.mode("append").parquet("/data/averages")
    batch.write.format("jdbc").option("url", "jdbc:postgresql://db/iot").option("dbtable", "averages").save()
    batch.unpersist()


spark = SparkSession.builder.appName("iot").getOrCreate()
stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "localhost:9092")
messages = stream.option("subscribe", "iot").load().select(F.from_json(F.decode("value", "UTF-8"), MESSAGE).alias("m"))
readings = messages.select("m.id", "m.sent", "m.data.celsius", "m.data.humidity")

averages = (
    readings.withWatermark("sent", "1 minute")
    .groupBy("id", F.window("sent", "1 minute").alias("minute"))
    .agg(F.avg("celsius").alias("celsius"), F.max("humidity").alias("humidity"))
    .select("id", F.col("minute.start").alias("minute"), "celsius", "humidity")
)

query = averages.writeStream.foreachBatch(write_twice).option("checkpointLocation", "/data/checkpoints/iot").start()

try:
    query.awaitTermination()
finally:
    log.info("last progress: %s", query.lastProgress)
    query.stop()
