"""The energy that each meter used in each hour, from the gateways' CSV files to parquet files."""

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor

HOUR_MS = 3_600_000


class Bills(StatefulProcessor):
    """Sums the readings of a meter and hour until the hour is over."""

    def init(self, handle) -> None:
        """Declare the state: the energy that the meter used in the hour."""
        self.handle = handle
        self.used = handle.getValueState("used", "wh bigint, readings bigint")

    def handleInputRows(self, key, rows, timerValues):
        """Add readings, unless the hour is over."""
        hour_end = key[1] + HOUR_MS
        if hour_end <= timerValues.getCurrentWatermarkInMs():
            return
        wh, readings = self.used.get() if self.used.exists() else (0, 0)
        for row in rows:
            wh, readings = wh + row.wh, readings + 1
        self.used.update((wh, readings))
        self.handle.registerTimer(hour_end)
        yield from ()

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        """Bill the hour."""
        wh, readings = self.used.get()
        self.used.clear()
        yield Row(meter=key[0], hour_ms=key[1], wh=wh, readings=readings)


def main(spark: SparkSession) -> None:
    """Bill the readings that arrive, every five minutes."""
    readings = (
        spark.readStream.format("csv")
        .schema("meter STRING, read_at TIMESTAMP, wh BIGINT")
        .option("header", "true")
        .load("/data/meters/readings")
    )
    hour_ms = (F.floor(F.unix_millis("read_at") / HOUR_MS) * HOUR_MS).cast("bigint")
    bills = (
        readings.withWatermark("read_at", "1 hour")
        .select("meter", hour_ms.alias("hour_ms"), "wh")
        .groupBy("meter", "hour_ms")
        .transformWithState(
            Bills(),
            "meter string, hour_ms bigint, wh bigint, readings bigint",
            outputMode="append",
            timeMode="eventTime",
        )
        .select("meter", F.timestamp_millis("hour_ms").alias("hour"), "wh", "readings")
    )
    query = (
        bills.writeStream.queryName("bills")
        .format("parquet")
        .trigger(processingTime="5 minutes")
        .start("/data/meters/bills", checkpointLocation="/data/meters/_checkpoints/bills")
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()


if __name__ == "__main__":
    main(SparkSession.builder.appName("meters").getOrCreate())
