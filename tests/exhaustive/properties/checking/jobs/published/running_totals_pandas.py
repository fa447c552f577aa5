"""The number of purchases of each customer so far, and what they spent, with state of its own."""

from typing import Any, Iterable, Tuple

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import LongType, StringType, StructField, StructType

output_schema = StructType([
    StructField("customer", StringType()),
    StructField("purchases", LongType()),
    StructField("cents", LongType()),
])
state_schema = StructType([StructField("purchases", LongType()), StructField("cents", LongType())])


def add_up(key: Tuple[Any], pdfs: Iterable[pd.DataFrame], state: GroupState) -> Iterable[pd.DataFrame]:
    purchases, cents = state.get if state.exists else (0, 0)
    for pdf in pdfs:
        purchases += len(pdf)
        cents += int(pdf["cents"].fillna(0).sum())
    state.update((purchases, cents))
    yield pd.DataFrame({"customer": [key[0]], "purchases": [purchases], "cents": [cents]})


spark = SparkSession.builder.appName("running-totals").getOrCreate()
df = spark.readStream.format("kafka") \
    .option("kafka.bootstrap.servers", "localhost:9092") \
    .option("subscribe", "purchases") \
    .load() \
    .select(from_json(col("value").cast("string"), "customer STRING, cents LONG, bought TIMESTAMP").alias("p")) \
    .select("p.customer", "p.cents")

totals = df.groupBy(df["customer"]).applyInPandasWithState(
    add_up, output_schema, state_schema, "update", GroupStateTimeout.NoTimeout
)

totals.writeStream.outputMode("update").format("console").start()
spark.streams.awaitAnyTermination()
