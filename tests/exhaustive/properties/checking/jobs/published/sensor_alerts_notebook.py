# Databricks notebook source
# MAGIC %md
# MAGIC # Alerts of sensors
# MAGIC Readings that are above the threshold go into a table of their own.

# COMMAND ----------

from pyspark.sql import functions as F

dbutils.widgets.text("threshold", "80")
threshold = int(dbutils.widgets.get("threshold"))

# COMMAND ----------

readings = spark.readStream.option("ignoreChanges", "true").table("plant.bronze.readings")
display(readings)

# COMMAND ----------

# MAGIC %sql
# MAGIC CREATE TABLE IF NOT EXISTS plant.silver.alerts (sensor STRING, read_at TIMESTAMP, celsius INT, level STRING)

# COMMAND ----------

alerts = (
    readings.filter(F.col("celsius") > threshold)
    .withColumn("level", F.when(F.col("celsius") > 1.5 * threshold, "critical").otherwise("warning"))
    .select("sensor", "read_at", "celsius", "level")
)

# COMMAND ----------

(
    alerts.writeStream.format("delta")
    .queryName("alerts")
    .option("checkpointLocation", "/mnt/checkpoints/alerts")
    .outputMode("append")
    .toTable("plant.silver.alerts")
)
