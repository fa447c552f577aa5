"""Rows of any table as Python values: whatever they came in, they are the same rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Row
from streamproof.properties.generators.columns.schemas import _of_ddl
from streamproof.properties.witnesses.job.rows import columns_of, flat, plain, rows_of, window_among
from streamproof.reference.core.errors import BadInput

NOON = datetime(2024, 7, 15, 12, 0, 0, 123_456, UTC)
NAIVE = NOON.replace(tzinfo=None)
ZONES = (UTC, ZoneInfo("America/St_Johns"), ZoneInfo("Asia/Tokyo"), timezone(timedelta(hours=-11, minutes=-30)))


@pytest.mark.parametrize("around", [lambda one: one, lambda one: [one], lambda one: {"a": {"b": (one, None)}}])
def test_a_time_is_one_of_utc_whatever_its_zone_and_one_without_a_zone_stays(around: Any) -> None:
    for zone in ZONES:
        for time in (NOON.astimezone(zone), pd.Timestamp(NOON.astimezone(zone))):
            assert repr(plain(around(time))) == repr(plain(around(NOON)))
    assert repr(plain(around(NAIVE))).count(repr(NAIVE)) == 1
    assert repr(NOON) in repr(plain(around(NOON)))


def test_numbers_of_numpy_are_python_s_and_other_values_stay() -> None:
    numbers = (np.int64(3), 3), (np.float32(0.5), 0.5), (np.bool_(True), True)
    assert [(type(found), found) for one, _ in numbers for found in (plain(one),)] == [
        (type(wanted), wanted) for _, wanted in numbers
    ]
    for value in (None, "a", b"a", 1.5, Decimal("1.0"), date(2024, 7, 15), timedelta(1)):
        assert plain(value) is value


ROWS = [{"user": "a", "at": NOON, "n": 1}, {"user": None, "at": None, "n": 2}]
TYPES = pa.schema([("user", pa.string()), ("at", pa.timestamp("us", "Asia/Tokyo")), ("n", pa.int64())])
TABLE = pa.Table.from_pylist(ROWS, TYPES)


@pytest.mark.parametrize(
    "table",
    [TABLE, TABLE.to_pandas(types_mapper=pd.ArrowDtype), ROWS, iter(ROWS), [Row(**row) for row in ROWS]],
    ids=["arrow", "pandas", "dicts", "an iterator", "rows"],
)
def test_any_table_has_the_same_rows(table: Any) -> None:
    assert [repr(row) for row in rows_of(table)] == [repr(row) for row in ROWS]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (None, "f: expected rows, and got None"),
        ("text", "f: expected rows, and got str"),
        ({"a": 1}, "f: expected rows, and got dict"),
        (3, "f: expected rows, and got int"),
        ([1], "f: a row is 1: return each row as a dict"),
        (pa.table([[1], [2]], names=["a", "a"]), "f: two columns are named 'a'"),
        (
            pa.table({"a": pa.array([2**62], pa.timestamp("s"))}),
            "f: the column 'a' has a time or date beyond the years",
        ),
    ],
)
def test_what_has_no_rows_is_refused_with_the_function_that_returned_it(table: Any, reason: str) -> None:
    with pytest.raises(BadInput, match=f"^{reason}"):
        rows_of(table, "f")


def test_a_table_without_columns_has_as_many_rows() -> None:
    assert rows_of(TABLE.select([])) == [{}, {}]


WINDOW = {"start": NOON, "end": NOON + timedelta(hours=1)}


@pytest.mark.parametrize(
    ("row", "known", "parts"),
    [
        ({"w": WINDOW, "n": 1}, (), ["n", "start", "end"]),
        ({"w": WINDOW, "n": 1}, ("w",), ["w", "n"]),
        ({"w": WINDOW, "start": 1}, (), ["w", "start"]),
        ({"w": WINDOW, "end": 1}, (), ["w", "end"]),
        ({"w": WINDOW, "window": WINDOW}, (), ["w", "start", "end"]),
        ({"session_window": WINDOW, "window": WINDOW}, (), ["window", "start", "end"]),
        ({"w": WINDOW, "v": WINDOW}, (), ["w", "v"]),
        ({"w": {**WINDOW, "more": 1}}, (), ["w"]),
        ({"w": {"start": 1, "end": NOON}}, (), ["w"]),
        ({"w": {"start": NOON}}, (), ["w"]),
        ({"w": None}, (), ["w"]),
    ],
)
def test_the_only_window_or_the_one_that_spark_names_stands_as_its_two_fields(
    row: dict[str, Any], known: tuple[str, ...], parts: list[str]
) -> None:
    assert [*flat([row], known)[0]] == parts
    # A row whose window is null has both fields.
    if "start" in parts and "start" not in row:
        window = next(name for name in row if name not in parts)
        missing = flat([row, {**row, window: None}], known)[1]
        assert (missing["start"], missing["end"]) == (None, None)


def test_no_window_is_named_among_none() -> None:
    assert window_among(["a"], []) is None
    assert window_among(["a", "w"], ["w"]) == "w"


def test_the_rows_of_a_frame_of_duckdb_are_those_of_its_arrow_table() -> None:
    class Relation:
        def to_arrow_table(self) -> pa.Table:
            return pa.table({"a": [1, None]})

    assert rows_of(Relation()) == [{"a": 1}, {"a": None}]


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        ("user string, n int", ["user", "n"]),
        ("user string, w struct<start: timestamp, end: timestamp>, n int", ["user", "start", "end", "n"]),
        ("w struct<start: timestamp_ntz, end: timestamp_ntz>", ["start", "end"]),
        ("w struct<start: int, end: int>", ["w"]),
        ("w struct<start: timestamp, end: int>", ["w"]),
        ("w struct<start: timestamp, end: timestamp, n: int>", ["w"]),
        ("a struct<start: timestamp, end: timestamp>, window struct<start: timestamp, end: timestamp>", None),
        ("start int, w struct<start: timestamp, end: timestamp>", ["start", "w"]),
    ],
)
def test_the_window_of_a_frame_counts_as_its_start_and_its_end(schema: str, columns: list[str] | None) -> None:
    kinds: Any = _of_ddl(schema)
    frame: Any = SimpleNamespace(schema=kinds, columns=kinds.names)
    assert columns_of(frame) == (columns or ["a", "start", "end"])
