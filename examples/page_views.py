"""How many pages the users of each tenant view in one go: sessions that end after 20 minutes without a view.

A user belongs to a tenant, so both columns are the key. `wrong` groups by the browser's `session_id` in place of the
user: a user with two browsers is counted as two sessions, and two users who share a browser as one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def job(views: DataFrame) -> DataFrame:
    """Sessions of tenant and user."""
    return (
        views.withWatermark("at", "5 minutes")
        .groupBy("tenant", "user_id", F.session_window("at", "20 minutes").alias("session"))
        .agg(F.count("*").alias("views"), F.max("duration_ms").alias("longest_ms"))
        .select("tenant", "user_id", "session.start", "session.end", "views", "longest_ms")
    )


def wrong(views: DataFrame) -> DataFrame:
    """The same, aggregated by the session's id in place of the user."""
    return (
        views.withWatermark("at", "5 minutes")
        .groupBy("tenant", "session_id", F.session_window("at", "20 minutes").alias("session"))
        .agg(F.first("user_id").alias("user_id"), F.count("*").alias("views"), F.max("duration_ms").alias("longest_ms"))
        .select("tenant", "user_id", "session.start", "session.end", "views", "longest_ms")
    )
