"""Values of each type that a column can have."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.generators.columns.schemas import arrow_schema
from streamproof.properties.generators.columns.values import ColumnValues, key_kinds, kinds, plain_values, unsupported

AROUND = datetime(2024, 3, 31, 0, 30, tzinfo=UTC)
TYPES = (
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(1,0)",
    "decimal(3,3)",
    "decimal(10,2)",
    "decimal(38,18)",
    "string",
    "binary",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "void",
    "array<int>",
    "array<array<string>>",
    "struct<a: int, b: struct<c: string>>",
    "map<string, bigint>",
    "map<int, array<struct<a: timestamp>>>",
)


def type_of(text: str) -> pa.DataType:
    return arrow_schema(f"v {text}").field("v").type


@pytest.mark.parametrize("text", TYPES)
def test_every_value_fits_its_column_and_comes_back_the_same(text: str) -> None:
    kind = type_of(text)
    assert unsupported(kind) is None
    found = kinds(kind, AROUND)
    assert found
    for values in found:
        assert values
        assert plain_values(pa.array(values, kind)) == list(values)


@pytest.mark.parametrize("text", [text for text in TYPES if text != "void"])
def test_a_column_has_values_that_differ(text: str) -> None:
    assert any(values[0] != other for values in kinds(type_of(text), AROUND) for other in values)


@pytest.mark.parametrize("text", ["smallint", "int", "bigint", "float", "double", "decimal(10,2)"])
def test_forty_values_add_up_exactly_in_any_order(text: str) -> None:
    kind = type_of(text)
    for values in kinds(kind, AROUND):
        largest = max(values, key=abs)
        total = sum([largest] * 40, start=type(largest)(0))
        if pa.types.is_decimal(kind):
            kind = pa.decimal128(20, 2)  # Spark's sum has ten digits more
        assert plain_values(pa.array([total], kind)) == [total]
        assert sum(values) == sum(reversed(values))


# What jobs take for each other: nothing and zero, signs, letters' cases, orders, and what one more step loses.
EDGES: dict[str, list[Any]] = {
    "tinyint": [0, -1, 2],
    "int": [0, -3, 5, 2**25, -(2**25)],
    "bigint": [0, -3, 5, 2**53 + 1, 2**31, -(2**31) - 1, 2**57],
    "double": [0.0, 0.25, -1.25, 2.0],
    "decimal(10,2)": [Decimal(one) for one in ("0.00", "0.01", "-0.01", "5.25", "99999999.99", "-99999999.99")],
    "string": [
        "",
        "x",
        "a",
        "A",
        "a ",
        " a",
        "é",
        "e\u0301",
        "\U0001f600",
        "null",
        "1.0",
        "-3",
        '"',
        "|,\t",
        "\\",
        "\n",
    ],
    "binary": [b"", b"a", b"\x00", b"\x00\x00", b"\xff"],
    "boolean": [True, False],
    "date": [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), AROUND.date(), date(2024, 4, 1)],
    "timestamp": [AROUND + timedelta(**by) for by in ({"microseconds": 1}, {"milliseconds": 1}, {"days": -1})],
    "array<int>": [[], [1], [1, 2], [2, None, 1], [0, -1]],
    "map<string, int>": [{}, {"x": 1}, {"x": 5}, {"x": 1, "y": 2}, {"a": 0, "A": 1}],
    "struct<a: int, b: string>": [{"a": 1, "b": "y"}, {"a": 5, "b": None}, {"a": 1, "b": "a "}],
}
KEYS = {
    "string": ["", " ", "a", "A", "a ", "1", "01", "1.0", "é", "e\u0301", "00001|a"],
    "bigint": [0, -1, 1, 7, 10, 100],
    "date": [date(1969, 12, 31), AROUND.date()],
    "boolean": [True, False],
}


@pytest.mark.parametrize(
    ("made", "text", "edges"),
    [(kinds, *of) for of in EDGES.items()] + [(key_kinds, *of) for of in KEYS.items()],
)
def test_the_values_that_jobs_take_for_others_are_among_those_of_their_type(
    made: Callable[..., list[ColumnValues]], text: str, edges: list[Any]
) -> None:
    found = [repr(value) for values in made(type_of(text), AROUND) for value in values]
    assert [edge for edge in edges if repr(edge) not in found] == []


@pytest.mark.parametrize("text", ["string", "int", "bigint", "date", "timestamp", "double"])
def test_keys_of_a_kind_differ_and_none_is_null(text: str) -> None:
    for keys in key_kinds(type_of(text), AROUND):
        assert None not in keys
        assert len(set(keys)) == len(keys) >= 2


def test_decimals_have_the_scale_of_their_type() -> None:
    values = {value for of in kinds(type_of("decimal(10,2)"), AROUND) for value in of}
    assert {Decimal("0.01"), Decimal("-0.01"), Decimal("5.25")} <= values
    assert all(value.as_tuple().exponent == -2 for value in values)


def test_a_type_without_values_is_named_wherever_it_is() -> None:
    half = pa.float16()
    assert unsupported(pa.list_(pa.struct([("a", half)]))) == half
    assert unsupported(pa.map_(pa.string(), half)) == half
    assert unsupported(pa.struct([])) is None


@pytest.mark.parametrize("list_of", [pa.list_, pa.large_list])
def test_members_of_lists_are_in_utc(list_of: Any) -> None:
    at = datetime(2024, 7, 1, 12, tzinfo=UTC)
    (values,) = plain_values(pa.array([[at, None]], list_of(pa.timestamp("us", "Europe/Berlin"))))
    assert values == [at, None]
    assert values[0].tzinfo is UTC


def test_maps_are_dicts_and_zones_are_utc() -> None:
    kind = pa.map_(pa.string(), pa.timestamp("us", "Europe/Berlin"))
    (value,) = plain_values(pa.array([[("a", AROUND)]], kind))
    assert value == {"a": AROUND}
    assert value["a"].tzinfo is UTC
