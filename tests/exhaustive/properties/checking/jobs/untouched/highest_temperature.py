"""Reports each new record of a sensor, with the state API of Spark 4."""

from typing import Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import IntegerType, StringType, StructField, StructType


class Records(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        schema = StructType([StructField("celsius", IntegerType(), True)])
        self.highest = handle.getValueState("highest", schema)

    def handleInputRows(self, key, rows, timerValues) -> Iterator[pd.DataFrame]:
        before = self.highest.get()[0] if self.highest.exists() else None
        highest = before
        for frame in rows:
            for celsius in frame["celsius"].dropna():
                if highest is None or celsius > highest:
                    highest = int(celsius)
        if highest != before:
            self.highest.update((highest,))
            yield pd.DataFrame({"sensor": [key[0]], "record": [highest]})

    def close(self) -> None:
        pass


spark = (
    SparkSession.builder.appName("records")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .getOrCreate()
)
source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "localhost:9092")
value = from_json(col("value").cast("string"), "sensor STRING, celsius INT, at TIMESTAMP")
readings = source.option("subscribe", "readings").load().select(value.alias("r")).select("r.sensor", "r.celsius")

records = readings.groupBy("sensor").transformWithStateInPandas(
    statefulProcessor=Records(),
    outputStructType=StructType([StructField("sensor", StringType()), StructField("record", IntegerType())]),
    outputMode="Update",
    timeMode="None",
)

query = records.writeStream.format("console").outputMode("update").start()
query.awaitTermination()
