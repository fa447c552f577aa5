"""`conforms` on real Spark, over declarations of minutes, and over one that is off by a few ms."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from streamproof import Inconclusive, assert_holds
from streamproof.properties.checking import confirm
from streamproof.spark_impl.session_windows import session_windows

HALF_AN_HOUR = {"gap_ms": 1_799_999, "grace_ms": 600_000, "emit": "close"}


@pytest.fixture(autouse=True)
def without_shrinking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "shrink", lambda history, fails, rounds, at_once: history)


def sessions(gap: str) -> Callable[[DataFrame], DataFrame]:
    def job(events: DataFrame) -> DataFrame:
        return session_windows(
            events, key="key", timestamp="timestamp", order="order", gap=gap, grace="600000 ms", emit="close"
        )

    return job


def test_sessions_of_half_an_hour_conform(spark: SparkSession, conforms: Callable[..., None]) -> None:
    conforms(sessions("1799999 ms"), HALF_AN_HOUR)


def test_sessions_of_half_a_minute_do_not(spark: SparkSession, conforms: Callable[..., None], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="of 300 histories differ from the reference") as found:
        conforms(sessions("30 s"), HALF_AN_HOUR, folder=tmp_path)
    assert not isinstance(found.value, Inconclusive)
    (saved,) = tmp_path.rglob("history.jsonl")
    with pytest.raises(AssertionError, match="1 of 1 saved counterexamples still differ"):
        conforms(sessions("30 s"), HALF_AN_HOUR, folder=tmp_path)
    with pytest.raises(AssertionError, match="violated"):
        assert_holds("changelog", saved.read_text(), subject="job", job=sessions("30 s"))
    (pasted,) = tmp_path.rglob("test_*.py")
    for gap, holds in (("30 s", False), ("1799999 ms", True)):
        names: dict[str, Any] = {}
        code = pasted.read_text().replace("from your_module import my_job", "")
        exec(compile(code, pasted.name, "exec"), names)
        names["my_job"] = sessions(gap)
        with contextlib.nullcontext() if holds else pytest.raises(AssertionError, match="violated"):
            names[pasted.stem]()
