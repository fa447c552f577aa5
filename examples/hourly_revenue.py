"""The revenue of each store in each hour, which counts a payment once even if the terminal sends the payment again.

The query has two stateful operators: a deduplication, then windows. `wrong` waits one minute in place of ten for late
payments. Spark then closes an hour too early, and drops payments that are one to ten minutes late.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def job(payments: DataFrame) -> DataFrame:
    """Return the revenue of each store and hour, emitted ten minutes after the hour."""
    return _hours(payments.withWatermark("paid_at", "10 minutes"))


def wrong(payments: DataFrame) -> DataFrame:
    """Return the revenue with a watermark delay that is too short: the bug."""
    return _hours(payments.withWatermark("paid_at", "1 minute"))


def _hours(payments: DataFrame) -> DataFrame:
    return (
        payments.dropDuplicates(["store", "payment_id", "paid_at", "amount"])
        .groupBy("store", F.window("paid_at", "1 hour").alias("hour"))
        .agg(F.sum("amount").alias("revenue"), F.count("*").alias("payments"))
        .select("store", "hour.start", "hour.end", "revenue", "payments")
    )
