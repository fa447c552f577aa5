import findspark

findspark.init()

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import explode, split, upper

conf = SparkConf().setAppName("NetworkWords").setMaster("local[2]")
sc = SparkContext.getOrCreate(conf)
spark = SparkSession(sc)
lines = spark.readStream.format("socket").option("host", "localhost").option("port", 9999).load()
words = lines.select(explode(split(lines.value, " ")).alias("word")).select(upper("word").alias("word"))
counts = words.groupBy("word").count().orderBy("count")
counts.writeStream.outputMode("complete").format("console").start().awaitTermination()
