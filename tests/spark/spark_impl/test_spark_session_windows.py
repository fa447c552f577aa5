"""The Spark operator itself: what a data engineer declares and gets. The laws are checked in `test_check.py`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof import Input, JobReport, Violated, reference_of
from streamproof.properties.operators.session_windows import MERGED
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.properties.witnesses.spark.witness import SPARK, NativeSparkWitness
from streamproof.reference.core.errors import BadInput, StreamproofError
from streamproof.reference.core.history import parse_history
from streamproof.reference.definitions.aggregates import Aggregate
from streamproof.spark_impl.session_windows import native_session_windows, session_windows


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> Iterator[DataFrame]:
    """Two users in two countries, as a batch DataFrame."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        rows = [
            ("de", "ann", 0, 1.5, 0),
            ("de", "ann", 240_000, 2.5, 1),
            ("de", "bob", 0, 4.0, 2),
            ("fr", "ann", 300_000, 8.0, 3),
            ("de", "ann", 1_000_000, 16.0, 4),
            (None, "ann", 0, 32.0, 5),
        ]
        names = ["country", "user", "timestamp", "amount", "offset", "tags"]
        tags = pa.array([["x"]] * len(rows))
        pq.write_table(pa.table([*map(pa.array, zip(*rows, strict=True)), tags], names=names), path)
        yield spark.read.parquet(str(path))


