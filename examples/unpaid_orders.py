"""Orders that nobody paid within 30 minutes of placing them, for the reminders of the shop.

The state keeps an order's events until a timeout 30 minutes after the order, and then decides whether the order was
paid in time. `wrong` adds 30 * 60 to a time in milliseconds, so two seconds after the order it decides that nobody
paid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

WITHIN_MS = 30 * 60 * 1000
WITHIN_SECONDS = 30 * 60


def job(orders: DataFrame) -> DataFrame:
    """Return the unpaid orders, once the watermark is 30 minutes past the order's time."""
    return _unpaid(orders, WITHIN_MS)


def wrong(orders: DataFrame) -> DataFrame:
    """Return the unpaid orders with seconds in place of milliseconds: the bug."""
    return _unpaid(orders, WITHIN_SECONDS)


def _unpaid(orders: DataFrame, wait_ms: int) -> DataFrame:
    def decide(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], order: GroupState) -> Iterator[pd.DataFrame]:
        decided, kept = order.get if order.exists else (False, "[]")
        if decided:
            return
        events: list[tuple[int, bool]] = json.loads(kept)
        if not order.hasTimedOut:
            for frame in frames:
                events += [(int(at_us), bool(paid)) for at_us, paid in zip(frame["at_us"], frame["paid"], strict=True)]
        order.update((False, json.dumps(events)))
        placed_us = min((at_us for at_us, paid in events if not paid), default=None)
        if placed_us is None:
            return
        decided_ms = -(-placed_us // 1000) + wait_ms
        if decided_ms > order.getCurrentWatermarkMs():
            # 1 ms earlier, because a timeout fires only once the watermark is past its time.
            order.setTimeoutTimestamp(decided_ms - 1)
            return
        order.update((True, "[]"))
        if not any(paid and placed_us <= at_us <= placed_us + WITHIN_MS * 1000 for at_us, paid in events):
            yield pd.DataFrame({"order_id": [key[0]], "placed_us": [placed_us]})

    events = orders.withWatermark("at", "10 minutes").select(
        "order_id", "at", F.unix_micros("at").alias("at_us"), "paid"
    )
    unpaid = events.groupBy("order_id").applyInPandasWithState(
        decide,
        "order_id bigint, placed_us bigint",
        "decided boolean, events string",
        "append",
        GroupStateTimeout.EventTimeTimeout,
    )
    return unpaid.select("order_id", F.timestamp_micros("placed_us").alias("placed_at"))
