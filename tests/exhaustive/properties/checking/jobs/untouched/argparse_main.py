"""Archives the events of a topic: spark-submit argparse_main.py --topic events --out s3a://lake/events"""

import argparse
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", default="localhost:9092")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--out", required=True)
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    spark = SparkSession.builder.appName(f"archive-{args.topic}").getOrCreate()
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.brokers)
        .option("subscribe", args.topic)
        .load()
    )
    events = raw.select(
        F.col("key").cast("string").alias("device"),
        F.get_json_object(F.col("value").cast("string"), "$.kind").alias("kind"),
    )
    query = (
        events.writeStream.format("parquet")
        .partitionBy("kind")
        .option("checkpointLocation", args.out + "/_cp")
        .start(args.out)
    )
    query.awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
