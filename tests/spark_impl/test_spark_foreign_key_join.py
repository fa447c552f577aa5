"""The foreign-key join on Spark: what is declared, what each stage decides, and a join of a join's changelog."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.properties.operators.foreign_key_join import REGISTRATION
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.reference.core.clocks import make_clock
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.records import Change, Record
from streamproof.reference.definitions.joins import ForeignKeyJoin
from streamproof.reference.foreign_key_join import Behaviour
from streamproof.spark_impl.foreign_key_join import foreign_key_join
from streamproof.spark_impl.foreign_key_stages import (
    ForeignKeyStages,
    Instruction,
    LeftState,
    Response,
    Subscribed,
    foreign_key_stages,
)
from streamproof.spark_impl.inputs import table
from streamproof.spark_impl.runtime.inputs import JoinInput
from streamproof.spark_impl.runtime.logic import Arrived, Emitted

ASK_NULL, ASK_VALUE = (
    Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE,
    Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE,
)
FORGET, DELETE = Instruction.DELETE_KEY_NO_PROPAGATE, Instruction.DELETE_KEY_AND_PROPAGATE


def stages(**options: Any) -> ForeignKeyStages:
    return foreign_key_stages(ForeignKeyJoin("artist", **options))


def left(value: Any, foreign_key: str | None, timestamp: int = 0) -> Arrived:
    return Arrived(timestamp, [0, timestamp], [value, foreign_key])


def asked(emitted: list[Emitted]) -> list[tuple[Any, ...]]:
    """To whom, what, with or without a hash, and the row that is carried along."""
    return [
        (to, instruction, digest is not None, row if carries else "-")
        for to, instruction, digest, carries, _, row in (one.value for one in emitted)
    ]


def subscription(
    instruction: Instruction, digest: bytes | None, timestamp: int = 0, carries: bool = False, left: Any = None
) -> Arrived:
    value = [timestamp, None, str(instruction), digest, carries, True, left, "l"]
    return Arrived(timestamp, [0, timestamp, 0], value, "messages")


def response(digest: bytes | None, right: Any, timestamp: int = 0, **row: Any) -> Arrived:
    value = [timestamp, None, *Response(True, digest, right)._replace(**row)]
    return Arrived(timestamp, [0, timestamp, 0, 0], value, "messages")


@pytest.mark.parametrize(
    ("before", "value", "after", "options", "expected"),
    [
        (None, "v", "r1", {}, [("r1", ASK_VALUE, True, "v")]),
        ("r1", "v", "r1", {}, [("r1", ASK_VALUE, True, "v")]),
        ("r1", "v", "r1", {"protocol": "answer"}, [("r1", ASK_NULL, True, "v")]),
        (None, "v", "r1", {"join": "left"}, [("r1", ASK_NULL, True, "v")]),
        ("r1", "v", "r2", {}, [("r1", FORGET, False, "-"), ("r2", ASK_NULL, True, "v")]),
        ("r1", None, "r1", {}, [("r1", DELETE, False, None)]),
        ("r1", "v", None, {}, [("r1", DELETE, True, "v")]),
        (None, "v", None, {}, [(None, None, True, "v")]),
    ],
)
def test_a_left_change_asks_as_the_protocol_says(
    before: str | None, value: Any, after: str | None, options: dict[str, Any], expected: list[Any]
) -> None:
    state = [] if before is None else [(before,)]
    assert asked(stages(**options).sender.take(("l",), state, left(value, after), 0)) == expected
    assert state == ([] if value is None or after is None else [(after,)])


def test_a_right_key_answers_with_its_row_and_the_later_timestamp() -> None:
    right = stages().right
    state = right.empty()
    assert right.take(("r",), state, Arrived(50, [], "x", "right"), 0) == []
    emitted = right.take(("r",), state, subscription(ASK_VALUE, b"1", 20, carries=True, left="v"), 0)
    assert [(Response(*one.value[1:]), one.timestamp) for one in emitted] == [
        (Response(True, b"1", "x", True, True, True, "v"), 50),
    ]
    assert right.unpack(right.pack(state) or ()).lefts == {("l",): Subscribed(b"1")}


def test_a_right_key_without_a_row_answers_only_if_it_must() -> None:
    right = stages().right
    state = right.empty()
    assert right.take(("r",), state, subscription(ASK_VALUE, b"1"), 0) == []
    assert len(right.take(("r",), state, subscription(ASK_NULL, b"1"), 0)) == 1
    assert right.take(("r",), state, subscription(FORGET, None), 0) == []
    assert right.pack(state) is None


def test_a_right_change_goes_to_all_subscribers_in_the_order_of_their_keys() -> None:
    right = stages().right
    state = right.unpack((None, None, [("b", b"2"), ("a", b"1")]))
    emitted = right.take(("r",), state, Arrived(7, [], "x", "right"), 0)
    assert [(one.value[0], one.value[2], one.value[3]) for one in emitted] == [("a", b"1", "x"), ("b", b"2", "x")]


def test_a_right_row_without_a_key_is_dropped() -> None:
    right = stages().right
    assert right.take((None,), right.empty(), Arrived(7, [], "x", "right"), 0)[0].reason == "null key"


def test_the_row_comes_before_the_response_that_its_change_has_asked_for() -> None:
    receiver = stages().receiver
    state = LeftState("old", b"0", True, True)
    emitted = receiver.take(("l",), state, response(b"1", "x", carries=True, refers=True, left="v"), 0)
    assert [one.value for one in emitted] == [{"left": "v", "right": "x"}]
    assert receiver.pack(state) == ("v", b"1", True, True)


def test_a_row_that_asked_and_was_not_answered_is_silent() -> None:
    receiver = stages(join="left").receiver
    silent = response(b"1", None, answers=False, carries=True, left="v")
    assert receiver.take(("l",), LeftState("old", b"0", True, True), silent, 0) == []


def test_a_response_to_an_older_value_is_stale() -> None:
    receiver = stages().receiver
    state = LeftState("v", b"new", True)
    assert receiver.take(("l",), state, response(b"old", "x"), 0) == []
    emitted = receiver.take(("l",), state, response(b"new", "x"), 0)
    assert [one.value for one in emitted] == [{"left": "v", "right": "x"}]


def test_a_row_that_asks_no_one_is_emitted_only_where_every_change_is_answered() -> None:
    alone = response(b"1", None, answers=False, carries=True, asked=False, left="v")
    for options, expected in (
        ({}, []),
        ({"join": "left"}, []),
        ({"join": "left", "null_foreign_key": "keep"}, [{"left": "v", "right": None}]),
    ):
        receiver = stages(**options).receiver
        assert [one.value for one in receiver.take(("l",), receiver.empty(), alone, 0)] == expected


def test_a_fused_join_refuses_manual_delivery() -> None:
    with pytest.raises(BadInput, match="delivers at once"):
        REGISTRATION.spark.build(ForeignKeyJoin("artist", delivery="manual"), None, None, None)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def songs(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], "song string, time bigint, n bigint, title string, artist string, year int")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"foreign_key": "year"}, "foreign_key: it is int, but the key of the right side is string: cast one of them"),
        (
            {"foreign_key": ["artist", "year"]},
            "foreign_key: it is string, int, but the key of the right side is string",
        ),
        ({"foreign_key": "band"}, "foreign_key: 'band' is not in the input"),
        ({"join": "outer"}, "no outer join by foreign key"),
        ({"null_foreign_key": "drop"}, "null_foreign_key is 'drop'"),
        ({"protocol": "none"}, "protocol is 'none'"),
        ({"right": {"value": "name"}}, "right: value: 'name' is not in the input"),
        (
            {"left": {"order": "n"}, "right": {"order": "song"}},
            "order: bigint on the left and string on the right clash",
        ),
    ],
)
def test_what_cannot_be_declared_is_refused(songs: DataFrame, options: dict[str, Any], message: str) -> None:
    left = table(songs, **{"key": "song", "timestamp": "time", "value": "title", **options.get("left", {})})
    right = table(songs, **{"key": "artist", "timestamp": "time", "value": "title", **options.get("right", {})})
    with pytest.raises(BadInput, match=message):
        foreign_key_join(**{"foreign_key": "artist", **options, "left": left, "right": right})


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


@pytest.mark.exhaustive
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


def test_equal_floating_point_keys_find_each_other(spark: SparkSession) -> None:
    left = spark.createDataFrame([("zero", 1, -0.0), ("none", 1, float("nan"))], "key string, time bigint, to double")
    right = spark.createDataFrame([(0.0, 0, "x"), (float("nan"), 0, "y")], "key double, time bigint, name string")
    emitted = foreign_key_join(
        table(left, timestamp="time", value="key"),
        table(right, timestamp="time", value="name"),
        foreign_key="to",
    ).collect()
    assert sorted(tuple(row["value"]) for row in emitted) == [("none", "y"), ("zero", "x")]
