"""How five failures read, whole: what was expected, what came, of which rows, in which batch.

Write the files anew with `STREAMPROOF_GOLDEN=write pytest …`, and read what has changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import pytest
from paths import GOLDEN
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof import Input, StreamproofError, check_job, session_windows, sql, stream_join, windows

FAILURES = GOLDEN / "failures"
CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
VIEWS = Input("who string, seen timestamp", key="who", name="views")
FIRST_LINES = 20


def history(*lines: str, inputs: str = '"clicks": "user string, at timestamp, amount bigint"') -> str:
    return "\n".join([f'{{"job": "golden", "inputs": {{{inputs}}}}}', *lines]) + "\n"


def click(user: str, at: str, amount: str = "1") -> str:
    row = f'{{"user": "{user}", "at": "2026-03-01T{at}Z", "amount": {amount}}}'
    return f'{{"input": "clicks", "row": {row}}}'


CUT = '{"cut": true}'


def short_watermark(clicks: DataFrame) -> DataFrame:
    sessions = clicks.withWatermark("at", "1 minute").groupBy("user", F.session_window("at", "30 minutes"))
    return sessions.agg(F.count("*").alias("clicks"))


def inner_for_left(clicks: DataFrame, views: DataFrame) -> DataFrame:
    left, right = clicks.withWatermark("at", "1 minute"), views.withWatermark("seen", "1 minute")
    within = F.expr("user = who AND seen >= at AND seen <= at + INTERVAL 5 MINUTES")
    return left.join(right, within, "inner")


def late_rows_counted(clicks: DataFrame) -> DataFrame:
    hours = clicks.withWatermark("at", "1 hour").groupBy("user", F.window("at", "10 minutes"))
    return hours.agg(F.sum("amount").alias("total"))


def another_key(clicks: DataFrame) -> DataFrame:
    days = clicks.withWatermark("at", "1 hour").groupBy("amount", F.window("at", "1 day"))
    return days.agg(F.count("*").alias("clicks"), F.max("user").alias("user")).select("user", "clicks")


def half(amount: int) -> float:
    return 1 / amount


def shares(clicks: DataFrame) -> DataFrame:
    return clicks.select("user", F.udf(half, "double")("amount").alias("share"))


def check_short_watermark() -> None:
    given = history(click("a", "10:00:00"), CUT, click("b", "10:35:00"), CUT, click("a", "10:20:00"))
    rule = session_windows("30 minutes", "10 minutes", {"clicks": "count"})
    check_job(short_watermark, CLICKS, expect=rule, examples=[given])


def check_inner_for_left() -> None:
    inputs = '"clicks": "user string, at timestamp, amount bigint", "views": "who string, seen timestamp"'
    view = '{"input": "views", "row": {"who": "b", "seen": "2026-03-01T11:00:00Z"}}'
    given = history(click("a", "10:00:00"), CUT, click("b", "11:00:00"), view, inputs=inputs)
    rule = stream_join("left", (["user"], ["who"]), "0 seconds", "5 minutes", "1 minute")
    check_job(inner_for_left, CLICKS, VIEWS, expect=rule, examples=[given])


def check_late_rows_counted() -> None:
    given = history(click("a", "10:00:00"), CUT, click("a", "10:40:00"), CUT, click("a", "10:05:00", "7"))
    rule = windows("10 minutes", delay="5 minutes", aggregates={"total": ("sum", "amount")})
    check_job(late_rows_counted, CLICKS, expect=rule, mode="update", examples=[given])


def check_another_key() -> None:
    given = history(click("a", "10:00:00", "1"), click("b", "10:30:00", "1"), '{"heartbeat": "2026-03-03T10:00:00Z"}')
    check_job(
        another_key, CLICKS, expect=sql("SELECT user, count(*) AS clicks FROM clicks GROUP BY user"), examples=[given]
    )


def check_a_row_that_fails() -> None:
    given = history(click("a", "10:00:00", "2"), CUT, click("b", "10:30:00", "0"))
    check_job(shares, CLICKS, expect=sql("SELECT user, 1.0 / amount AS share FROM clicks"), examples=[given])


@pytest.mark.parametrize(
    ("check", "in_first_lines"),
    [
        (check_short_watermark, ["violated: in batch ", "≠ only emitted", "'a'", "What arrives"]),
        (check_inner_for_left, ["violated: in batch 1", "≠ only expected", "'a'", "What arrives"]),
        (check_late_rows_counted, ["violated: in batch 2", "≠ only emitted", "What arrives", "7"]),
        (check_another_key, ["violated: at the end", "≠ only expected", "≠ only emitted", "What arrives"]),
        (check_a_row_that_fails, ["ZeroDivisionError", "in half (", "`return 1 / amount`", "'b'"]),
    ],
    ids=lambda value: getattr(value, "__name__", "").removeprefix("check_"),
)
def test_a_failure_reads_so(spark: SparkSession, check: Callable[[], Any], in_first_lines: list[str]) -> None:
    with pytest.raises((AssertionError, StreamproofError)) as found:
        check()
    text = re.sub(r"\(\S+?\.py:\d+\)", "(FILE:LINE)", str(found.value))
    text = re.sub(r"; streamproof .*", "; VERSIONS", re.sub(r"the log is \S+\)", "the log is FILE)", text)) + "\n"
    file = FAILURES / f"{check.__name__.removeprefix('check_')}.txt"
    if os.environ.get("STREAMPROOF_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
    first = "\n".join(text.splitlines()[:FIRST_LINES])
    for part in in_first_lines:
        assert part.replace("in half (", "in half (FILE") in first
