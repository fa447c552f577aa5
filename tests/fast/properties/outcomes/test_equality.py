"""When values count as equal."""

from __future__ import annotations

import itertools
import math
import time
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamproof.properties.generators.columns.forms.rows import microseconds
from streamproof.properties.outcomes.equality import EXACT, TWELVE_DIGITS, Equality, typed
from streamproof.reference.core.errors import BadInput

NOON = datetime(2024, 7, 15, 12, tzinfo=UTC)
EDGE = 100_000_000_000.5, math.nextafter(100_000_000_000.5, math.inf)
"""Doubles beside each other, of which rounding to 12 digits makes numbers that are 1 apart."""
NAN, INFINITY = math.nan, math.inf


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, Decimal("1.00")),
        (0.5, Decimal("0.5")),
        (0.0, -0.0),
        (Decimal("-0.00"), 0),
        (NAN, math.copysign(NAN, -1)),
        (NAN, Decimal("NaN")),
        (INFINITY, Decimal("Infinity")),
        (b"a", bytearray(b"a")),
        (NOON, NOON.replace(tzinfo=None)),
        (NOON, NOON.astimezone(timezone(timedelta(hours=2)))),
        ({"a": 1, "b": [NAN]}, {"b": (NAN,), "a": 1.0}),
        ({1: "x", 2: "y"}, {2: "y", 1: "x"}),
        (None, None),
        ([], ()),
    ],
)
def test_values_are_equal_by_value_whatever_their_types(one: Any, other: Any) -> None:
    assert EXACT.same(one, other)
    assert TWELVE_DIGITS.same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (10**17, 10**17 + 1),
        (2**53, 2**53 + 1),
        (Decimal("12345678901234.56"), Decimal("12345678901234.57")),
        (10**15, Decimal("1000000000000000.01")),
        (1, True),
        (0, False),
        (1, "1"),
        (None, 0),
        (None, NAN),
        (INFINITY, -INFINITY),
        (INFINITY, 1.7e308),
        (INFINITY, NAN),
        (NOON, NOON + timedelta(microseconds=1)),
        (NOON, NOON.date()),
        (date(2024, 7, 15), "2024-07-15"),
        ([1, 2], [2, 1]),
        (["a", "b"], ["b", "a"]),
        ({"of": ({"a": [[], [1]]},)}, {"of": ({"a": [[1], []]},)}),
        ([1], [1, None]),
        ({"a": 1}, {"a": 1, "b": None}),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ([], {}),
        (1e-6, 0.0),
    ],
)
def test_what_is_another_value_differs_however_many_digits_are_compared(one: Any, other: Any) -> None:
    assert not TWELVE_DIGITS.same(one, other)
    assert not EXACT.same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        EDGE,
        (0.1 + 0.2, 0.3),
        (0.1 + 0.2 - 0.3, 0),
        (sum([0.1] * 10), 1),
        (1 / 3, Decimal("0.333333333333333")),
        (1e17, 10**17 + 16),
        ([{"mean": 0.1 + 0.2}], [{"mean": 0.3}]),
        (math.nextafter(1e300, 0), 1e300),
    ],
)
def test_floating_point_numbers_are_compared_to_so_many_digits(one: Any, other: Any) -> None:
    assert TWELVE_DIGITS.same(one, other)
    assert TWELVE_DIGITS.same(other, one)
    assert not EXACT.same(one, other)


@pytest.mark.parametrize("digits", [3, 9, 15])
def test_the_last_digit_that_counts_is_the_one_that_is_named(digits: int) -> None:
    assert Equality(digits).same(1.0, 1 + 0.9 * 10**-digits)
    assert not Equality(digits).same(1.0, 1 + 2.0 * 10**-digits)


def test_how_often_a_value_comes_counts() -> None:
    assert TWELVE_DIGITS.unmatched([["a", 1.5]] * 3, [["a", 1.5]]) == ([0, 1], [])
    assert TWELVE_DIGITS.unmatched([["a", 1.5]], [["a", 1.5], ["b", 1.5], ["a", 1.5]]) == ([], [1, 2])


def test_a_thousand_values_near_to_each_other_are_paired() -> None:
    left, right = ([1 + (2 * index + odd) * 2.0**-52 for index in range(1200)] for odd in (0, 1))
    assert TWELVE_DIGITS.unmatched([*left, 2.0], [*right, 3.0]) == ([1200], [1200])
    assert [*map(len, TWELVE_DIGITS.unmatched([*left, 2.0], [*right[1:], 3.0, 4.0]))] == [2, 2]


numbers = st.sampled_from([1.0, 1.004, 1.008, 1.012, 1.016, 2.0, NAN, 1, None, "1"])


@given(st.lists(numbers, max_size=4), st.lists(numbers, max_size=4))
def test_a_pairing_is_as_large_as_any(left: list[Any], right: list[Any]) -> None:
    near = Equality(2)
    rest = near.unmatched(left, right)
    short, long = sorted([left, right], key=len)
    largest = max(
        sum(near.same(*pair) for pair in zip(short, order, strict=False)) for order in itertools.permutations(long)
    )
    assert [len(left) - len(rest[0]), len(right) - len(rest[1])] == [largest, largest]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, -0.0, 1.0, 0.5, NAN, INFINITY, "", "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=4,
)


@given(values, values)
def test_typed_values_are_equal_where_they_are_exactly_equal(one: Any, other: Any) -> None:
    # Within a list, as values of outcomes are: a NaN alone isn't equal to itself.
    assert EXACT.same(one, other) == ([typed(one)] == [typed(other)])
    assert EXACT.same(typed(one), typed(other)) == EXACT.same(one, other)


@pytest.mark.parametrize("digits", [0, 16, 1.5, True, "12"])
def test_digits_that_no_double_has_are_refused(digits: Any) -> None:
    with pytest.raises(BadInput, match=r"digits is .*: give a whole number from 1 to 15, or None to compare"):
        Equality(digits)


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Asia/Kathmandu"])
def test_a_time_without_a_zone_is_one_of_utc_wherever_the_machine_stands(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert TWELVE_DIGITS.same(datetime(2024, 7, 15, 12), datetime(2024, 7, 15, 12, tzinfo=UTC))
        assert microseconds(datetime(1970, 1, 1, 1)) == 3_600_000_000
    finally:
        monkeypatch.undo()
        time.tzset()
