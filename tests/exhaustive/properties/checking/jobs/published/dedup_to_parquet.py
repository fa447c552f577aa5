"""Events, each once, from Kafka to a folder a day; runs once an hour, and takes what has come since."""

import sys
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

SCHEMA = T.StructType(
    [
        T.StructField("event_id", T.StringType()),
        T.StructField("event_time", T.TimestampType()),
        T.StructField("kind", T.StringType()),
    ]
)


def main(argv: list[str]) -> int:
    bootstrap, topic, target = argv[1], argv[2], argv[3]
    spark = SparkSession.builder.appName(f"dedup {topic}").getOrCreate()

    events = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribePattern", f"{topic}.*")
        .option("startingOffsets", "earliest")
        .load()
        .withColumn("json", F.col("value").cast("string"))
        .withColumn("event", F.from_json("json", SCHEMA))
        .select("event.*")
    )
    unique = events.withWatermark("event_time", "30 minutes").dropDuplicates(["event_id", "event_time"])

    query = (
        unique.withColumn("day", F.to_date("event_time"))
        .writeStream.partitionBy("day")
        .format("parquet")
        .option("checkpointLocation", f"{target}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{target}/events")
    )
    query.awaitTermination()
    print(f"{datetime.now():%H:%M} done: {query.lastProgress}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
