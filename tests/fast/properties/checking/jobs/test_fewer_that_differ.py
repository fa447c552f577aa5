"""Of histories that differ as one, a check takes a few that still do."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.checking.jobs.job_check import JobCheck, _in_words
from streamproof.properties.checking.jobs.verdicts import UpgradeRefused
from streamproof.properties.outcomes.outcomes import Difference


@dataclass(frozen=True)
class Rows:
    """A history with a number of rows."""

    arrivals: range


HISTORIES = [Rows(range(count)) for count in range(1, 9)]


@pytest.mark.parametrize(
    ("wrong", "is_over", "expected"),
    [
        ({8}, False, [8]),
        ({7}, False, [7]),
        ({6}, False, [6]),
        ({1}, False, [1]),
        ({1, 2}, False, [1, 2]),
        ({5, 6}, False, [5, 6]),
        ({4, 5}, False, [1, 2, 3, 4, 5, 6, 7, 8]),
        ({8}, True, [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
    ids=["fullest", "second", "third", "first", "two", "two behind", "two in both halves", "no time left"],
)
def test_fewer_histories_are_a_full_one_or_a_half_that_differs(
    wrong: set[int], is_over: bool, expected: list[int]
) -> None:
    def compare(some: list[Rows], _: object) -> Any:
        return SimpleNamespace(differs=wrong <= {len(one.arrivals) for one in some})

    check: Any = SimpleNamespace(as_one=list, variation=None, judge=SimpleNamespace(compare_alone=compare))
    deadline: Any = SimpleNamespace(is_over=lambda: is_over)
    assert [len(one.arrivals) for one in JobCheck.fewer_that_differ(check, HISTORIES, deadline)] == expected


@pytest.mark.parametrize(
    ("batch", "missing", "surplus", "words"),
    [
        (None, [{"n": 1}], [], "expects n 1 and emits no such row at the end"),
        (2, [], [{"n": 2}], "expects no such row and emits n 2 in batch 2"),
        (0, [{"n": 1}, {"n": 3}], [{"n": 2}], "expects n 1 and emits n 2 in batch 0"),
    ],
)
def test_a_difference_in_words_has_the_first_row_of_each_side(
    batch: int | None, missing: list[Any], surplus: list[Any], words: str
) -> None:
    assert _in_words(Difference(batch, missing, surplus)) == words


def test_a_refused_upgrade_is_a_law_broken_once() -> None:
    refused = UpgradeRefused("totals can't go on", job="totals", cause="other state")
    assert str(refused) == "totals can't go on"
    (law,) = refused.checked.laws
    assert (refused.checked.verdict, law.verdict, law.why) == ("violated", "violated", "other state")
    assert (law.histories, refused.checked.histories) == (1, 1)
