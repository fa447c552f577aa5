"""Values travel as they are: from columns of Arrow to MessagePack and back, by the declared types."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import types as T
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.runtime.codec import (
    EVERY_LEVEL,
    Anything,
    arrow_type,
    column_of,
    decoder,
    encode,
    listed,
    python_type,
    require_supported,
    spark_type,
)

INSTANT = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
INNER = T.StructType().add("t", T.TimestampType()).add("parts", T.ArrayType(T.MapType(T.DateType(), T.DoubleType())))
VALUES: dict[T.DataType, list[Any]] = {
    T.ByteType(): [-128, 127],
    T.ShortType(): [-(2**15), 0],
    T.IntegerType(): [2**31 - 1, None],
    T.LongType(): [-(2**63), 2**63 - 1, 1_700_000_000_000, None],
    T.FloatType(): [0.5, float("inf"), None],
    T.DoubleType(): [0.1, -0.0, 1e308, None],
    T.StringType(): ["", "ä|\n\0", None],
    T.BooleanType(): [True, False, None],
    T.BinaryType(): [b"", b"\xc0\xff", None],
    T.DateType(): [date(1969, 12, 31), date(9999, 12, 31), None],
    T.TimestampType(): [INSTANT, INSTANT + timedelta(days=20_000, microseconds=1), None],
    T.TimestampNTZType(): [INSTANT.replace(tzinfo=None), None],
    T.DecimalType(38, 18): [Decimal("0.000000000000000001"), Decimal(10) ** 19, None],
    T.ArrayType(T.DecimalType(4, 2)): [[Decimal("1.50"), None], [], None],
    T.ArrayType(T.StructType().add("d", T.DateType())): [[{"d": date(2020, 2, 29)}, None], [], None],
    T.MapType(T.StringType(), T.DateType()): [{"a": date(2020, 1, 1), "": None}, {}, None],
    T.MapType(T.IntegerType(), T.ArrayType(T.StringType())): [{1: ["x"], -1: None}, None],
    T.StructType().add("a", T.LongType()).add("inner", INNER): [
        {"a": 1, "inner": {"t": INSTANT, "parts": [{date(2020, 1, 1): 0.5}, None]}},
        {"a": None, "inner": None},
        None,
    ],
}


@pytest.mark.parametrize("wanted", VALUES, ids=T.DataType.simpleString)
@pytest.mark.parametrize("values", [[], [None], [[]], [None, []]], ids=repr)
def test_arrays_without_members_have_their_type(values: list[Any], wanted: T.DataType) -> None:
    column = column_of(values, T.ArrayType(wanted))
    assert column.to_pylist() == values
    assert column.type == arrow_type(T.ArrayType(wanted))


@pytest.mark.parametrize("wanted", VALUES, ids=T.DataType.simpleString)
def test_values_come_back_as_they_were(wanted: T.DataType) -> None:
    values = VALUES[wanted]
    column = column_of(values, wanted)
    assert column.type == arrow_type(wanted)
    read = listed(column, wanted)
    assert read == values
    (travelled,) = decoder(list[python_type(wanted)]).decode(encode((read,)))  # type: ignore[misc]
    assert travelled == read
    assert column_of(travelled, wanted).equals(column)


@pytest.mark.parametrize(
    "wanted", [kind for kind in VALUES if "struct" in kind.simpleString()], ids=T.DataType.simpleString
)
def test_a_struct_may_be_a_tuple(wanted: T.DataType) -> None:
    def as_tuples(value: Any) -> Any:
        return tuple(map(as_tuples, value.values())) if isinstance(value, dict) else value

    values = VALUES[wanted]
    if isinstance(wanted, T.StructType):
        positional = listed(column_of(values, wanted), wanted, EVERY_LEVEL)
        assert not any(isinstance(value, dict) for value in positional)
        (travelled,) = decoder(list[python_type(wanted)]).decode(encode((positional,)))  # type: ignore[misc]
        assert column_of(travelled, wanted).equals(column_of(values, wanted))
    else:
        flat = [None if value is None else [as_tuples(member) for member in value] for value in values]
        assert column_of(flat, wanted).equals(column_of(values, wanted))


def test_any_part_of_a_value_may_be_null_for_a_join_fills_with_nulls() -> None:
    strict = T.StructType().add("names", T.ArrayType(T.StringType(), containsNull=False), nullable=False)
    field = pa.field("names", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False)
    column = pa.array([{"names": ["a"]}, None], pa.struct([field]))
    assert listed(column, strict) == [{"names": ["a"]}, None]
    for wanted in (strict, T.ArrayType(strict, False), T.MapType(T.StringType(), strict, False)):
        assert "false" not in spark_type(wanted).json()
        assert column_of([None], wanted).type == arrow_type(wanted)


def test_timestamps_of_another_time_zone_are_the_same_instants() -> None:
    column = pa.array([INSTANT], pa.timestamp("us", "America/St_Johns"))
    assert listed(column, T.TimestampType()) == [INSTANT]


def test_a_value_of_any_type_is_a_binary_of_its_own() -> None:
    column = column_of([{"a": [1, None]}, None, "x"], Anything())
    assert column.type == pa.binary()
    (read,) = msgspec.msgpack.decode(encode((listed(column, Anything()),)))
    assert read == [{"a": [1, None]}, None, "x"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (T.DayTimeIntervalType(), "interval day to second"),
        (T.YearMonthIntervalType(), "interval year to month"),
        (T.VariantType(), "variant"),
        (T.NullType(), "void"),
        (T.ArrayType(T.VariantType()), "variant"),
        (T.StructType(), "a struct without fields"),
        (T.MapType(T.StringType(), T.NullType()), "void"),
        (T.MapType(T.StructType().add("a", "integer"), T.StringType()), "has keys that Python can't look up"),
        (T.StructType().add("a", "integer").add("a", "integer"), "are named 'a'"),
    ],
)
def test_a_type_that_cannot_travel_is_refused_by_name(kind: T.DataType, said: str) -> None:
    with pytest.raises(BadInput, match=f"^left value: .*{said}"):
        require_supported("left value", kind)


@pytest.mark.parametrize("wanted", VALUES, ids=T.DataType.simpleString)
def test_the_types_that_travel_are_accepted(wanted: T.DataType) -> None:
    require_supported("value", wanted)
