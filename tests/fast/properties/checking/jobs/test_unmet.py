"""The coverage goals that a check has left unmet: too few rows, other delays, what a variation must have changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.checking.jobs import conclusion
from streamproof.properties.checking.jobs.conclusion import unmet_goals
from streamproof.properties.laws.variation import CHANGED
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.running import REPEATED, RESTORED

SECOND = 1_000_000


def unmet(monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[str]:
    given: dict[str, Any] = {
        **{"count": 40, "expecting": 40, "goals": (), "covered": (), "stateful": True, "is_sink": False, "crashed": ()},
        **{"expected_us": None, "plan": Plan(), "timers": (), "law": "", **more},
    }
    monkeypatch.setattr(conclusion, "_unmet_tables", lambda witness, histories: [])
    monkeypatch.setattr(conclusion, "_compares", lambda judge: [])
    oracle = SimpleNamespace(watermark_delays_us=given["expected_us"], distances_us=())
    met = SimpleNamespace(covered=given["covered"], crashed=given["crashed"], stateful=given["stateful"], plan=Plan())
    judge: Any = SimpleNamespace(
        met=met,
        oracle=oracle,
        is_sink=given["is_sink"],
        declared=SimpleNamespace(plan=given["plan"]),
        witness=SimpleNamespace(sources=[]),
    )
    options = SimpleNamespace(timers_us=given["timers"], timeouts_us=())
    draws: Any = SimpleNamespace(unmet=lambda histories: [], options=options, inputs=[])
    variation: Any = SimpleNamespace(goals=given["goals"], law=given["law"])
    return unmet_goals(judge, draws, variation, [None] * given["count"], given["expecting"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("more", "goal"),
    [
        ({}, ""),
        ({"count": 10, "expecting": 10}, ""),
        ({"count": 9, "expecting": 9}, "10 histories at the least"),
        ({"expecting": 2}, ""),
        ({"expecting": 1}, "rows that are expected, on one in twenty histories (they are on 1)"),
        ({"expecting": 0}, "rows that are expected, on one in twenty histories (they are on 0); if the job"),
        ({"goals": (REPEATED,), "covered": (REPEATED,)}, ""),
        ({"goals": (REPEATED,)}, REPEATED),
        ({"goals": (RESTORED,)}, RESTORED),
        ({"goals": (RESTORED,), "stateful": False}, ""),
        ({"goals": (REPEATED,), "stateful": False}, REPEATED),
        ({"goals": (REPEATED,), "is_sink": True}, ""),
        ({"goals": (REPEATED,), "is_sink": True, "crashed": ("commit",)}, REPEATED),
        ({"goals": (CHANGED,), "is_sink": True}, CHANGED),
        ({"plan": Plan(by_event_time=True)}, "times around its timers of event time"),
        ({"plan": Plan(by_event_time=True), "timers": (SECOND,)}, ""),
        ({"plan": Plan(by_event_time=True), "law": "a crash"}, ""),
    ],
)
def test_a_goal_is_unmet_where_the_check_has_shown_nothing_of_it(
    more: dict[str, Any], goal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = unmet(monkeypatch, **more)
    assert [one[: len(goal)] for one in found] == [goal] * bool(goal)


@pytest.mark.parametrize(
    ("expected_us", "delays_us", "other"),
    [
        (None, [SECOND], ""),
        ({}, [], ""),
        ({"": SECOND}, [SECOND], ""),
        ({"": SECOND}, [0, SECOND], ""),
        ({"": 0}, [], ""),
        ({"a": SECOND, "b": 0}, [SECOND], ""),
        ({"": SECOND}, [2 * SECOND], "1 second, as expected (the job's are by 2 seconds)"),
        ({"": SECOND}, [], "1 second, as expected (the job's are by nothing)"),
        ({"": SECOND}, [SECOND, 3 * SECOND], "1 second, as expected (the job's are by 1 second and 3 seconds)"),
    ],
)
def test_another_delay_of_the_watermark_than_expected_is_named(
    expected_us: Any, delays_us: list[int], other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(operators=frozenset({"Aggregate"}), delays_us=delays_us)
    found = unmet(monkeypatch, expected_us=expected_us, plan=plan)
    assert found == [f"watermarks that are delayed by {other}"] * bool(other)
