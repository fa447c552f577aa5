"""The business day and fiscal quarter of each sale of a chain in New York, where a day ends at local midnight.

A Python function computes the quarter, because the fiscal year begins in February. `wrong` uses `to_date` of the
timestamp, the day in the session's time zone, and books evening sales on the next day.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

ZONE = "America/New_York"


def job(sales: DataFrame) -> DataFrame:
    """Return sales with their day in New York, in any time zone of the session."""
    local = F.convert_timezone(F.current_timezone(), F.lit(ZONE), F.col("sold_at").cast("timestamp_ntz"))
    return _booked(sales, F.to_date(local))


def wrong(sales: DataFrame) -> DataFrame:
    """Return sales with the day of the session's time zone: the bug."""
    return _booked(sales, F.to_date("sold_at"))


def _booked(sales: DataFrame, day: Column) -> DataFrame:
    @F.udf("string")
    def fiscal_quarter(day: date) -> str:
        year, month = (day.year, day.month - 1) if day.month > 1 else (day.year - 1, 12)
        return f"FY{year}-Q{(month + 2) // 3}"

    booked = sales.withColumn("day", day)
    return booked.select("sale_id", "till", "amount", "day", fiscal_quarter("day").alias("quarter"))
