"""The business day and fiscal quarter of each sale in New York, from JSON files to JSON files."""

import pyspark.sql.functions as F
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType

ZONE = "America/New_York"


@udf(returnType=StringType())
def fiscal_quarter(day):
    """Return the quarter of a fiscal year that begins in February."""
    year, month = (day.year, day.month - 1) if day.month > 1 else (day.year - 1, 12)
    return f"FY{year}-Q{(month + 2) // 3}"


spark = (
    SparkSession.builder.appName("business-days")
    .config("spark.sql.streaming.schemaInference", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)

sales = spark.readStream.json(
    "s3a://chain/sales/", schema="sale_id STRING, sold_at TIMESTAMP, till SMALLINT, amount DECIMAL(8,2)"
)
local = F.convert_timezone(F.current_timezone(), F.lit(ZONE), F.col("sold_at").cast("timestamp_ntz"))
booked = (
    sales.withColumn("day", F.to_date(local))
    .withColumn("quarter", fiscal_quarter("day"))
    .select("sale_id", "till", "amount", "day", "quarter")
)

query = (
    booked.writeStream.format("json")
    .option("path", "s3a://chain/booked/")
    .option("checkpointLocation", "s3a://chain/checkpoints/booked/")
    .start()
)
query.awaitTermination()
