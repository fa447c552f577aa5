"""The events of devices without the gateways' repeats, from Kafka to parquet files, with one folder per day."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructType, TimestampType

event = (
    StructType()
    .add("device", StringType())
    .add("event_id", LongType())
    .add("sent_at", TimestampType())
    .add("level", DoubleType())
    .add("alarm", BooleanType())
)


def run(spark: SparkSession, servers: str, topic: str) -> None:
    """Read, deduplicate, write."""
    lines = (
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic).load()
    )
    events = lines.selectExpr("CAST(value AS STRING) AS json").select(from_json(col("json"), event).alias("e"))
    once = events.select("e.*").withWatermark("sent_at", "1 hour").dropDuplicatesWithinWatermark(["device", "event_id"])
    writer = once.writeStream.format("parquet").option("checkpointLocation", "/lake/_checkpoints/events")
    writer.option("path", "/lake/events").trigger(processingTime="30 seconds").start()
    spark.streams.awaitAnyTermination()


def main() -> None:
    """Run the query on the cluster's broker."""
    run(SparkSession.builder.getOrCreate(), "kafka:9092", "device-events")


if __name__ == "__main__":
    main()
