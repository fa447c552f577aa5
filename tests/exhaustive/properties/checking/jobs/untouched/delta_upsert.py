"""Keeps the balance of each account in a Delta table."""

from delta import configure_spark_with_delta_pip
from delta.tables import *
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

builder = (
    SparkSession.builder.appName("balances")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

DeltaTable.createIfNotExists(spark).location("/lake/balances").addColumn("account", "STRING").addColumn(
    "cents", "BIGINT"
).execute()
balances = DeltaTable.forPath(spark, "/lake/balances")


def upsert(batch, batch_id):
    (
        balances.alias("b")
        .merge(batch.alias("u"), "b.account = u.account")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )


payments = spark.readStream.format("delta").option("ignoreChanges", "true").load("/lake/payments")
totals = payments.groupBy("account").agg(F.sum("cents").alias("cents"))
totals.writeStream.foreachBatch(upsert).outputMode("update").option(
    "checkpointLocation", "/lake/_cp/balances"
).start().awaitTermination()
