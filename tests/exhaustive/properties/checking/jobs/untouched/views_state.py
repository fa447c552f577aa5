"""How many views each user had so far. Bug: what is kept is the count of the last batch."""

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout


def count_views(key, frames, state):
    views = 0
    for frame in frames:
        views += len(frame)
    if state.exists:
        (before,) = state.get
        yield pd.DataFrame({"user": [key[0]], "views": [before + views]})
    else:
        yield pd.DataFrame({"user": [key[0]], "views": [views]})
    state.update((views,))


def main(args=None):
    spark = SparkSession.builder.appName("views").getOrCreate()
    views = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "views")
        .load()
        .withColumn("view", F.from_json(F.col("value").cast("string"), "user BIGINT, page STRING, at TIMESTAMP"))
        .select("view.user", "view.page")
    )
    counts = views.groupBy("user").applyInPandasWithState(
        count_views, "user long, views long", "views long", "update", GroupStateTimeout.NoTimeout
    )
    counts.writeStream.outputMode("update").format("memory").queryName("views_of_users").start().awaitTermination()


if __name__ == "__main__":
    main()
