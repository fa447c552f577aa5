"""Orders with the name and region of their customer, looked up in a table that is read once.

Guests order without an account, and new customers are in the table the day after. `wrong` joins `inner`, the default:
their orders are lost.
"""

from __future__ import annotations

from pyspark.sql import DataFrame


def job(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """All orders, those of unknown customers without name and region."""
    return orders.join(customers, "customer_id", "left").select(
        "order_id", "ordered_at", "customer_id", "amount", "express", "name", "region"
    )


def wrong(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """The same, joined inner in place of left."""
    return orders.join(customers, "customer_id").select(
        "order_id", "ordered_at", "customer_id", "amount", "express", "name", "region"
    )
