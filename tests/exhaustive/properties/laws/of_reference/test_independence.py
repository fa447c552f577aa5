"""DuckDB reads options by itself: where the reference misreads one, the law *duckdb* is violated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from registrations import change
from streamproof.properties.checking import findings
from streamproof.properties.checking.check import check_reference
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.laws.base import Verdict
from streamproof.properties.registration.registration import registered
from streamproof.reference.core.operator import Operator

HISTORIES = 60


class Misread(NamedTuple):
    """An option that the reference misreads, and options under which that shows."""

    operator: str
    what: str
    options: dict[str, Any]
    as_read: Callable[[Mapping[str, Any]], dict[str, Any]]


def ignored(option: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda options: {name: value for name, value in options.items() if name != option}


def taken(option: str, *, by: Callable[[Any], Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda options: {name: by(value) if name == option else value for name, value in options.items()}


def by_default(option: str, value: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda options: {option: value, **options}


def swapped(one: str, other: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda options: {**options, one: options[other], other: options[one]}


def seconds(duration_ms: int) -> int:
    return duration_ms * 1000


BOUNDS = {"before_ms": 4, "after_ms": 9}
HOPPING = {"size_ms": 10, "step_ms": 5}
ARTIST = {"foreign_key": "artist"}
MISREAD = [
    Misread("session_windows", "gap off by 1 ms", {"gap_ms": 10}, taken("gap_ms", by=lambda gap: gap + 1)),
    Misread("session_windows", "grace in s", {"gap_ms": 5, "grace_ms": 5}, taken("grace_ms", by=seconds)),
    Misread("session_windows", "grace ignored", {"gap_ms": 5, "grace_ms": 5}, ignored("grace_ms")),
    Misread(
        "session_windows", "min for max", {"gap_ms": 9, "aggregate": "max"}, taken("aggregate", by=lambda _: "min")
    ),
    Misread(
        "session_windows", "max for min", {"gap_ms": 9, "aggregate": "min"}, taken("aggregate", by=lambda _: "max")
    ),
    Misread("session_windows", "close for update", {"gap_ms": 9}, by_default("emit", "close")),
    Misread("session_windows", "update for close", {"gap_ms": 9, "emit": "close"}, ignored("emit")),
    Misread("session_windows", "own for merged", {"gap_ms": 9}, by_default("late", "own")),
    Misread("session_windows", "merged for own", {"gap_ms": 9, "late": "own"}, ignored("late")),
    Misread("window_aggregate", "step ignored", {"size": 10, "step": 4}, ignored("step")),
    Misread("window_aggregate", "step of 1 by default", {"size": 10}, by_default("step", 1)),
    Misread(
        "window_aggregate",
        "retention in s",
        {"size": 10, "late": "update", "retention_ms": 12},
        taken("retention_ms", by=seconds),
    ),
    Misread("window_aggregate", "late drop", {"size": 10, "late": "update", "retention_ms": 12}, ignored("late")),
    Misread("window_aggregate", "tuples as ms", {"size": 3, "unit": "tuple"}, ignored("unit")),
    Misread("window_aggregate", "fixed for session", {"size": 5, "type": "session"}, ignored("type")),
    Misread("window_aggregate", "aggregate for full", {"size": 10, "storage": "full"}, ignored("storage")),
    Misread(
        "window_aggregate",
        "every third for every second",
        {"size": 30, "early": {"every_tuples": 2}},
        taken("early", by=lambda early: {"every_tuples": early["every_tuples"] + 1}),
    ),
    Misread(
        "window_aggregate",
        "ticks half as often",
        {"size": 30, "early": {"every_ms": 7}},
        taken("early", by=lambda early: {"every_ms": 2 * early["every_ms"]}),
    ),
    Misread(
        "range_aggregate", "off by 1 ms", {"preceding_ms": 10}, taken("preceding_ms", by=lambda range_ms: range_ms + 1)
    ),
    Misread(
        "range_aggregate",
        "sum for average",
        {"preceding_ms": 9, "aggregate": "average"},
        taken("aggregate", by=lambda _: "sum"),
    ),
    Misread("stream_stream_join", "bounds swapped", BOUNDS, swapped("before_ms", "after_ms")),
    Misread("stream_stream_join", "inner for left", {**BOUNDS, "join": "left"}, ignored("join")),
    Misread("stream_stream_join", "left for outer", {**BOUNDS, "join": "outer"}, taken("join", by=lambda _: "left")),
    Misread("stream_stream_join", "grace in s", {**BOUNDS, "grace_ms": 5}, taken("grace_ms", by=seconds)),
    Misread("stream_stream_join", "eager by default", {**BOUNDS, "join": "left"}, by_default("emit", "eager")),
    Misread("stream_stream_join", "close by default", {**BOUNDS, "join": "outer"}, by_default("emit", "close")),
    Misread(
        "stream_stream_join", "null keys dropped", {**BOUNDS, "join": "left", "null_key": "keep"}, ignored("null_key")
    ),
    Misread("stream_table_join", "inner by default", {}, by_default("join", "inner")),
    Misread("stream_table_join", "left for inner", {"join": "inner"}, ignored("join")),
    Misread("stream_table_join", "null keys kept", {}, by_default("null_key", "keep")),
    Misread("table_table_join", "inner for left", {"join": "left"}, ignored("join")),
    Misread("table_table_join", "left for outer", {"join": "outer"}, taken("join", by=lambda _: "left")),
    Misread("table_aggregate", "count for list", {"group_by": "group", "aggregate": "list"}, ignored("aggregate")),
    Misread(
        "table_aggregate",
        "field ignored",
        {"group_by": "group", "aggregate": "list", "field": "amount"},
        ignored("field"),
    ),
    Misread("windowed_table", "step ignored", HOPPING, ignored("step_ms")),
    Misread("windowed_table", "grace in s", {"size_ms": 10, "grace_ms": 5}, taken("grace_ms", by=seconds)),
    Misread("windowed_table", "update for close", {**HOPPING, "emit": "close"}, ignored("emit")),
    Misread("windowed_table", "left by default", {**HOPPING, "with": "windowed_table"}, by_default("join", "left")),
    Misread(
        "windowed_table", "inner for outer", {**HOPPING, "with": "windowed_table", "join": "outer"}, ignored("join")
    ),
    Misread(
        "windowed_table",
        "sign of the shift",
        {"size_ms": 10, "with": "windowed_table", "shift_ms": -10},
        taken("shift_ms", by=lambda shift: -shift),
    ),
    Misread(
        "windowed_table", "key without window", {"size_ms": 10, "to_stream": "window_in_key"}, ignored("to_stream")
    ),
    Misread("windowed_table", "table for stream", {**HOPPING, "to_stream": "window_in_value"}, ignored("to_stream")),
    *(
        misread
        for operator in ("foreign_key_join", "one_to_many_join")
        for misread in (
            Misread(operator, "inner for left", {**ARTIST, "join": "left"}, ignored("join")),
            Misread(
                operator,
                "null ignored",
                {**ARTIST, "join": "left", "null_foreign_key": "keep"},
                ignored("null_foreign_key"),
            ),
        )
    ),
]


@pytest.mark.parametrize("misread", MISREAD, ids=lambda one: f"{one.operator}: {one.what}")
def test_an_option_that_the_reference_misreads_is_caught_by_duckdb(
    misread: Misread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, _, options, as_read = misread
    right = Operator.declare
    monkeypatch.setattr(Operator, "declare", lambda self, given: right(self, as_read(given)))
    assert verdict_of_duckdb(operator, {"misread": options}, tmp_path, monkeypatch) is Verdict.VIOLATED


@pytest.mark.parametrize("operator", registered())
def test_under_options_that_are_read_rightly_duckdb_agrees(
    operator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = {misread.what: misread.options for misread in MISREAD if misread.operator == operator}
    assert profiles
    assert verdict_of_duckdb(operator, profiles, tmp_path, monkeypatch) is not Verdict.VIOLATED


def verdict_of_duckdb(
    operator: str, profiles: Mapping[str, Mapping[str, Any]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Verdict:
    # Without a space, whose definitions a reference that misreads options may refuse.
    change(monkeypatch, operator, profiles=profiles, without_late_data={}, space=None, kafka=None, protocol=None)
    # Shrinking asks the same question hundreds of times more.
    monkeypatch.setattr(findings, "confirmed", lambda law, violation, witness, asked: (violation, ""))
    return check_reference(operator, FolderStore(folder), HISTORIES * len(profiles)).result("duckdb").verdict
