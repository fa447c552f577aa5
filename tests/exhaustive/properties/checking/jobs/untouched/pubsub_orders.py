"""Orders from Pub/Sub; the state of the pipeline is logged where Sentry is there."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

try:
    import sentry_sdk

    sentry_sdk.init("https://sentry.io/1")
except ImportError:
    sentry_sdk = None

spark = SparkSession.builder.appName("pubsub").getOrCreate()
df = (
    spark.readStream.format("pubsub")
    .option("subscriptionId", "orders-sub")
    .option("topicId", "orders")
    .option("projectId", "p")
    .load()
)
orders = df.select(
    from_json(col("payload").cast("string"), "id STRING, at TIMESTAMP, cents BIGINT").alias("o"), "messageId"
).select("o.*")
orders.filter("cents > 0").writeStream.format("delta").option("checkpointLocation", "gs://b/cp").start("gs://b/orders")
