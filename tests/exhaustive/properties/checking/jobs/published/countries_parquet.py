"""Logins with the country of their network, from a table of networks in parquet."""

import os

from pyspark.sql import SparkSession

BASE = os.environ.get("DATA_FOLDER", "/data")

spark = SparkSession.builder.appName("countries").enableHiveSupport().getOrCreate()
spark.sparkContext.setLogLevel("WARN")

networks = spark.read.parquet(os.path.join(BASE, "networks"))
logins = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", os.environ["KAFKA_BOOTSTRAP"])
    .option("subscribe", os.environ["KAFKA_TOPIC"])
    .option("kafka.group.id", "countries")
    .load()
)

networks.createOrReplaceTempView("networks")
logins.createOrReplaceTempView("records")

located = spark.sql(
    """
    WITH parsed AS (
        SELECT from_json(CAST(value AS STRING), 'user STRING, network INT, at TIMESTAMP') AS login FROM records
    ), logins AS (
        SELECT login.user, login.network, login.at FROM parsed
    )
    SELECT logins.user, logins.at, logins.network, coalesce(networks.country, '??') AS country
    FROM logins LEFT JOIN networks ON logins.network = networks.id
    """
)

query = located.writeStream.format("json").option("checkpointLocation", f"{BASE}/ckpt").start(f"{BASE}/located")
try:
    query.awaitTermination()
except Exception as error:
    print(f"the query failed: {error}")
    raise
finally:
    query.stop()
