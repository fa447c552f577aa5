"""Passes on the logins that failed, from one topic to another."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json, struct, to_json, upper

SERVERS = "kafka-1:9092,kafka-2:9092"
SCHEMA = "user STRING, at TIMESTAMP, ip STRING, ok BOOLEAN"

spark = SparkSession.builder.appName("failed-logins").getOrCreate()

logins = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", SERVERS)
    .option("subscribe", "logins")
    .option("kafka.security.protocol", "SASL_SSL")
    .option("kafka.sasl.mechanism", "PLAIN")
    .load()
    .select(from_json(col("value").cast("string"), SCHEMA).alias("login"))
    .select("login.*")
)

failed = logins.where(~col("ok")).withColumn("ip", upper("ip"))

query = (
    failed.select(col("user").alias("key"), to_json(struct("ip")).alias("value"))
    .writeStream.format("kafka")
    .option("kafka.bootstrap.servers", SERVERS)
    .option("topic", "failed-logins")
    .option("checkpointLocation", "/var/checkpoints/failed-logins")
    .start()
)
query.awaitTermination()
