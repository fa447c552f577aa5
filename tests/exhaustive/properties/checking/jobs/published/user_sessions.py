import argparse
import logging

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

logger = logging.getLogger("user_sessions")

EVENT = "user STRING, at TIMESTAMP, page STRING, cents BIGINT"


def parse_args():
    parser = argparse.ArgumentParser(description="Sessions of users, as parquet")
    parser.add_argument("--brokers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--gap", default="30 minutes")
    parser.add_argument("--watermark", default="10 minutes")
    return parser.parse_args()


def read_events(spark: SparkSession, brokers: str, topic: str) -> DataFrame:
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", 10_000)
        .load()
    )
    return raw.select(F.from_json(F.col("value").cast("string"), EVENT).alias("e"), "headers").select("e.*")


def sessions(events: DataFrame, gap: str, delay: str) -> DataFrame:
    windowed = events.withWatermark("at", delay).groupBy(F.session_window("at", gap), "user")
    return windowed.agg(F.count("page").alias("pages"), F.sum("cents").alias("cents"))


def main():
    logging.basicConfig(level=logging.INFO)
    args = parse_args()
    spark = SparkSession.builder.appName("user-sessions").getOrCreate()
    result = sessions(read_events(spark, args.brokers, args.topic), args.gap, args.watermark)
    query = (
        result.writeStream.format("parquet")
        .outputMode("append")
        .option("path", args.output)
        .option("checkpointLocation", args.output + "/_checkpoint")
        .trigger(processingTime="10 seconds")
        .start()
    )
    logger.info("started %s", query.id)
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        logger.info("stopping")
    finally:
        query.stop()
        spark.stop()


if __name__ == "__main__":
    main()
