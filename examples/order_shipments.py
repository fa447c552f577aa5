"""Orders with the shipment that left within two hours of the order, or with null if no shipment did.

Returned shipments don't count. `wrong` filters returned shipments after the outer join. Without a shipment `returned`
is null, so the filter drops exactly the orders that an outer join should keep.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def job(orders: DataFrame, shipments: DataFrame) -> DataFrame:
    """Return all orders, with their shipments."""
    return _joined(orders, shipments.where("NOT returned")).drop("returned")


def wrong(orders: DataFrame, shipments: DataFrame) -> DataFrame:
    """Return the orders with the filter on the null side of the outer join: the bug."""
    return _joined(orders, shipments).where("NOT returned").drop("returned")


def _joined(orders: DataFrame, shipments: DataFrame) -> DataFrame:
    ordered = orders.withWatermark("ordered_at", "10 minutes").alias("o")
    shipped = shipments.withWatermark("shipped_at", "20 minutes").alias("s")
    soon = F.expr("s.shipped_at BETWEEN o.ordered_at AND o.ordered_at + INTERVAL 2 HOURS")
    joined = ordered.join(shipped, (F.col("o.order_id") == F.col("s.order_id")) & soon, "left_outer")
    return joined.select("o.order_id", "ordered_at", "amount", "shipped_at", "carrier", "returned")
