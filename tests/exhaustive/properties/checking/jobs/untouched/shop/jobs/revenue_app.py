"""Revenue per shop: python -m shop.jobs.revenue_app"""

from abc import ABC, abstractmethod

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..sources import from_kafka


class StreamingApp(ABC):
    def __init__(self, name: str):
        self.spark = SparkSession.builder.appName(name).getOrCreate()

    @abstractmethod
    def transform(self) -> DataFrame: ...

    def run(self):
        result = self.transform()
        result.writeStream.outputMode("update").format("kafka").option("topic", "revenue").option(
            "checkpointLocation", "/cp"
        ).start().awaitTermination()


class Revenue(StreamingApp):
    def transform(self):
        sales = from_kafka(self.spark, "sales", "shop STRING, at TIMESTAMP, cents BIGINT")
        return sales.groupBy("shop").agg(F.sum("cents").alias("cents"))


if __name__ == "__main__":
    Revenue("revenue").run()
