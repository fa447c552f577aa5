"""Appends each batch of payments to a folder that is written into the script; a repeated batch comes twice."""

from pyspark.sql import SparkSession

OUT = "/srv/lake/payments"
spark = SparkSession.builder.appName("payments").getOrCreate()
payments = spark.readStream.schema("account STRING, at TIMESTAMP, cents BIGINT").parquet("/srv/landing/payments")


def append(batch, batch_id):
    batch.write.mode("append").parquet(OUT)


payments.writeStream.foreachBatch(append).option("checkpointLocation", "/srv/cp/payments").start().awaitTermination()
