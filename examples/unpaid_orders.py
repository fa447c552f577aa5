"""Orders that nobody paid within 30 minutes of placing them, for the reminders of the shop.

A processor with state keeps an order's events until 30 minutes after it was placed, and then decides whether it was
paid in time. `wrong` adds 30 * 60 to milliseconds: two seconds after the order it decides that nobody paid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

WITHIN_MS = 30 * 60 * 1000
WITHIN_SECONDS = 30 * 60


class Reminders(StatefulProcessor):
    """Decides on an order `wait` milliseconds after it was placed, once."""

    def __init__(self, wait: int) -> None:
        self.wait = wait

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: the events until the decision, and that it has been taken."""
        self.handle = handle
        self.events = handle.getListState("events", "at_ms bigint, paid boolean")
        self.decided = handle.getValueState("decided", "at_ms bigint")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Keep events, and set the alarm for each placing."""
        for frame in rows:
            if self.decided.exists():
                continue
            for at_ms, paid in zip(frame["at_ms"], frame["paid"], strict=True):
                self.events.appendValue((int(at_ms), bool(paid)))
                if not paid:
                    self.handle.registerTimer(int(at_ms) + self.wait)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """Decide on the order."""
        if self.decided.exists():
            return
        events = list(self.events.get())
        placed = min(at_ms for at_ms, paid in events if not paid)
        self.decided.update((placed,))
        self.events.clear()
        if not any(paid and placed <= at_ms <= placed + WITHIN_MS for at_ms, paid in events):
            yield pd.DataFrame({"order_id": [key[0]], "placed_ms": [placed]})


def job(orders: DataFrame) -> DataFrame:
    """Orders to remind of, decided on once the watermark is 30 minutes beyond the placing."""
    return _unpaid(orders, Reminders(WITHIN_MS))


def wrong(orders: DataFrame) -> DataFrame:
    """The same, with seconds where milliseconds are due."""
    return _unpaid(orders, Reminders(WITHIN_SECONDS))


def _unpaid(orders: DataFrame, processor: StatefulProcessor) -> DataFrame:
    events = orders.withWatermark("at", "10 minutes").select(
        "order_id", "at", F.unix_millis("at").alias("at_ms"), "paid"
    )
    unpaid = events.groupBy("order_id").transformWithStateInPandas(
        processor, "order_id bigint, placed_ms bigint", outputMode="append", timeMode="eventTime"
    )
    return unpaid.select("order_id", F.timestamp_millis("placed_ms").alias("placed_at"))
