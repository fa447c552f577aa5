"""The revenue of each store in each hour, counting a payment once although the terminal may send it again.

Two stateful steps in one query: deduplication, then windows. `wrong` waits one minute in place of ten for payments that
are under way: an hour is closed too early, and what comes in the nine minutes between is dropped.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def job(payments: DataFrame) -> DataFrame:
    """Revenue of store and hour, emitted ten minutes after the hour."""
    return _hours(payments.withWatermark("paid_at", "10 minutes"))


def wrong(payments: DataFrame) -> DataFrame:
    """The same, with a watermark that is too short."""
    return _hours(payments.withWatermark("paid_at", "1 minute"))


def _hours(payments: DataFrame) -> DataFrame:
    return (
        payments.dropDuplicates(["store", "payment_id", "paid_at", "amount"])
        .groupBy("store", F.window("paid_at", "1 hour").alias("hour"))
        .agg(F.sum("amount").alias("revenue"), F.count("*").alias("payments"))
        .select("store", "hour.start", "hour.end", "revenue", "payments")
    )
