"""Spark's own operators on Spark, against the reference of its rules: few of each here, 10,000 by `spark_rules`."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.agreement import spark_rules as rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORIES = 300
KEPT = (
    ("session_windows(gap=10 seconds, delay=4 seconds)", "append", "default"),
    ("windows(size=10 seconds, slide=4 seconds, delay=2 seconds)", "update", "available_now"),
    ("drop_duplicates(columns=key, delay=4 seconds, within_watermark=True)", "append", "available_now"),
    ("static_join(on=sub, join=left)", "append", "available_now"),
    ("stream_join(join=full, on=key+sub, before=1500 microseconds, after=0 seconds", "append", "available_now"),
    ("stream_join(join=left, on=key+sub, before=10 seconds, after=3 seconds", "append", "available_now"),
    ("stream_join(join=left, on=key, before=3 seconds", "append", "available_now"),  # and windows above it
)


def is_case(case: Any, name: str, mode: str) -> bool:
    return bool(case.name.startswith(name) and case.mode == mode)


@pytest.mark.parametrize(("name", "mode", "trigger"), KEPT, ids=lambda value: value.partition("(")[0])
def test_spark_emits_what_its_rules_say(spark: SparkSession, name: str, mode: str, trigger: str) -> None:
    (case,) = [case for case in rules.CASES if is_case(case, name, mode)]
    emitted, differing = rules.differences(case, trigger, HISTORIES, seed=3)
    assert emitted > HISTORIES / 3
    assert differing == []


@pytest.mark.weekly("a minute and more for each ten rules, which change seldom: CI asks seven of them")
def test_spark_emits_what_all_its_rules_say_under_each_trigger(spark: SparkSession) -> None:
    wrong = []
    for case, trigger in product(rules.CASES, rules.TRIGGERS):
        emitted, differing = rules.differences(case, trigger, HISTORIES, seed=4)
        assert emitted
        if differing:
            wrong.append((case.name, case.mode, trigger))
    assert wrong == []


def test_a_job_that_is_off_by_a_millisecond_is_seen(spark: SparkSession) -> None:
    right = next(case for case in rules.CASES if case.name == "windows(size=10 seconds, delay=4 seconds)")
    off = rules.windows_case("10 seconds", None, None, "3999 milliseconds", "append")
    _, differing = rules.differences(replace(right, job=off.job), "available_now", HISTORIES, seed=3)
    assert differing


def test_the_histories_lie_at_the_edges() -> None:
    (case,) = [case for case in rules.CASES if case.name.startswith("session_windows(gap=1 second")]
    histories = rules.draw(case, 2_000, Random(1))
    times = [sorted(arrival.row["at"] for arrival in history.arrivals) for history in histories]
    apart = {(two - one).total_seconds() for of_one in times for one, two in pairwise(of_one)}
    assert {0.0, 0.999, 0.999999, 1.0, 1.000001, 1.001} <= apart
