"""Views of each page in windows of five minutes, said in SQL."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("clickstream").getOrCreate()

(
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("subscribe", "clicks")
    .load()
    .createOrReplaceTempView("raw_clicks")
)

spark.sql(
    """
    SELECT click.* FROM (
        SELECT from_json(CAST(value AS STRING), 'page STRING, user BIGINT, clicked_at TIMESTAMP') AS click
        FROM raw_clicks
    )
    """
).withWatermark("clicked_at", "2 minutes").createOrReplaceTempView("clicks")

counts = spark.sql(
    """
    SELECT page, window(clicked_at, '5 minutes') AS window, count(*) AS views, max(user) AS newest_user
    FROM clicks
    GROUP BY page, window(clicked_at, '5 minutes')
    """
)

query = counts.writeStream.outputMode("update").format("console").option("numRows", 50).start()
spark.streams.awaitAnyTermination()
