"""The foreign-key join on Spark: what is declared, what each stage decides, and a join of a join's changelog."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.reference.core.clocks import make_clock
from streamproof.reference.core.records import Change, Record
from streamproof.reference.definitions.joins import ForeignKeyJoin
from streamproof.reference.foreign_key_join import Behaviour
from streamproof.spark_impl.foreign_key_join import foreign_key_join
from streamproof.spark_impl.inputs import table
from streamproof.spark_impl.runtime.inputs import JoinInput
from streamproof.spark_impl.runtime.logic import Arrived


def left(value: Any, foreign_key: str | None, timestamp: int = 0) -> Arrived:
    return Arrived(timestamp, [0, timestamp], [value, foreign_key])


ROWS = [
    # batch, input, key, value (or null), timestamp
    (0, "flights", "f1", {"tail": "p1", "to": "JFK"}, 1),
    (0, "planes", "p1", {"carrier": "AA", "seats": 100}, 2),
    (0, "carriers", "AA", {"name": "American"}, 3),
    (0, "flights", "f2", {"tail": "p1", "to": "LGA"}, 4),
    (1, "planes", "p1", {"carrier": "UA", "seats": 100}, 5),
    (1, "carriers", "UA", {"name": "United"}, 6),
    (1, "flights", "f2", {"tail": "p2", "to": "LGA"}, 7),
    (1, "flights", "f1", {"tail": "p1", "to": "BOS"}, 2),
    (2, "planes", "p2", {"carrier": "AA", "seats": 9}, 8),
    (2, "carriers", "AA", None, 9),
    (2, "flights", "f1", None, 10),
    (2, "carriers", "UA", {"name": "United"}, 11),
]


def composed() -> list[list[Change]]:
    """What the composed reference says, batch by batch; carriers are referred to by the plane's field."""
    first = Behaviour(ForeignKeyJoin("tail", "left"), make_clock("batch"))
    second = Behaviour(ForeignKeyJoin("carrier", "left"), make_clock("batch"))
    emitted: list[list[Change]] = [[], [], []]

    def on_left(change: Any) -> list[Any]:
        value = change.value and {"carrier": (change.value[1] or {}).get("carrier"), "flight": change.value}
        return second.arrive(Record("left", change.key, value, change.timestamp))

    for batch, name, key, value, timestamp in ROWS:
        if name == "carriers":
            emitted[batch] += second.arrive(Record("right", key, value, timestamp))  # type: ignore[arg-type]
            continue
        record = Record("left" if name == "flights" else "right", key, value, timestamp)
        for change in first.arrive(record):
            emitted[batch] += on_left(change)
    return emitted


def test_a_foreign_key_join_of_a_foreign_key_joins_changelog_is_the_composed_reference(spark: SparkSession) -> None:
    value = pa.struct([(name, pa.string()) for name in ("tail", "to", "carrier", "name")] + [("seats", pa.int32())])
    kinds = {"input": pa.string(), "key": pa.string(), "value": value, "time": pa.int64(), "offset": pa.int64()}
    batches = []
    for number in range(3):
        rows = [(*row[1:], index) for index, row in enumerate(ROWS) if row[0] == number]
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)]
        batches.append(pa.table(arrays, list(kinds)))

    def build(frame: DataFrame) -> DataFrame:
        def changes(name: str, *fields: str) -> JoinInput:
            held = F.when(F.col("value").isNotNull(), F.struct(*(f"value.{field}" for field in fields)))
            rows = frame.filter(F.col("input") == name).select("key", held.alias("value"), "time", "offset")
            return table(rows, timestamp="time", order="offset")

        flown = foreign_key_join(
            changes("flights", "tail", "to")._replace(key=F.col("key").alias("flight")),
            changes("planes", "carrier", "seats"),
            foreign_key=F.col("value.tail"),
            join="left",
        )
        return foreign_key_join(
            table(flown, key="flight", order="cause"),
            changes("carriers", "name"),
            foreign_key=F.col("value.right.carrier"),
            join="left",
        )

    output = run_stream(spark, batches, build)
    found: list[list[Change]] = [[], [], []]
    for number, written in output.batches:
        for row in sorted(written.to_pylist(), key=lambda row: (row["cause"], row["ordinal"])):
            value_emitted = row["value"] and [
                [row["value"]["left"]["left"], row["value"]["left"]["right"]],
                row["value"]["right"],
            ]
            found[number].append(Change(row["flight"], None, value_emitted, round(row["timestamp"].timestamp() * 1000)))
    expected = [
        [change._replace(value=change.value and [change.value[0]["flight"], change.value[1]]) for change in batch]
        for batch in composed()
    ]

    def by_key(batches: list[list[Change]]) -> list[list[Change]]:
        return [sorted(batch, key=lambda change: change.key or "") for batch in batches]

    assert by_key(found) == by_key(expected)
    assert sum(map(len, expected)) > 8
