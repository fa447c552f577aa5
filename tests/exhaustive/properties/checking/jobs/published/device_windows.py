# Average temperature of each device in windows of ten minutes, from Kafka to the console.
import os

from pyspark.sql import SparkSession
from pyspark.sql.functions import avg, col, count, from_json, window
from pyspark.sql.types import DoubleType, StringType, StructField, StructType, TimestampType

os.environ["PYSPARK_SUBMIT_ARGS"] = "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 pyspark-shell"

spark = (
    SparkSession.builder.appName("DeviceWindows")
    .master("local[*]")
    .config("spark.sql.shuffle.partitions", 4)
    .config("spark.streaming.stopGracefullyOnShutdown", True)
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")

schema = StructType(
    [
        StructField("device", StringType(), True),
        StructField("temperature", DoubleType(), True),
        StructField("ts", TimestampType(), True),
    ]
)

df = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("subscribe", "temperatures")
    .option("startingOffsets", "latest")
    .load()
)
df.printSchema()

parsed = df.selectExpr("CAST(value AS STRING)").select(from_json(col("value"), schema).alias("data")).select("data.*")

windows = (
    parsed.withWatermark("ts", "5 minutes")
    .groupBy(window(col("ts"), "10 minutes"), col("device"))
    .agg(avg("temperature").alias("mean"), count("*").alias("readings"))
)

query = windows.writeStream.outputMode("append").format("console").option("truncate", "false").start()
query.awaitTermination()
