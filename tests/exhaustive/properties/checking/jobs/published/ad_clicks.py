"""Which impressions of an ad were clicked within an hour: an inner join of two topics."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr, from_json
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

spark = SparkSession.builder.appName("AdClicks").getOrCreate()

KAFKA = {"kafka.bootstrap.servers": "kafka1:9092,kafka2:9092", "startingOffsets": "earliest"}
impression_schema = StructType().add("adId", LongType()).add("shownAt", TimestampType()).add("site", StringType())
click_schema = StructType().add("clickAdId", LongType()).add("clickedAt", TimestampType())


def topic(name, schema):
    stream = spark.readStream.format("kafka").options(**KAFKA).option("subscribe", name).load()
    return stream.select(from_json(stream.value.cast("string"), schema).alias("json")).select("json.*")


impressions = topic("impressions", impression_schema).withWatermark("shownAt", "10 minutes")
clicks = topic("clicks", click_schema).withWatermark("clickedAt", "20 minutes")

clicked = impressions.join(
    clicks,
    expr(
        """
        clickAdId = adId AND
        clickedAt >= shownAt AND
        clickedAt <= shownAt + interval 1 hour
        """
    ),
)

(
    clicked.writeStream.format("console")
    .queryName("clicked")
    .trigger(processingTime="2 seconds")
    .start()
    .awaitTermination()
)
