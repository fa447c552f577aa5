"""A run that reads a Delta table, in a process whose Spark has Delta; leaves its folders for the judge.

The query begins with files that the table has, goes on with what is appended, and meets an OPTIMIZE, which moves rows.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

BEGIN = datetime(2026, 1, 1)
SCHEMA = "user string, at timestamp, amount int, day date"


def totals(clicks: DataFrame) -> DataFrame:
    groups = clicks.withWatermark("at", "10 minutes").groupBy("user", F.window("at", "1 hour"))
    return groups.agg(F.sum("amount").alias("total"))


def append(spark: SparkSession, table: str, number: int) -> None:
    """Append half an hour of rows, as two files."""
    times = [BEGIN + timedelta(hours=12, minutes=number * 30 + minute) for minute in range(30)]
    rows = [(f"u{at.minute % 3}", at, number + at.minute % 7, at.date()) for at in times]
    frame = spark.createDataFrame(rows, SCHEMA).repartition(2)
    frame.write.format("delta").mode("append").partitionBy("day").save(table)


def run(spark: SparkSession, folder: Path) -> None:
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1)
    writer = totals(reader.load(f"{folder}/clicks é")).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", f"{folder}/cp").trigger(availableNow=True)
    writer.start(f"{folder}/out").awaitTermination()


def main(folder: Path) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 1)
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    spark = builder.config("spark.sql.session.timeZone", "UTC").config("spark.ui.enabled", "false").getOrCreate()
    table = f"{folder}/clicks é"
    for number in range(2):
        append(spark, table, number)
    run(spark, folder)
    for number in range(2, 22):
        append(spark, table, number)
    spark.sql(f"OPTIMIZE delta.`{table}`")
    for number in range(22, 26):
        append(spark, table, number)
    run(spark, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
