"""Orders with the name and region of their customer, looked up in a table that is read once.

Guests order without an account, and new customers are added to the table on the next day. `wrong` uses the default
join, `inner`, and loses the orders of guests and new customers.
"""

from __future__ import annotations

from pyspark.sql import DataFrame


def job(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """Return all orders, with null as the name and region of unknown customers."""
    return orders.join(customers, "customer_id", "left").select(
        "order_id", "ordered_at", "customer_id", "amount", "express", "name", "region"
    )


def wrong(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """Return the orders joined by an inner join in place of a left join: the bug."""
    return orders.join(customers, "customer_id").select(
        "order_id", "ordered_at", "customer_id", "amount", "express", "name", "region"
    )
