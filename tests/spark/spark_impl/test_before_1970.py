"""Event times before 1970, which Spark's watermark never reaches."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from streamproof.spark_impl.inputs import stream
from streamproof.spark_impl.session_windows import session_windows
from streamproof.spark_impl.stream_stream_join import stream_stream_join
from streamproof.spark_impl.table_aggregate import table_aggregate
from streamproof.spark_impl.window_aggregate import window_aggregate

LONG_AGO = -(10**12)
"""In 1938 (ms)."""
CALLED: dict[str, Any] = {"key": "key", "timestamp": "at", "order": "at", "report_dropped": True}


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    rows = [("a", LONG_AGO, 1), ("a", LONG_AGO + 5, 2), ("a", LONG_AGO + 50, 4)]
    return spark.createDataFrame(rows, "key string, at bigint, value bigint")


def emitted(changelog: DataFrame) -> list[tuple[Any, ...]]:
    """Return each change's value, and its timestamp in ms since the first event."""
    rows = changelog.selectExpr("value", f"unix_millis(timestamp) - ({LONG_AGO}) AS at", "reason", "ordinal").collect()
    return [(row.value, row.at, row.reason) for row in sorted(rows, key=lambda row: row.ordinal)]


def test_no_session_of_a_batch_frame_is_late_however_long_ago(events: DataFrame) -> None:
    closed = session_windows(events, **CALLED, gap="10 ms", value="value", aggregate="sum", emit="close")
    assert emitted(closed) == [(3, 5, None), (4, 50, None)]


def test_no_record_of_a_batch_frame_is_late_for_a_join_however_long_ago(events: DataFrame) -> None:
    left, right = (stream(events.filter(f"value {few}"), timestamp="at", order="at") for few in ("< 4", "= 2"))
    rows = stream_stream_join(left, right, before="0 ms", after="1 ms", join="left", emit="close", report_dropped=True)
    assert emitted(rows) == [((2, 2), 5, None), ((1, None), 0, None)]


def test_a_group_is_stamped_by_its_rows_not_by_1970(events: DataFrame) -> None:
    groups = table_aggregate(events.selectExpr("*", "'x' AS team"), **CALLED, group_by="team")
    assert emitted(groups) == [(1, 0, None), (1, 5, None), (1, 50, None)]


def test_a_window_of_tuples_is_stamped_by_its_rows_not_by_1970(events: DataFrame) -> None:
    windows = window_aggregate(events, **CALLED, size=2, unit="tuple", value="value", aggregate="sum")
    assert emitted(windows) == [(3, 5, None)]


def test_a_row_before_1970_is_in_no_window_by_time(events: DataFrame) -> None:
    windows = window_aggregate(events, **CALLED, size="10 ms", value="value", aggregate="sum")
    assert emitted(windows) == [(None, at, "late") for at in (0, 5, 50)]
