"""Windowed tables on Spark: what a data engineer declares and gets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.inputs import stream, table
from streamproof.spark_impl.windowed_table import windowed_table


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
        ({"right": {}}, "with_ doesn't name its kind"),
        ({"right": {"value": None}, "with_": "table"}, "right: value: 'value' is not in the input"),
        ({"right": {"value": "nam"}, "with_": "table"}, "right: value: 'nam' is not in the input"),
        ({"right": {"key": "time"}, "with_": "table"}, "key: string on the events"),
        ({"right": {"order": "time"}, "with_": "table"}, "events: order: missing, but the other input has an order"),
        ({"right": {}, "with_": "table", "retention": "-1 ms"}, "can't be negative"),
        ({"retention": "1 day"}, "retention: this windowed table forgets a window"),
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
