# Databricks notebook source
from pyspark.sql import functions as F

key = dbutils.secrets.get(scope="kafka", key="password")


def read_topic(topic, schema):
    raw = spark.readStream.format("kafka").option("kafka.password", key).option("subscribe", topic).load()
    return raw.select(F.from_json(F.col("value").cast("string"), schema).alias("v")).select("v.*")


def checkpoint(name):
    return f"dbfs:/checkpoints/{name}"


def threshold():
    return int(dbutils.widgets.get("threshold"))
