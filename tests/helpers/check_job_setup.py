"""What tests of checks of jobs share: an input, a job of sessions, and which invariants are asked."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from streamproof import Input, session_windows
from streamproof.properties.laws.all import invariants as laws_of_jobs

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")


def but_for(*asked: str) -> list[str]:
    """Return all invariants but these: each takes a query, and a sink dies often."""
    laws = [law.of_jobs for law in laws_of_jobs()]
    assert {*asked} <= {*laws}
    return [law for law in laws if law not in asked]


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
