"""Values of any column type, in sets of about four values, so that equal values occur in a small history.

The sum of 64 numbers never overflows, and fractions are dyadic, so sums are exact in any order. The sets leave out NaN
and negative zero, because systems compare these values differently. The module `constants` draws values around a job's
constants.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context
from itertools import cycle
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

ColumnValues: TypeAlias = tuple[Any, ...]
"""The values of a column in one history."""

EXAMPLES = 30
"""The number of values to draw from a user's strategy."""
TERMS = 64
"""The number of values of a numeric type that add up without overflow."""

TEXTS: Sequence[ColumnValues] = (
    ("x", "y", "z", ""),
    ("a", "A", "a ", " a"),
    # Two texts that look the same, and two characters that UTF-16 sorts differently from code points.
    ("é", "e\u0301", "\uff61", "\U0001f600"),
    ("0", "null", "1.0", "-3"),
    ('"', "|,\t", "\\", "\n"),
)
TEXT_KEYS: Sequence[ColumnValues] = (
    ("a", "b", "c"),
    ("a", "A", "a "),
    ("é", "e\u0301", "\U0001f600"),
    ("1", "01", "1.0"),
    ("", " ", "00001|a"),
)
FLOATS: Sequence[ColumnValues] = ((1.0, 2.0, 3.5, 0.25), (0.0, 0.5, -1.25, -3.0), (0.0, 1.0, -1.0, 2.0))
NUMBER_KEYS: Sequence[ColumnValues] = ((1, 2, 3), (0, -1, 1), (10, 7, 100))


def unsupported(kind: pa.DataType) -> pa.DataType | None:
    """Return the type itself if it is unsupported, otherwise the first unsupported type nested in it; None if there is
    none.
    """
    nested = (
        [kind.key_type, kind.item_type]
        if pa.types.is_map(kind)
        else [kind.field(index).type for index in range(kind.num_fields)]
    )
    if nested or pa.types.is_struct(kind):
        return next((found for inner in nested if (found := unsupported(inner)) is not None), None)
    return None if _plain_kinds(kind, datetime(2024, 1, 1, tzinfo=UTC)) else kind


def kinds(kind: pa.DataType, around: datetime) -> list[ColumnValues]:
    """Return sets of values of a type, the simplest set first; empty if the type isn't supported.

    Args:
        kind: The type.
        around: The time near which the dates and timestamps are.
    """
    if pa.types.is_map(kind):
        # `_maps` leaves out null keys, because Spark refuses them.
        pairs = zip(kinds(kind.key_type, around), cycle(kinds(kind.item_type, around)), strict=False)
        return [_maps(keys, items) for keys, items in pairs]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_lists(of, kind.value_field.nullable) for of in kinds(kind.value_type, around)]
    if pa.types.is_struct(kind):
        return _structs(list(kind), around)
    return _plain_kinds(kind, around)


def key_kinds(kind: pa.DataType, around: datetime) -> list[ColumnValues]:
    """Return sets of keys of a type, the simplest set first, each with three different keys."""
    if pa.types.is_string(kind):
        return list(TEXT_KEYS)
    if pa.types.is_integer(kind):
        return list(NUMBER_KEYS)
    return [distinct[:3] for of in kinds(kind, around) if (distinct := _distinct(of))]


def _distinct(values: ColumnValues) -> ColumnValues:
    return tuple(value for index, value in enumerate(values) if value is not None and value not in values[:index])


def _plain_kinds(kind: pa.DataType, around: datetime) -> list[ColumnValues]:
    of_type = next((found for is_of, found in _PLAIN if is_of(kind)), ())
    return of_type(kind, around) if callable(of_type) else list(of_type)


def _integers(kind: pa.DataType, around: datetime) -> list[ColumnValues]:
    large: int = 2 ** (kind.bit_width - 1) // TERMS
    # Draw numbers that faulty code changes: doubles aren't exact above 2^53, and an int overflows above 2^31.
    beyond = [number for number in (2**53 + 1, 2**31, -(2**31) - 1, large, -large) if abs(number) <= large]
    found = [(1, 2, 3, 5), (0, 1, -1, 2), (0, -1, -2, -3), tuple(beyond[:4])]
    return [tuple(number for number in numbers if abs(number) <= large) or (0, 1) for numbers in found]


