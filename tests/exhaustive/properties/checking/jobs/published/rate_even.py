from pyspark.sql import SparkSession, functions as F

# A source of numbers, to try things out without a broker.
spark = SparkSession.builder.appName('RateEven').getOrCreate()
spark.conf.set('spark.sql.shuffle.partitions', '2')

rate = spark.readStream.format('rate').option('rowsPerSecond', 10).option('numPartitions', 2).load()


@F.udf('string')
def parity(number):
    return 'even' if number % 2 == 0 else 'odd'


numbers = (
    rate.withColumnRenamed('timestamp', 'created')
    .withColumn('parity', parity('value'))
    .filter(F.col('created').isNotNull())
)

query = (
    numbers.writeStream
    .format('console')
    .outputMode('append')
    .option('truncate', False)
    .start()
)

query.awaitTermination(60)
query.stop()
