"""The check of any job on Spark: what it finds, shrinks and says, and what it refuses."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from streamproof import (
    Input,
    session_windows,
)

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")


def sessions(clicks: DataFrame) -> DataFrame:
    return (
        clicks.withWatermark("at", "10 minutes")
        .groupBy("user", F.session_window("at", "30 minutes"))
        .agg(F.sum("amount").alias("total"))
        .select("user", "session_window", "total")
    )


def expected_sessions(delay: str = "10 minutes", gap: str = "30 minutes") -> Any:
    return session_windows(gap=gap, delay=delay, aggregates={"total": ("sum", "amount")})


def known(clicks: DataFrame) -> DataFrame:
    return clicks.where("user is not null")
