# Databricks notebook source
# MAGIC %md
# MAGIC ## Bronze to silver: readings of meters

# COMMAND ----------

dbutils.widgets.text("catalog", "main")
dbutils.widgets.dropdown("env", "dev", ["dev", "prod"])
catalog = dbutils.widgets.get("catalog")
base = f"/Volumes/{catalog}/{dbutils.widgets.get('env')}"

# COMMAND ----------

spark.sql(f"CREATE SCHEMA IF NOT EXISTS {catalog}.meters")
dbutils.fs.rm(f"{base}/_checkpoints/bronze", True)

# COMMAND ----------

from pyspark.sql import functions as F

(
    spark.readStream.format("cloudFiles")
    .option("cloudFiles.format", "json")
    .option("cloudFiles.schemaLocation", f"{base}/_schemas/readings")
    .load(f"{base}/landing/readings/")
    .withColumn("ingested_at", F.current_timestamp())
    .writeStream.option("checkpointLocation", f"{base}/_checkpoints/bronze")
    .trigger(availableNow=True)
    .table(f"{catalog}.meters.bronze_readings")
)

# COMMAND ----------

bronze = spark.readStream.table(f"{catalog}.meters.bronze_readings")
silver = bronze.filter("kwh >= 0").withWatermark("read_at", "1 hour").dropDuplicates(["meter", "read_at", "kwh"])
(
    silver.select("meter", "read_at", "kwh")
    .writeStream.queryName("silver")
    .option("checkpointLocation", f"{base}/_checkpoints/silver")
    .toTable(f"{catalog}.meters.silver_readings")
)
