"""Values of each type that a column can have."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from streamproof.properties.generators.columns.schemas import arrow_schema
from streamproof.properties.generators.columns.values import key_kinds, kinds, plain_values, unsupported

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


def test_maps_are_dicts_and_zones_are_utc() -> None:
    kind = pa.map_(pa.string(), pa.timestamp("us", "Europe/Berlin"))
    (value,) = plain_values(pa.array([[("a", AROUND)]], kind))
    assert value == {"a": AROUND}
    assert value["a"].tzinfo is UTC
