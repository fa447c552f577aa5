"""Sales of each store and day, from files that have the date alone; the whole table is written each time."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import sum as total
from pyspark.sql.types import DateType, DecimalType, StringType, StructField, StructType

spark = SparkSession.builder.appName("sales-by-date").getOrCreate()

fields = [
    StructField("store", StringType()),
    StructField("day", DateType()),
    StructField("amount", DecimalType(10, 2)),
]
sales = spark.readStream.format("parquet").schema(StructType(fields)).load("gs://retail/sales")

by_day = sales.groupBy("store", "day").agg(total("amount").alias("amount"))


def overwrite(table, _):
    table.coalesce(1).write.mode("overwrite").parquet("gs://retail/by_day")


query = (
    by_day.writeStream.outputMode("complete")
    .trigger(processingTime="1 hour")
    .option("checkpointLocation", "gs://retail/checkpoints/by_day")
    .foreachBatch(overwrite)
    .start()
)
query.awaitTermination()