def _decimals(kind: pa.DataType, around: datetime) -> list[ColumnValues]:
    # The sum of decimals has ten more digits in Spark, at most 38, so only sums of long decimals can overflow.
    unit, large = 10**kind.scale, (10**kind.precision - 1) // (1 if kind.precision <= 28 else TERMS)
    found = [
        (unit, 2 * unit, unit // 2, 5 * unit + unit // 4),
        (0, 1, -1, 2),
        (0, unit, -unit, 1),
        (large, -large, unit, 0),
    ]
    context = Context(prec=38)
    fitting = [[number for number in dict.fromkeys(numbers) if abs(number) <= large] for numbers in found]
    return [tuple(context.scaleb(number, -kind.scale) for number in numbers) for numbers in fitting if numbers]


def _dates(kind: pa.DataType, around: datetime) -> list[ColumnValues]:
    day = around.date()
    return [(day, day + timedelta(1), day - timedelta(1)), (date(1970, 1, 1), date(2024, 2, 29), date(1969, 12, 31))]


def _timestamps(kind: pa.DataType, around: datetime) -> list[ColumnValues]:
    start = around if kind.tz else around.replace(tzinfo=None)
    return [
        (start, start + timedelta(milliseconds=1), start + timedelta(hours=1), start - timedelta(days=1)),
        (start, start + timedelta(microseconds=1), start + timedelta(minutes=10), start - timedelta(minutes=10)),
    ]


_PLAIN: Sequence[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, datetime], list[ColumnValues]] | Sequence[ColumnValues]]
] = (
    (pa.types.is_signed_integer, _integers),
    (pa.types.is_float32, FLOATS),
    (pa.types.is_float64, FLOATS),
    (pa.types.is_decimal128, _decimals),
    (pa.types.is_string, TEXTS),
    (pa.types.is_boolean, ((True, False),)),
    (pa.types.is_binary, ((b"a", b"b", b""), (b"\x00", b"\xff", b"\x00\x00"))),
    (pa.types.is_date32, _dates),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_duration, ((timedelta(0), timedelta(hours=1), timedelta(minutes=-10), timedelta(milliseconds=1)),)),
    (pa.types.is_time64, ((time(0), time(12, 30), time(23, 59, 59, 999_999)),)),
    (pa.types.is_null, ((None,),)),
)
"""The sets of values of each type that isn't nested, or a function that creates the sets from the type and a time."""


def _lists(of: ColumnValues, nullable: bool) -> ColumnValues:
    first, second = of[0], of[1 % len(of)]
    return ([first], [first, second], [], [second, None if nullable else first, first])


def _maps(keys: ColumnValues, items: ColumnValues) -> ColumnValues:
    keys = () if isinstance(keys[0], (list, dict)) else _distinct(keys)
    if not keys:
        return ({},)
    first, second = keys[0], keys[1 % len(keys)]
    return ({first: items[0]}, {first: items[0], second: items[1 % len(items)]}, {}, {first: items[-1]})


def _structs(fields: Sequence[pa.Field], around: datetime) -> list[ColumnValues]:
    of = [kinds(field.type, around) for field in fields]
    if not all(of):
        return []

    def one(which: int, number: int) -> dict[str, Any]:
        made = {}
        for shift, (field, found) in enumerate(zip(fields, of, strict=True)):
            values = found[which % len(found)]
            # The last field, if nullable, is null in the fourth value.
            null = field.nullable and number == 3 and shift == len(fields) - 1
            made[field.name] = None if null else values[(number + shift) % len(values)]
        return made

    return [tuple(one(which, number) for number in range(4)) for which in range(max(map(len, of), default=1))]


def drawn_kind(generator: random.Random, found: Sequence[ColumnValues]) -> ColumnValues:
    """Draw one of several sets of values: the first set with probability 1/2."""
    return found[0] if generator.random() < 0.5 else generator.choice(found)


def examples_of(strategy: st.SearchStrategy[Any], number: int) -> list[Any]:
    """Draw values from a Hypothesis strategy, the simplest first; the same `number` draws the same values."""
    found: list[Any] = []

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(value: Any) -> None:
        found.append(value)

    draw()
    return found


def plain_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of an Arrow array as rows contain them: maps as dicts, timestamps with a zone in UTC."""
    convert = _conversion(array.type)
    values: list[Any] = array.to_pylist()
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _conversion(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Return the function that converts a non-null Arrow value to a row's value; None if no conversion is needed."""
    if pa.types.is_timestamp(kind) and kind.tz:
        return lambda value: value.astimezone(UTC)
    if pa.types.is_map(kind):
        of_key, of_item = _of_any(kind.key_type), _of_any(kind.item_type)
        return lambda value: {of_key(key): of_item(item) for key, item in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        of_member = _of_any(kind.value_type)
        return lambda value: [of_member(member) for member in value]
    if pa.types.is_struct(kind):
        of_fields = {field.name: _of_any(field.type) for field in kind}
        return lambda value: {name: of_fields[name](member) for name, member in value.items()}
    return None


def _of_any(kind: pa.DataType) -> Callable[[Any], Any]:
    convert = _conversion(kind)
    return lambda value: value if value is None or convert is None else convert(value)
