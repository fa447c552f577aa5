"""Visits to a web shop, from Kafka to a table: page views of a visitor with pauses of at most 30 minutes."""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor

BROKERS = "broker-1:9092,broker-2:9092"
GAP_US = 30 * 60 * 1_000_000
VISIT = "started_us bigint, last_us bigint, views bigint, cents bigint"


class Visits(StatefulProcessor):
    """Merges the page views of a visitor into visits."""

    def init(self, handle) -> None:
        """Declare the state: the visits that aren't over."""
        self.handle = handle
        self.open = handle.getListState("open", VISIT)

    def handleInputRows(self, key, rows: Iterator[pd.DataFrame], timerValues) -> Iterator[pd.DataFrame]:
        """Merge new page views into the open visits."""
        watermark_us = timerValues.getCurrentWatermarkInMs() * 1000
        spans = list(self.open.get())
        for page in rows:
            views = zip(map(int, page["at_us"]), map(int, page["cents"]), strict=True)
            spans += [(at_us, at_us, 1, cents) for at_us, cents in views if at_us + GAP_US > watermark_us]
        visits = []
        for started, last, views, cents in sorted(spans):
            if visits and started - visits[-1][1] <= GAP_US:
                first, until, before, spent = visits.pop()
                visits.append((first, max(until, last), before + views, spent + cents))
            else:
                visits.append((started, last, views, cents))
        if visits:
            self.open.put(visits)
        for _, last, _, _ in visits:
            self.handle.registerTimer(-(-(last + GAP_US) // 1000))
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo) -> Iterator[pd.DataFrame]:
        """Emit the visits that are over."""
        watermark_us = timerValues.getCurrentWatermarkInMs() * 1000
        visits = list(self.open.get())
        still_open = [visit for visit in visits if visit[1] + GAP_US > watermark_us]
        over = [(*key, *visit) for visit in visits if visit[1] + GAP_US <= watermark_us]
        if not over:
            return
        if still_open:
            self.open.put(still_open)
        else:
            self.open.clear()
        yield pd.DataFrame(over, columns=["visitor", "started_us", "last_us", "views", "cents"])


def main() -> None:
    """Start the query, and wait for it."""
    spark = SparkSession.builder.appName("visits").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", BROKERS)
        .option("subscribe", "page_views")
        .option("startingOffsets", "earliest")
        .load()
    )
    schema = "visitor STRING, viewed_at TIMESTAMP, spent DECIMAL(10,2)"
    page_views = records.select(F.from_json(F.col("value").cast("string"), schema).alias("view")).select("view.*")
    views = page_views.withWatermark("viewed_at", "10 minutes").select(
        "visitor",
        F.unix_micros("viewed_at").alias("at_us"),
        F.coalesce(F.col("spent") * 100, F.lit(0)).cast("bigint").alias("cents"),
    )
    visits = (
        views.groupBy("visitor")
        .transformWithStateInPandas(Visits(), f"visitor string, {VISIT}", outputMode="append", timeMode="eventTime")
        .withColumn("started", F.timestamp_micros("started_us"))
        .withColumn("ended", F.timestamp_micros("last_us"))
        .withColumn("spent", (F.col("cents") / 100).cast("decimal(20,2)"))
        .select("visitor", "started", "ended", "views", "spent")
    )
    query = (
        visits.writeStream.outputMode("append").option("checkpointLocation", "/checkpoints/visits").toTable("visits")
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
