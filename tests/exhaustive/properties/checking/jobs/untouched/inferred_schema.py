"""Events of devices from a folder of JSON, whose schema is inferred from what is there already."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

spark = SparkSession.builder.appName("devices").getOrCreate()
path = "/databricks-datasets/devices/"

static = spark.read.json(path)
static.printSchema()
schema = static.schema

stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(path + "*.json")
errors = stream.where(col("action") == "error").groupBy("device").count()
query = errors.writeStream.format("memory").queryName("counts").outputMode("complete").start()
query.processAllAvailable()
spark.sql("SELECT * FROM counts ORDER BY count DESC").show()
