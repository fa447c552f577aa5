"""Deduplicates orders; what it reads and how long it waits stands in a file of YAML."""

import yaml
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

with open("config/orders.yml") as f:
    conf = yaml.safe_load(f)

spark = SparkSession.builder.appName(conf["app"]).getOrCreate()
for key, value in conf["spark"].items():
    spark.conf.set(key, value)

df = spark.readStream.format("kafka").options(**conf["kafka"]).load()
orders = df.select(from_json(col("value").cast("string"), conf["schema"]).alias("o")).select("o.*")
unique = orders.withWatermark("at", conf["delay"]).dropDuplicates(conf["unique"])
unique.writeStream.format(conf["sink"]["format"]).option("checkpointLocation", "/cp/orders").start(conf["sink"]["path"])
