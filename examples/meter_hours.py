"""The energy that each meter used in each hour, billed once, one hour after the end of that hour.

A processor with state per meter and hour bills when the timer fires. A separate correction run handles readings of
billed hours. `wrong` doesn't check whether the hour is over, and bills a late reading again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

HOUR_MS = 60 * 60 * 1000


class Bills(StatefulProcessor):
    """Sums the readings of a meter and hour until the hour is over."""

    refuses_late = True

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: the energy that the meter used in the hour."""
        self.handle = handle
        self.used = handle.getValueState("used", "wh bigint, readings bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Add readings, unless the hour is over."""
        hour_end = key[1] + HOUR_MS
        if self.refuses_late and hour_end <= timerValues.getCurrentWatermarkInMs():
            return iter(())
        wh, readings = self.used.get() if self.used.exists() else (0, 0)
        for row in rows:
            wh, readings = wh + row.wh, readings + 1
        self.used.update((wh, readings))
        self.handle.registerTimer(hour_end)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Bill the hour."""
        wh, readings = self.used.get()
        self.used.clear()
        yield Row(meter=key[0], hour_ms=key[1], wh=wh, readings=readings)


class BillsLateToo(Bills):
    """Sums the readings even if the hour is over: the bug."""

    refuses_late = False


def job(readings: DataFrame) -> DataFrame:
    """Return one bill for each meter and hour."""
    return _bills(readings, Bills())


def wrong(readings: DataFrame) -> DataFrame:
    """Return bills that count late readings: the bug."""
    return _bills(readings, BillsLateToo())


def _bills(readings: DataFrame, processor: StatefulProcessor) -> DataFrame:
    hour_ms = (F.floor(F.unix_millis("read_at") / HOUR_MS) * HOUR_MS).cast("bigint")
    # Leave out the watermark's column, so that Spark also passes late rows to the processor, which decides on them.
    hours = readings.withWatermark("read_at", "1 hour").select("meter", hour_ms.alias("hour_ms"), "wh")
    bills = hours.groupBy("meter", "hour_ms").transformWithState(
        processor,
        "meter string, hour_ms bigint, wh bigint, readings bigint",
        outputMode="append",
        timeMode="eventTime",
    )
    return bills.select("meter", F.timestamp_millis("hour_ms").alias("hour"), "wh", "readings")
