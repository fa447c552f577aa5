"""Samza's window operator on Spark: the logic against the reference, and what a data engineer declares and gets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from logic_player import by_key, play_logic
from pyspark.sql import SparkSession
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.registration.registration import registered
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import play
from streamproof.spark_impl.window_aggregate import WindowLogic, window_aggregate

PROFILES = {name: registration.profiles for name, registration in registered().items()}

OPERATOR = "window_aggregate"
FURTHER: dict[str, dict[str, Any]] = {
    "full, hopping, late update": {
        "size": 10,
        "step": 4,
        "storage": "full",
        "late": "update",
        "retention_ms": 25,
        "early": {"every_ms": 7},
    },
    "session, early by time": {
        "type": "session",
        "size": 8,
        "early": {"every_ms": 5},
        "late": "update",
        "retention_ms": 10,
        "aggregate": "average",
    },
    "session, full, late update": {
        "type": "session",
        "size": 8,
        "storage": "full",
        "early": {"every_tuples": 2},
        "late": "update",
        "retention_ms": 30,
    },
    "by tuple, kept": {"unit": "tuple", "size": 3, "step": 1, "retention_ms": 20, "early": {"every_ms": 9}},
    "retained, but not for late rows": {"size": 10, "step": 5, "retention_ms": 30, "aggregate": "min"},
    "session, retained": {"type": "session", "size": 6, "retention_ms": 30, "aggregate": "list"},
}


@pytest.mark.parametrize("name", [*PROFILES[OPERATOR], *FURTHER])
def test_the_logic_emits_what_the_reference_emits(name: str) -> None:
    options = {**PROFILES[OPERATOR], **FURTHER}[name]
    definition: Any = operator_named(OPERATOR).declare(options)
    for history in draw_histories(HistorySettings(OPERATOR, options, SCHEDULE), 100, 11):
        emitted, _ = play_logic(WindowLogic(definition), history)
        assert by_key(emitted) == by_key([entry[1:] for entry in play(history).entries]), history


@pytest.mark.parametrize("name", [name for name in PROFILES[OPERATOR] if "tuple" not in name])
def test_a_window_by_time_is_forgotten_once_it_is_past_its_retention(name: str) -> None:
    options = PROFILES[OPERATOR][name]
    definition: Any = operator_named(OPERATOR).declare(options)
    longest = 2 * definition.size + 1 + definition.retention_ms * 3 // 2
    for history in draw_histories(HistorySettings(OPERATOR, options, SCHEDULE), 50, 12):
        _, state = play_logic(WindowLogic(definition), history)
        windows = [window for fields in state.values() for window in fields[1]]
        assert all(window[1] + longest >= SCHEDULE[-1] for window in windows)


def test_the_windows_of_a_batch_frame_with_a_composite_key_are_complete(spark: SparkSession) -> None:
    rows = [("de", "ann", 0, 1), ("de", "ann", 60_000, 4), ("de", "ann", 90_000, 3), (None, "ann", 10, 2)]
    events = spark.createDataFrame(rows, "country string, user string, time bigint, amount int")
    result = window_aggregate(
        events,
        key=["country", "user"],
        timestamp="time",
        size="1 minute",
        step=timedelta(seconds=60),
        value="amount",
        aggregate="average",
    )
    found = [
        (row["country"], row["user"], int(row["window"]["start"].timestamp()), row["value"])
        for row in result.toArrow().to_pylist()
    ]
    assert found == [("de", "ann", 0, 1.0), ("de", "ann", 60, 3.5)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 10}, "size is 10, which is no duration"),
        ({"size": "10 ms", "unit": "tuple"}, "the unit is tuple: give a number of rows"),
        ({"size": "10 ms", "early": 0}, "every_tuples 0"),
        ({"size": "10 ms", "early": "now"}, "early is 'now'"),
        ({"size": "10 ms", "storage": "full"}, "value: storage full emits"),
        ({"size": "10 ms", "aggregate": "sum", "value": "name"}, "can't be summed"),
        ({"size": "10 ms", "value": "nam"}, "'nam' is not in the input"),
    ],
)
def test_a_bad_declaration_is_refused(spark: SparkSession, options: dict[str, Any], message: str) -> None:
    events = spark.createDataFrame([], "key string, time bigint, name string")
    with pytest.raises(BadInput, match=message):
        window_aggregate(events, key="key", timestamp="time", **options)
