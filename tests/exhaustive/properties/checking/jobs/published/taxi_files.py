"""Trips and takings of taxis by zone, in windows of an hour every quarter of it, from files of CSV."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, sum, window
from pyspark.sql.types import DoubleType, StringType, StructField, StructType, TimestampType

INPUT_DIR = "/data/taxi/incoming"
OUTPUT_DIR = "/data/taxi/by_zone"


class TaxiJob:
    schema = StructType(
        [
            StructField("zone", StringType()),
            StructField("pickup", TimestampType()),
            StructField("fare", DoubleType()),
        ]
    )

    def __init__(self):
        self.spark = SparkSession.builder.appName(type(self).__name__).getOrCreate()

    def extract(self):
        return (
            self.spark.readStream.option("header", True)
            .option("maxFilesPerTrigger", 2)
            .option("cleanSource", "archive")
            .option("sourceArchiveDir", "/data/taxi/done")
            .schema(self.schema)
            .csv(INPUT_DIR)
        )

    def transform(self, trips):
        by_zone = trips.withWatermark("pickup", "30 minutes").groupBy(
            col("zone"), window(col("pickup"), "1 hour", "15 minutes")
        )
        return by_zone.agg(count("*").alias("trips"), sum("fare").alias("takings"))

    def load(self, df):
        return (
            df.select("zone", "window.start", "window.end", "trips", "takings")
            .writeStream.format("json")
            .option("path", OUTPUT_DIR)
            .option("checkpointLocation", f"{OUTPUT_DIR}/_checkpoint")
            .start()
        )

    def run(self):
        self.load(self.transform(self.extract())).awaitTermination()


if __name__ == "__main__":
    TaxiJob().run()
