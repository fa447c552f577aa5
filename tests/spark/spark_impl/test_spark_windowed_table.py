"""Windowed tables on Spark: the logic against the reference, and what a data engineer declares and gets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from logic_player import by_key, play_logic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.registration.registration import registered
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Record
from streamproof.spark_impl.inputs import stream, table
from streamproof.spark_impl.windowed_table import SIDES, WindowedLogic, windowed_table

PROFILES = {name: registration.profiles for name, registration in registered().items()}

OPERATOR = "windowed_table"
FURTHER: dict[str, dict[str, Any]] = {
    "inner, close": {"size_ms": 10, "step_ms": 5, "with": "windowed_table", "emit": "close", "grace_ms": 5},
    "left, close, shifted": {
        "size_ms": 10,
        "with": "windowed_table",
        "join": "left",
        "emit": "close",
        "shift_ms": -20,
    },
    "outer, close, shifted far": {
        "size_ms": 10,
        "with": "windowed_table",
        "join": "outer",
        "emit": "close",
        "shift_ms": 20,
    },
    "outer, shifted far": {"size_ms": 10, "with": "windowed_table", "join": "outer", "shift_ms": 30, "grace_ms": 20},
    "table looks up closed ones": {"size_ms": 10, "with": "table_lookup", "window_start": "start", "emit": "close"},
    "stream looks up closed ones": {"size_ms": 10, "with": "stream_lookup", "window_start": "start", "emit": "close"},
}
# In Spark the re-keying is a select behind the logic.
PROFILES_OF_LOGIC = {
    name: {option: value for option, value in options.items() if option != "to_stream"}
    for name, options in {**PROFILES[OPERATOR], **FURTHER}.items()
}


def play_windowed(logic: WindowedLogic, history: Any) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Play a history; values as the reference emits them."""
    table = logic.table

    def travelling(record: Record) -> Any:
        if record.input == "events" or table.with_ == "windowed_table" or record.value is None:
            return record.value
        window = table.looked_up_window(record.value) if table.looked_up else None
        return {"value": record.value, "start": window and window[0]}

    emitted, state = play_logic(logic, history, travelling, SIDES, SIDES)
    lists = [
        (batch, output._replace(value=[*output.value.values()]))
        if isinstance(output, Change) and table.with_ and output.value is not None
        else (batch, output)
        for batch, output in emitted
    ]
    return by_key(lists), state


@pytest.mark.parametrize("name", PROFILES_OF_LOGIC)
def test_the_logic_emits_what_the_reference_emits(name: str) -> None:
    options = PROFILES_OF_LOGIC[name]
    definition: Any = operator_named(OPERATOR).declare(options)
    for history in draw_histories(HistorySettings(OPERATOR, options, SCHEDULE), 100, 11):
        emitted, _ = play_windowed(WindowedLogic(definition), history)
        assert emitted == by_key([entry[1:] for entry in play(history).entries]), history


@pytest.mark.parametrize("name", [name for name, o in PROFILES_OF_LOGIC.items() if o.get("with", "")[:5] != "table"])
def test_a_window_is_forgotten_once_nothing_can_change_it(name: str) -> None:
    options = PROFILES_OF_LOGIC[name]
    definition: Any = operator_named(OPERATOR).declare(options)
    life = definition.size_ms + definition.grace_ms
    for history in draw_histories(HistorySettings(OPERATOR, options, SCHEDULE), 50, 12):
        logic = WindowedLogic(definition)
        logic.retention_ms = 10 if definition.with_ == "stream_lookup" else None
        _, state = play_windowed(logic, history)
        starts = [window[0] for fields in state.values() for side in fields[:2] for window in side]
        longest = life * 3 // 2 + abs(definition.shift_ms) + (logic.retention_ms or 0)
        assert all(start + longest >= SCHEDULE[-1] for start in starts)


def test_a_window_is_joined_with_a_table_whose_values_are_structs_and_outlive_a_batch(spark: SparkSession) -> None:
    def build(frame: DataFrame) -> DataFrame:
        return windowed_table(
            stream(frame.filter("side = 'events'"), timestamp="time", value="number", order="offset"),
            table(
                frame.filter("side = 'table'"),
                key=F.col("key").alias("land"),
                timestamp="time",
                value=F.struct("name", F.array("name").alias("names")),
                order="offset",
            ),
            size="10 ms",
            aggregate="sum",
            with_="table",
            to_stream="window_in_key",
        )

    batches: list[list[tuple[Any, ...]]] = [
        [("events", "de", 1, 0, 5, None), ("table", "de", 8, 1, None, "Germany")],
        [("events", "de", 2, 2, 6, None), ("events", "de", 12, 3, 7, None)],
    ]
    names = ["side", "key", "time", "offset", "number", "name"]
    tables = [pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]) for rows in batches]
    tables = [table.cast(tables[0].schema) for table in tables]
    output = run_stream(spark, tables, build)
    found = [row for _, table in output.batches for row in table.to_pylist()]
    germany = {"name": "Germany", "names": ["Germany"]}
    assert [(row["key"], row["value"], row["window"], row["cause"]) for row in found] == [
        ("de@0", {"left": 5, "right": None}, None, 0),
        ("de@0", {"left": 5, "right": germany}, None, 1),
        ("de@0", {"left": 11, "right": germany}, None, 2),
        ("de@10", {"left": 7, "right": germany}, None, 3),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "soon"}, "size is 'soon'"),
        ({"with_": "table"}, "there is no right input"),
        ({"right": {}}, "with_ doesn't give its kind"),
        ({"right": {"value": None}, "with_": "table"}, "right: value: 'value' is not in the input"),
        ({"right": {"value": "nam"}, "with_": "table"}, "right: value: 'nam' is not in the input"),
        ({"right": {"key": "time"}, "with_": "table"}, "key: string on the events"),
        ({"right": {"order": "time"}, "with_": "table"}, "events: order: there is none, but the other input has one"),
        ({"right": {}, "with_": "table", "retention": "-1 ms"}, "can't be negative"),
        ({"retention": "1 day"}, "retention: here a window is forgotten"),
        (
            {"right": {}, "with_": "stream_lookup", "window_start": "name"},
            "right: window_start: the column 'name' is string",
        ),
        ({"events": {"key": "land"}}, "events: key: 'land' is not in the input"),
        ({"events": {"key": "time"}, "to_stream": "window_in_key"}, "to_stream: the key is bigint"),
        ({"events": {"key": ["key", "name"]}, "to_stream": "window_in_key"}, "a window goes into a single string"),
        ({"aggregate": "sum"}, "events: value: 'value' is not in the input"),
    ],
)
def test_a_bad_declaration_is_refused(spark: SparkSession, options: dict[str, Any], message: str) -> None:
    frame = spark.createDataFrame([], "key string, time bigint, name string")
    given = {"size": "10 ms", **options, "events": table(frame, timestamp="time", **options.get("events", {}))}
    if "right" in options:
        given["right"] = table(frame, **{"timestamp": "time", "value": "name", **options["right"]})
    with pytest.raises(BadInput, match=message):
        windowed_table(**given)
