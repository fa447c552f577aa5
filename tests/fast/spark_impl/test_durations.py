from __future__ import annotations

from datetime import timedelta
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.runtime.durations import milliseconds

QUIET = settings(deadline=None, max_examples=40, derandomize=True, database=None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 minutes", 300_000),
        ("1 minute", 60_000),
        ("1 hour 30 minutes", 5_400_000),
        ("250 ms", 250),
        ("250 milliseconds", 250),
        ("10 seconds", 10_000),
        ("10s", 10_000),
        ("2 days", 172_800_000),
        ("1.5 s", 1500),
        ("0.001 s", 1),
        ("1000 us", 1),
        ("0 seconds", 0),
        ("  5 minutes  ", 300_000),
        ("interval 5 minutes", 300_000),
        ("00:05:00", 300_000),
    ],
)
def test_a_text_is_read_as_data_engineers_write_it(text: str, expected: int) -> None:
    assert milliseconds("gap", text) == expected


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(minutes=5), 300_000),
        (timedelta(0), 0),
        (timedelta(milliseconds=1), 1),
        (timedelta(days=100_000), 8_640_000_000_000),
        (pd.Timedelta("5 minutes"), 300_000),
        (pd.Timedelta("5 minutes").as_unit("s"), 300_000),
    ],
)
def test_a_timedelta_is_read_as_it_is(duration: timedelta, expected: int) -> None:
    assert milliseconds("gap", duration) == expected


@pytest.mark.parametrize(
    ("duration", "expected"), [("-5 minutes", -300_000), (timedelta(milliseconds=-1), -1), ("-1 ms", -1)]
)
def test_a_negative_duration_is_left_to_whoever_asked(duration: Any, expected: int) -> None:
    assert milliseconds("gap", duration) == expected


@pytest.mark.parametrize("text", ["5", "5.5", " 5 ", "-5", "+5", "interval 5"])
def test_a_number_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r'^gap is .*, without a unit: write it as "5 minutes"'):
        milliseconds("gap", text)


@pytest.mark.parametrize(
    "duration",
    [
        "",
        "   ",
        "soon",
        "5 parsecs",
        "1 month",
        "NaT",
        "nan",
        "interval",
        "5 min 3",
        5,
        5.0,
        None,
        True,
        b"5 s",
        pd.NaT,
    ],
)
def test_what_is_no_duration_is_refused(duration: Any) -> None:
    with pytest.raises(BadInput, match=r'^gap is .*, which is no duration: write it as "5 minutes"'):
        milliseconds("gap", duration)


@pytest.mark.parametrize("duration", ["0.5 ms", "1.5 ms", "1 us", "10 ns", timedelta(microseconds=1)])
def test_what_is_no_whole_number_of_milliseconds_is_refused(duration: Any) -> None:
    with pytest.raises(BadInput, match=r"^gap is .*, which is no whole number of milliseconds: round it"):
        milliseconds("gap", duration)


def test_a_text_too_large_for_a_duration_is_refused() -> None:
    with pytest.raises(BadInput, match="which is no duration"):
        milliseconds("gap", "99999999 days")


def test_a_timedelta_longer_than_pandas_nanoseconds_reach_is_read() -> None:
    assert milliseconds("retention", timedelta(days=200_000)) == 17_280_000_000_000


def test_the_longest_timedelta_is_refused_for_its_microseconds() -> None:
    with pytest.raises(BadInput, match="no whole number of milliseconds"):
        milliseconds("retention", timedelta.max)


@pytest.mark.parametrize("text", ["INTERVAL 5 minutes", "Interval 5 minutes", "  INTERVAL  5 minutes "])
def test_the_word_interval_may_be_in_capitals(text: str) -> None:
    assert milliseconds("gap", text) == 300_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1 week", 604_800_000), ("2 weeks", 1_209_600_000), ("1 WEEK 1 day", 691_200_000), ("1W", 604_800_000)],
)
def test_weeks_are_read(text: str, expected: int) -> None:
    assert milliseconds("gap", text) == expected


@QUIET
@given(st.integers(0, 10**12))
def test_text_and_timedelta_agree(number: int) -> None:
    assert milliseconds("gap", f"{number} ms") == milliseconds("gap", timedelta(milliseconds=number)) == number
