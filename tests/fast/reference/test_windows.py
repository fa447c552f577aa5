from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import operator_named
from streamproof.reference.definitions.aggregates import COUNT
from streamproof.reference.definitions.windows import SessionWindows


def test_the_gap_alone_is_enough() -> None:
    assert SessionWindows(10) == SessionWindows(10, 0, 10, COUNT, "update", "merged")


def test_the_retention_is_gap_and_grace_by_default() -> None:
    assert SessionWindows(10, 5).retention_ms == 15


@pytest.mark.parametrize("retention", [15, 16, 10**12])
def test_a_retention_of_gap_and_grace_or_more_is_kept(retention: int) -> None:
    assert SessionWindows(10, 5, retention).retention_ms == retention


@pytest.mark.parametrize("retention", [14, 0, -2])
def test_a_shorter_retention_is_refused_with_the_least_there_may_be(retention: int) -> None:
    with pytest.raises(BadInput, match=rf"retention_ms is {retention}, less than gap \+ grace \(15\).* raise it"):
        SessionWindows(10, 5, retention)


@pytest.mark.parametrize("gap", [0, -1])
def test_a_gap_must_be_positive(gap: int) -> None:
    with pytest.raises(BadInput, match=f"gap_ms is {gap}: a session's gap must be positive"):
        SessionWindows(gap)


def test_a_grace_cannot_be_negative() -> None:
    with pytest.raises(BadInput, match="grace_ms is -1: grace can't be negative; use 0 for none"):
        SessionWindows(10, -1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name in ("gap_ms", "grace_ms", "retention_ms")
        for value in (1.5, 10.0, "10", None, True, [10], float("nan"))
        if (name, value) != ("retention_ms", None)
    ],
)
def test_a_duration_is_a_whole_number(name: str, value: Any) -> None:
    with pytest.raises(BadInput, match=f"{name} is .*: give a whole number of milliseconds"):
        SessionWindows(**{"gap_ms": 10, name: value})


@pytest.mark.parametrize(("name", "remedy"), [("emit", "use update or close"), ("late", "use merged or own")])
@pytest.mark.parametrize("value", ["", "Update", None, 1, ["update"]])
def test_emit_and_late_take_their_values_alone(name: str, remedy: str, value: Any) -> None:
    with pytest.raises(BadInput, match=remedy):
        SessionWindows(**{"gap_ms": 10, name: value})


def test_a_declaration_does_not_change() -> None:
    windows = SessionWindows(10)
    with pytest.raises(FrozenInstanceError):
        windows.gap_ms = 5  # type: ignore[misc]


def test_the_close_edge_is_gap_and_grace_behind_the_clock() -> None:
    assert SessionWindows(10, 5).close_edge(100) == 85


def test_the_expiry_edge_is_the_retention_behind_the_clock() -> None:
    assert SessionWindows(10, 5, 40).expiry_edge(100) == 60


@pytest.mark.parametrize("clock", [0, 15, 1000])
def test_nothing_expires_before_it_closes(clock: int) -> None:
    windows = SessionWindows(10, 5)
    assert windows.expiry_edge(clock) <= windows.close_edge(clock)


def test_a_clock_that_has_seen_nothing_closes_nothing() -> None:
    assert SessionWindows(1).close_edge(0) < 0


def test_options_declare_the_same_windows() -> None:
    options = {"gap_ms": 10, "grace_ms": 5, "retention_ms": 20, "aggregate": "count", "emit": "close", "late": "own"}
    declared = operator_named("session_windows").declare(options)
    assert declared == SessionWindows(10, 5, 20, COUNT, "close", "own")


def test_a_retention_of_none_is_the_default_in_python() -> None:
    assert SessionWindows(10, 5, None) == SessionWindows(10, 5)  # type: ignore[arg-type]


def test_a_retention_of_null_is_refused_among_options() -> None:
    with pytest.raises(BadInput, match=r"retention_ms is null: give milliseconds, or leave it out for gap \+ grace"):
        operator_named("session_windows").declare({"gap_ms": 10, "retention_ms": None})


def test_a_retention_of_minus_1_is_no_default_among_options() -> None:
    with pytest.raises(BadInput, match=r"retention_ms is -1, less than gap \+ grace \(10\).* leave it out"):
        operator_named("session_windows").declare({"gap_ms": 10, "retention_ms": -1})


def test_options_without_a_gap_are_refused() -> None:
    with pytest.raises(BadInput, match='such as "gap_ms": 10'):
        operator_named("session_windows").declare({})


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    known = "aggregate, emit, gap_ms, grace_ms, late, retention_ms"
    with pytest.raises(BadInput, match=f"session_windows has no option 'gap': it takes {known}"):
        operator_named("session_windows").declare({"gap_ms": 10, "gap": 10})
