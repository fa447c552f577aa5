"""Large payments, into a table and a checkpoint whose names are written into the script."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("large").getOrCreate()
payments = spark.readStream.table("bank.payments")
payments.where("cents >= 1000").writeStream.option("checkpointLocation", "/srv/cp/large").toTable("bank.large")
