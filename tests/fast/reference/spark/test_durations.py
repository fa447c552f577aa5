from __future__ import annotations

from datetime import timedelta

import pytest
from streamproof.reference.core.durations import microseconds_of
from streamproof.reference.core.errors import BadInput


@pytest.mark.parametrize(
    ("text", "duration_us"),
    [
        ("10 minutes", 600_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("interval 2 seconds", 2_000_000),
        ("INTERVAL 1 Day", 86_400_000_000),
        ("1.5 seconds", 1_500_000),
        ("250 milliseconds", 250_000),
        ("7 microseconds", 7),
        ("1 week -1 day", 6 * 86_400_000_000),
        (timedelta(seconds=1, microseconds=1), 1_000_001),
    ],
)
def test_durations_are_read_as_spark_reads_them(text: str | timedelta, duration_us: int) -> None:
    assert microseconds_of("gap", text) == duration_us


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10", "isn't a duration"),
        ("", "empty"),
        ("ten minutes", "isn't a duration"),
        ("10minutes", "isn't a duration"),
        ("10 mins", "'mins' isn't a unit"),
        ("1 month", "no fixed length"),
        ("1.5 hours", "only seconds have fractions"),
        ("0.0000001 seconds", "whole number of microseconds"),
        (10, "isn't a duration"),
    ],
)
def test_what_is_no_duration_is_refused_with_the_remedy(text: object, said: str) -> None:
    with pytest.raises(BadInput, match=f"(?s)^gap is .*{said}.*: (write|round) it|^gap is .*{said}.*: write"):
        microseconds_of("gap", text)
