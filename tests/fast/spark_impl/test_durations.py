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
NO_UNIT = ', without a unit: write it as "5 minutes"'
NO_DURATION = ', which isn\'t a duration: write it as "5 minutes"'
NOT_WHOLE = ", which isn't a whole number of milliseconds: round it"


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        ("1 hour 30 minutes", 5_400_000),
        ("10s", 10_000),
        ("2 days", 172_800_000),
        ("0.001 s", 1),
        ("1000 us", 1),
        ("0 seconds", 0),
        ("interval 5 minutes", 300_000),
        ("  INTERVAL  5 minutes ", 300_000),
        ("00:05:00", 300_000),
        ("1 WEEK 1 day", 691_200_000),
        ("2 weeks", 1_209_600_000),
        ("1W", 604_800_000),
        ("-5 minutes", -300_000),  # left to whoever asked
        (timedelta(milliseconds=-1), -1),
        (timedelta(days=200_000), 17_280_000_000_000),  # longer than the nanoseconds of pandas reach
        (pd.Timedelta("5 minutes"), 300_000),
        (pd.Timedelta("5 minutes").as_unit("s"), 300_000),
    ],
)
def test_a_duration_is_read_as_data_engineers_write_it(duration: Any, expected: int) -> None:
    assert milliseconds("gap", duration) == expected


@pytest.mark.parametrize(
    ("durations", "said"),
    [
        (["5", "5.5", " 5 ", "-5", "+5", "interval 5"], NO_UNIT),
        (["", "   ", "soon", "5 parsecs", "1 month", "NaT", "nan", "interval", "5 min 3"], NO_DURATION),
        (["99999999 days", 5, 5.0, None, True, b"5 s", pd.NaT], NO_DURATION),
        (["0.5 ms", "1.5 ms", "1 us", "10 ns", timedelta(microseconds=1), timedelta.max], NOT_WHOLE),
    ],
)
def test_what_is_no_whole_duration_with_a_unit_is_refused(durations: list[Any], said: str) -> None:
    for duration in durations:
        with pytest.raises(BadInput, match=rf"^gap is .*{said}"):
            milliseconds("gap", duration)


@QUIET
@given(st.integers(0, 10**12))
def test_text_and_timedelta_agree(number: int) -> None:
    assert milliseconds("gap", f"{number} ms") == milliseconds("gap", timedelta(milliseconds=number)) == number
