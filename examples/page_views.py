"""The number of pages that a user views in one session, which ends after 20 minutes without a view.

A user belongs to a tenant, so the key has both columns. `wrong` groups by the browser's `session_id` in place of the
user. So `wrong` counts two sessions for a user with two browsers, and one session for two users who share a browser.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def job(views: DataFrame) -> DataFrame:
    """Return the sessions of each tenant and user."""
    return (
        views.withWatermark("at", "5 minutes")
        .groupBy("tenant", "user_id", F.session_window("at", "20 minutes").alias("session"))
        .agg(F.count("*").alias("views"), F.max("duration_ms").alias("longest_ms"))
        .select("tenant", "user_id", "session.start", "session.end", "views", "longest_ms")
    )


def wrong(views: DataFrame) -> DataFrame:
    """Return the sessions aggregated by the session's id in place of the user: the bug."""
    return (
        views.withWatermark("at", "5 minutes")
        .groupBy("tenant", "session_id", F.session_window("at", "20 minutes").alias("session"))
        .agg(F.first("user_id").alias("user_id"), F.count("*").alias("views"), F.max("duration_ms").alias("longest_ms"))
        .select("tenant", "user_id", "session.start", "session.end", "views", "longest_ms")
    )
