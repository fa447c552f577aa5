"""The rounds of a check: how many there are in a time, and when one ends."""

from __future__ import annotations

import pytest
from streamproof.properties.checking.rounds import MOST_RECORDS, RECORDS, Budget, Round, TimeIsUp


class Time:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def rounds_of(minutes: float | None, seconds: float) -> list[int]:
    """Return the numbers of the rounds in a time, each of which takes so long."""
    time = Time()
    numbers = []
    for one in Budget(minutes, time).rounds():
        numbers.append(one.number)
        time.now += seconds
    return numbers


@pytest.mark.parametrize(
    ("minutes", "seconds", "count"), [(None, 1, 1), (1, 25, 3), (1, 30, 2), (1, 60, 1), (1, 61, 1), (0.5, 10, 3)]
)
def test_a_round_begins_for_as_long_as_there_is_time(minutes: float | None, seconds: float, count: int) -> None:
    assert rounds_of(minutes, seconds) == list(range(count))


def test_only_a_further_round_ends_with_the_time() -> None:
    time = Time()
    first, second, *_ = (one for one, _ in zip(Budget(1, time).rounds(), range(2), strict=False))
    for one in (first, second):
        one.go_on()
    time.now += 60
    first.go_on()
    with pytest.raises(TimeIsUp):
        second.go_on()


def test_histories_are_longer_from_round_to_round_up_to_a_bound() -> None:
    records = [Round(number).records for number in range(30)]
    assert records[0] == RECORDS
    assert records == sorted(records)
    assert records[1] > records[0]
    assert records[-1] == records[-2] == MOST_RECORDS
