from pyspark import SparkConf
from pyspark.sql import SparkSession
from pyspark.sql.functions import *
from pyspark.sql.types import *

conf = SparkConf().setAppName("EnrichOrders").setMaster("local[2]").set("spark.ui.enabled", "false")
spark = SparkSession.builder.config(conf=conf).getOrCreate()

# The catalogue is a CSV file that changes with a release.
productSchema = StructType([StructField("product_id", IntegerType()), StructField("title", StringType()), StructField("shelf", StringType())])
productsDF = spark.read.option("header", "true").schema(productSchema).csv("data/products.csv")

orderSchema = StructType() \
    .add("order_id", StringType()) \
    .add("product_id", IntegerType()) \
    .add("ordered_at", TimestampType()) \
    .add("quantity", IntegerType())

ordersDF = spark.readStream \
    .format("kafka") \
    .option("kafka.bootstrap.servers", "localhost:9092") \
    .option("subscribe", "orders") \
    .load()

ordersDF = ordersDF.select(from_json(col("value").cast("string"), orderSchema).alias("order")).select("order.*")

enrichedDF = ordersDF.join(productsDF, "product_id", "left_outer")

enrichedDF.writeStream \
    .format("csv") \
    .option("path", "out/enriched") \
    .option("checkpointLocation", "out/checkpoint") \
    .outputMode("append") \
    .start() \
    .awaitTermination()
