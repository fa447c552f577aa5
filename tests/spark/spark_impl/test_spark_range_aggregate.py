"""Range aggregates on Spark: the logic against the reference, and what a data engineer declares and gets."""

from __future__ import annotations

from typing import Any

import pytest
from logic_player import by_key, play_logic
from pyspark.sql import SparkSession
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.registration.registration import registered
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Accepted, Change, bag
from streamproof.reference.range_aggregate import meaning
from streamproof.spark_impl.range_aggregate import RangeLogic, range_aggregate

PROFILES = {name: registration.profiles for name, registration in registered().items()}

OPERATOR = "range_aggregate"


@pytest.mark.parametrize("name", PROFILES[OPERATOR])
def test_the_logic_emits_what_the_reference_emits(name: str) -> None:
    options = PROFILES[OPERATOR][name]
    definition: Any = operator_named(OPERATOR).declare(options)
    for history in draw_histories(HistorySettings(OPERATOR, options, SCHEDULE), 100, 11):
        emitted, _ = play_logic(RangeLogic(definition), history)
        assert by_key(emitted) == by_key([entry[1:] for entry in play(history).entries]), history


def test_with_a_retention_the_state_is_bounded_and_rows_that_are_taken_are_answered_in_full() -> None:
    options = {"preceding_ms": 10, "aggregate": "list"}
    definition: Any = operator_named(OPERATOR).declare(options)
    for history in draw_histories(HistorySettings(OPERATOR, options, SCHEDULE), 100, 12):
        logic = RangeLogic(definition)
        logic.retention_ms = 20
        emitted, state = play_logic(logic, history)
        for key, of_key in by_key(emitted).items():
            records = [record for record in history.records if record.key == key]
            taken = [
                Accepted(record, 0)
                for record, (_, output) in zip(records, of_key, strict=True)
                if isinstance(output, Change)
            ]
            assert bag(output for _, output in of_key) == meaning(definition, taken, 0)
        assert all(row[0] >= SCHEDULE[-1] - 45 for fields in state.values() for row in fields[0])


def test_a_row_sees_the_rows_before_it_that_have_arrived(spark: SparkSession) -> None:
    rows = [("de", "ann", 0, 1, 0), ("de", "ann", 20, 4, 1), ("de", "ann", 10, 2, 2), (None, "ann", 10, 2, 3)]
    events = spark.createDataFrame(rows, "country string, user string, time bigint, amount int, offset int")
    result = range_aggregate(
        events,
        key=["country", "user"],
        timestamp="time",
        preceding="10 ms",
        value="amount",
        order="offset",
        aggregate="average",
        report_dropped=True,
    )
    found = sorted((row["cause"], row["value"], row["reason"]) for row in result.toArrow().to_pylist())
    assert found == [(0, 1.0, None), (1, 4.0, None), (2, 1.5, None), (3, None, "null key")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preceding": "soon"}, "preceding is 'soon'"),
        ({"preceding": "-1 ms"}, "preceding_ms is -1"),
        ({"preceding": "1 ms", "aggregate": "median"}, "unknown aggregate 'median'"),
        ({"preceding": "1 ms", "aggregate": "sum"}, "value: sum needs a column"),
        ({"preceding": "1 ms", "aggregate": "average", "value": "name"}, "which has no average"),
        ({"preceding": "1 ms", "retention": "-1 ms"}, "can't be negative"),
    ],
)
def test_a_bad_declaration_is_refused(spark: SparkSession, options: dict[str, Any], message: str) -> None:
    events = spark.createDataFrame([], "key string, time bigint, name string")
    with pytest.raises(BadInput, match=message):
        range_aggregate(events, key="key", timestamp="time", **options)
