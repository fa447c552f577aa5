from __future__ import annotations

from typing import Any

import pytest
from notation import history_of
from streamproof.properties.generators.coverage import count_goals_met
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.operators.session_windows import GOALS
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Dropped


def met(text: str, clock: str = "stream_time", **options: Any) -> set[str]:
    return set(count_goals_met([history_of(text, "session_windows", clock, **options)])) & set(GOALS)


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ("k@0", set()),
        ("k@0 k@5", {"merge of two"}),
        ("k@5 k@0", {"merge of two"}),
        ("k@0 k@10", {"merge of two", "exact gap"}),
        ("k@10 k@0", {"merge of two", "exact gap"}),
        ("k@0 k@11", {"gap + 1"}),
        ("k@11 k@0", {"gap + 1"}),
        ("k@0 k@12", set()),
        ("k@0 k@0", {"same timestamp twice"}),
        ("k@0 j@0", {"two keys"}),
        ("k@0 j@5 k@40 j@40", {"two keys"}),
        ("k@0 k@5 k@3", {"merge of two", "record inside a session"}),
        ("k@0 k@5 k@5", {"merge of two", "same timestamp twice"}),
        ("k@0 k@15 k@7", {"merge of two", "merge of three or more"} - {"merge of two"}),
        ("k@0 k@20 k@10", {"merge of three or more", "exact gap"}),
        ("k@0 k@20 k@9", {"merge of two", "gap + 1"}),
        ("k@0 -@5 -@5", set()),
        ("-@5 k@0", set()),
        ("", {"empty batch"}),
        ("k@0 |", {"empty batch"}),
        ("| k@0", {"empty batch"}),
        ("k@0 | ~5 | k@30", {"empty batch"}),
        ("k@0 | k@30", set()),
    ],
)
def test_a_history_meets_exactly_its_goals(arrivals: str, expected: set[str]) -> None:
    assert met(arrivals, grace_ms=100) == expected


@pytest.mark.parametrize(
    ("arrivals", "options", "expected"),
    [
        ("z@11 k@0", {}, {"dropped: late", "two keys"} - {"two keys"}),
        ("z@10 k@0", {}, {"two keys"}),
        ("k@10 ~20 k@0", {}, {"late rescued", "merge of two", "exact gap"}),
        ("k@10 ~21 k@1", {}, {"dropped: late"}),
        ("k@10 ~20 k@9", {"late": "own"}, {"dropped: late"}),
        ("k@10 ~20 k@10", {}, {"same timestamp twice"}),
        ("k@0 k@11", {}, set()),  # a closed session counts for no distance
        ("~100 -@0", {}, set()),
    ],
)
def test_lateness_is_met_as_the_options_say(arrivals: str, options: dict[str, Any], expected: set[str]) -> None:
    assert met(arrivals, **options) == expected


def test_a_goal_counts_once_a_history() -> None:
    found = count_goals_met([history_of(text, "session_windows") for text in ("k@0 k@0 k@0", "k@0 k@0 k@5", "k@0")])
    assert (found["same timestamp twice"], found["merge of two"]) == (2, 1)
    assert not count_goals_met([])


@pytest.mark.parametrize("late", ["merged", "own"])
@pytest.mark.parametrize("emit", ["update", "close"])
def test_late_dropped_is_met_exactly_where_the_reference_drops(late: str, emit: str) -> None:
    profile = HistorySettings(
        "session_windows", {"gap_ms": 10, "grace_ms": 5, "late": late, "emit": emit}, (20, 45, 45, 90)
    )
    for history in draw_histories(profile, 100, seed=3):
        dropped = any(isinstance(entry.output, Dropped) for entry in play(history).entries)
        assert (count_goals_met([history])["dropped: late"] == 1) == dropped