def windows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The folded rows: key, start and end in seconds, value."""
    table: dict[Any, Any] = {}
    for row in frame.toArrow().to_pylist():
        if row["window"] is None:
            continue
        bounds = tuple(int(row["window"][name].timestamp()) for name in ("start", "end"))
        where = (row["country"], row["user"], bounds)
        if row["change"] == "tombstone":
            del table[where]
        else:
            table[where] = row["value"]
    return sorted((*where, value) for where, value in table.items())


EXPECTED = [
    ("de", "ann", (0, 240), 4.0),
    ("de", "ann", (1000, 1000), 16.0),
    ("de", "bob", (0, 0), 4.0),
    ("fr", "ann", (300, 300), 8.0),
]


def test_a_batch_frame_with_a_composite_key_gives_the_sessions_of_all_its_rows(events: DataFrame) -> None:
    result = session_windows(
        events,
        key=["country", "user"],
        timestamp="timestamp",
        order="offset",
        gap="5 minutes",
        value="amount",
        aggregate="sum",
    )
    assert windows_of(result) == EXPECTED


def test_columns_may_be_expressions_and_durations_timedeltas(events: DataFrame) -> None:
    result = session_windows(
        events,
        key=[F.upper("country").alias("country"), F.col("user")],
        timestamp=F.timestamp_millis("timestamp").alias("time"),
        gap=timedelta(minutes=5),
        grace=timedelta(hours=1),
        value=F.col("amount") * 2,
        aggregate="sum",
        emit="close",
        state_groups=3,
    )
    assert windows_of(result) == [(row[0].upper(), *row[1:3], row[3] * 2) for row in EXPECTED]


def test_a_custom_aggregate_needs_no_more_than_its_type(events: DataFrame) -> None:
    longest = Aggregate(
        "largest and how many",
        initializer=lambda: [0.0, 0.0],
        aggregator=lambda key, value, seen: [max(seen[0], value), seen[1] + 1],
        merger=lambda key, one, two: [max(one[0], two[0]), one[1] + two[1]],
    )
    result = session_windows(
        events,
        key=["country", "user"],
        timestamp="timestamp",
        gap="5 minutes",
        value="amount",
        aggregate=longest,
        value_type="array<double>",
    )
    assert windows_of(result)[0] == ("de", "ann", (0, 240), [2.5, 2.0])


def test_rows_that_are_dropped_are_emitted_with_their_reason_and_cause(events: DataFrame) -> None:
    result = session_windows(
        events, key=["country", "user"], timestamp="timestamp", order="offset", gap="5 minutes", report_dropped=True
    )
    dropped = [row for row in result.toArrow().to_pylist() if row["change"] == "dropped"]
    assert [(row["reason"], row["cause"]) for row in dropped] == [("null key", 5)]


def test_spark_s_own_operator_gives_the_same_sessions_of_a_batch_frame(events: DataFrame) -> None:
    result = native_session_windows(
        events, key=["country", "user"], timestamp="timestamp", gap="5 minutes", value="amount", aggregate="sum"
    )
    assert windows_of(result) == EXPECTED


def test_the_changelog_has_the_documented_columns(events: DataFrame) -> None:
    result = session_windows(events, key="user", timestamp="timestamp", order="offset", gap="5 minutes")
    assert result.schema.simpleString() == (
        "struct<user:string,window:struct<start:timestamp,end:timestamp>,value:bigint,timestamp:timestamp,"
        "change:string,reason:string,cause:bigint,ordinal:int,"
        "place:struct<phase:int,order:bigint,at:bigint,key_0:string,step:int>>"
    )


DECLARATIONS: list[tuple[dict[str, Any], str]] = [
    ({"gap": "0 ms"}, "gap_ms is 0: a session's gap must be positive"),
    ({"gap": "-5 minutes"}, "gap_ms is -300000: a session's gap must be positive"),
    ({"gap": "five minutes"}, "gap is 'five minutes', which isn't a duration: write it as"),
    ({"gap": "5"}, "gap is '5', without a unit: write it as"),
    ({"gap": 300_000}, "gap is 300000, which isn't a duration: write it as"),
    ({"gap": "1 ns"}, "gap is '1 ns', which isn't a whole number of milliseconds"),
    ({"grace": "-1 ms"}, "grace can't be negative"),
    ({"retention": "1 minute"}, "retention_ms is 60000, less than gap"),
    ({"key": "nobody"}, "key: 'nobody' is not in the input, which has the columns country, user, timestamp"),
    ({"key": []}, "key: no column named"),
    ({"key": ["user", "user"]}, "key: 'user' is named twice"),
    ({"key": "tags"}, "key: the column 'tags' is array<string>, which can't be a key"),
    ({"timestamp": "user"}, "timestamp: the column 'user' is string: it must be a timestamp, or a bigint"),
    ({"timestamp": "when"}, "timestamp: 'when' is not in the input"),
    ({"order": "tags"}, "order: the column 'tags' is array<string>, which has no order"),
    ({"aggregate": "sum"}, "value: sum needs a column to aggregate"),
    ({"aggregate": "sum", "value": "user"}, "value: the column 'user' is string, which can't be summed"),
    ({"aggregate": "median", "value": "amount"}, "unknown aggregate 'median': use one of count, sum"),
    ({"emit": "final"}, "emit is 'final': use update or close"),
    ({"late": "never"}, "late is 'never': use merged or own"),
    ({"state_groups": 0}, "state_groups is 0: give a positive number"),
]


@pytest.mark.parametrize(("wrong", "message"), DECLARATIONS, ids=[message[:40] for _, message in DECLARATIONS])
def test_a_wrong_declaration_is_refused_where_it_is_made(
    events: DataFrame, wrong: dict[str, Any], message: str
) -> None:
    right: dict[str, Any] = {"key": "user", "timestamp": "timestamp", "gap": "5 minutes"}
    with pytest.raises(BadInput) as refusal:
        session_windows(events, **{**right, **wrong})
    assert message in str(refusal.value)


def test_a_custom_aggregate_without_a_type_is_refused(events: DataFrame) -> None:
    custom = Aggregate("custom", int, lambda key, value, total: total, lambda key, one, two: one)
    with pytest.raises(BadInput, match="the type of the aggregate 'custom' isn't known"):
        session_windows(events, key="user", timestamp="timestamp", gap="1 s", value="amount", aggregate=custom)


def test_a_null_value_that_an_aggregate_can_t_take_fails_the_query_with_its_reason(spark: SparkSession) -> None:
    batch = pa.table({"key": ["a"], "value": pa.array([None], pa.int64()), "timestamp": [0]})

    def build(frame: DataFrame) -> DataFrame:
        return session_windows(frame, key="key", timestamp="timestamp", value="value", aggregate="sum", gap="1 s")

    with pytest.raises(StreamproofError, match="sum can't take the value None: it needs a number"):
        run_stream(spark, [batch], build)


MANY = """{"operator": "session_windows", "options": %s, "clock": "batch"}
{"input": "events", "key": "a", "value": 1, "timestamp": 20}
{"input": "events", "key": null, "value": 1, "timestamp": 900}
{"input": "events", "key": "b", "value": 1, "timestamp": 30}
{"cut": true}
{"input": "events", "key": "a", "value": 2, "timestamp": 6}
{"input": "events", "key": "a", "value": 3, "timestamp": 16}
{"cut": true}
{"cut": true}
{"input": "events", "key": "a", "value": 4, "timestamp": 19}
{"heartbeat": 500}
"""


def test_a_history_with_a_null_key_runs_alone_and_the_null_key_moves_no_clock(spark: SparkSession) -> None:
    history = parse_history(MANY % '{"gap_ms": 10, "grace_ms": 15, "aggregate": "list"}')
    lines = SPARK.evaluate([history])[0].to_lines()
    assert {"history": "history", "batch": 0, "key": None, "dropped": "null key"} in lines
    emitted = [(line["batch"], line["window"], line["value"]) for line in lines if line["key"] == "a"]
    assert emitted == [
        (0, [20, 20], [1]),
        (1, [6, 6], [2]),
        (1, [6, 6], None),
        (1, [20, 20], None),
        (1, [6, 20], [2, 1, 3]),
        (3, [6, 20], None),
        (3, [6, 20], [2, 1, 3, 4]),
    ]


OWN = '{"operator": "session_windows", "options": {"gap_ms": 10, "emit": "close", "late": "own"}, "clock": "batch"}'
RESCUED = """
{"heartbeat": 40}
{"cut": true}
{"input": "events", "key": "a", "value": 1, "timestamp": 29}
{"input": "events", "key": "a", "value": 1, "timestamp": 30}
{"cut": true}
{"heartbeat": 100}
"""


@pytest.mark.parametrize(("settings", "window"), [({}, [30, 30]), (MERGED, [29, 30])])
def test_a_late_row_is_rescued_when_spark_merges_sessions_before_the_shuffle(
    spark: SparkSession, settings: dict[str, str], window: list[int]
) -> None:
    # A named divergence of Spark's: with the partial merge, lateness is tested on what the partition has merged.
    history = parse_history(OWN + RESCUED)
    outcome = NativeSparkWitness(settings).evaluate([history])[0]
    assert [line["window"] for line in outcome.to_lines()] == [window]


@pytest.mark.usefixtures("unshrunk")
def test_a_job_of_this_operator_has_its_reference_and_not_one_that_is_1_ms_off(
    spark: SparkSession, check_job: Callable[..., JobReport]
) -> None:
    def job(events: DataFrame) -> DataFrame:
        return session_windows(events, key="key", timestamp="time", gap="10 ms", grace="5 ms")

    events = Input("key string, time timestamp", key="key")
    report = check_job(job, events, expect=reference_of("session_windows", gap_ms=10, grace_ms=5), histories=60)
    assert (report.comparing, [*report.laws]) == ("batches", ["the reference of session_windows"])
    with pytest.raises(Violated):
        check_job(job, events, expect=reference_of("session_windows", gap_ms=10, grace_ms=6), histories=60)
