"""Session windows: their merges, aggregates, late records, closings and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from history_strategies import declarations, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from notation import broken_prefix, changelog, history_of, result_of, steps
from streamproof.properties.generators.draws import HistorySettings
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Record
from streamproof.reference.definitions.aggregates import Aggregate, reduce
from streamproof.reference.definitions.windows import SessionWindows
from streamproof.reference.session_windows import Behaviour, meaning

SESSIONS = "session_windows"
QUIET = settings(deadline=None, max_examples=25, derandomize=True, database=None)


def declared(text: str, windows: SessionWindows) -> str:
    """The changelog under a declaration that no history file can give: an aggregate of one's own."""
    return changelog(text, SESSIONS, lambda _, clock: Behaviour(windows, clock))


# What Kafka Streams does (docs/facts.md): gap 10.


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ("k=a@0 k=b@10 k=c@21", "k[0,0]=(a)@0 k[0,0]=∅@0 k[0,10]=(a,b)@10 k[21,21]=(c)@21"),
        ("k=a@0 k=b@0", "k[0,0]=(a)@0 k[0,0]=(a,b)@0"),
        ("k=a@20 k=b@0 k=c@10", "k[20,20]=(a)@20 k[0,0]=(b)@0 k[0,0]=∅@0 k[20,20]=∅@20 k[0,20]=(b,a,c)@20"),
        ("k=null@0 k=null@0", "k[0,0]=(null)@0 k[0,0]=(null,null)@0"),
    ],
    ids=[
        "exactly a gap apart",
        "the same instant again",
        "a bridge, merged in session order",
        "null values",
    ],
)
def test_records_no_more_than_a_gap_apart_share_a_session(arrivals: str, expected: str) -> None:
    assert changelog(arrivals, SESSIONS, grace_ms=100, aggregate="list") == expected


def test_an_empty_string_is_a_key_like_any_other() -> None:
    history = history_of("", SESSIONS).with_lines([Record("events", "", "x", 0), Record("events", "", "x", 1)])
    assert play(history).result == {("", (0, 1)): (2, 1)}


# Bugs that shipped (docs/facts.md): the right result.


@pytest.mark.parametrize(
    ("arrivals", "gap", "expected"),
    [
        ("k@0 other@5 k@0", 5, "k[0,0]=1@0 other[5,5]=1@5 k[0,0]=2@0"),
        ("k@0 other@6 k@0", 5, "k[0,0]=1@0 other[6,6]=1@6 k!late"),
        ("a@0 z@5 a@3", 10, "a[0,0]=1@0 z[5,5]=1@5 a[0,0]=∅@0 a[0,3]=2@3"),
        ("m@0 m@11 m@5", 10, "m[0,0]=1@0 m[11,11]=1@11 m[11,11]=∅@11 m[5,11]=2@11"),
        (
            "m@10000000 m@10300001 m@10150000",
            300_000,
            "m[10000000,10000000]=1@10000000 m[10300001,10300001]=1@10300001 "
            "m[10300001,10300001]=∅@10300001 m[10150000,10300001]=2@10300001",
        ),
    ],
    ids=["12 on the edge", "12 past it", "13", "16", "17"],
)
def test_histories_of_bugs_that_shipped_have_the_right_result(arrivals: str, gap: int, expected: str) -> None:
    assert changelog(arrivals, SESSIONS, gap_ms=gap) == expected


# Aggregates.


@pytest.mark.parametrize(("aggregate", "merged"), [("count", "3"), ("sum", "10"), ("min", "2"), ("max", "5")])
def test_every_aggregate_survives_a_merge_of_three(aggregate: str, merged: str) -> None:
    emitted = changelog("k=5@0 k=2@20 k=3@10", SESSIONS, grace_ms=50, aggregate=aggregate)
    assert emitted.endswith(f"k[0,0]=∅@0 k[20,20]=∅@20 k[0,20]={merged}@20")


def test_the_aggregator_and_the_merger_get_the_key() -> None:
    keyed = Aggregate(
        "keyed",
        initializer=lambda: "",
        aggregator=lambda key, value, text: f"{text}{key}{value}",
        merger=lambda key, one, two: f"{one}<{key}>{two}",
    )
    assert declared("k=1@0 k=2@5", SessionWindows(10, aggregate=keyed)).endswith("k[0,5]=<k>k1k2@5")


def test_a_reducers_first_value_stands_for_itself_and_it_merges_in_session_order_and_takes_the_new_value_last() -> None:
    windows = SessionWindows(10, 50, aggregate=reduce(lambda one, two: f"({one}{two})"))
    assert declared("k=a@20 k=b@0 k=c@10", windows) == (
        "k[20,20]=a@20 k[0,0]=b@0 k[0,0]=∅@0 k[20,20]=∅@20 k[0,20]=((ba)c)@20"
    )


def test_a_list_emitted_earlier_does_not_change_afterwards() -> None:
    first = play(history_of("k=a@0 k=b@0", SESSIONS, aggregate="list")).entries[0].output
    assert isinstance(first, Change)
    assert first.value == ["a"]


# What is late.


@pytest.mark.parametrize(
    ("arrivals", "options", "last"),
    [
        ("z@10 k@0", {}, "k[0,0]=1@0"),
        ("z@11 k@0", {}, "k!late"),
        ("~11 k@0", {}, "k!late"),
        ("k@0 k@11 k@0", {}, "k!late"),
        ("k@0 z@15 k@0", {"grace_ms": 5}, "k[0,0]=2@0"),
        ("k@0 z@16 k@0", {"grace_ms": 5}, "k!late"),
        ("k@10 z@20 k@0", {}, "k[10,10]=∅@10 k[0,10]=2@10"),
        ("k@20 z@30 k@10 k@0", {}, "k[10,20]=∅@20 k[0,20]=3@20"),
        ("k@20 z@30 k@9", {}, "k!late"),
        ("j@10 z@20 k@0", {}, "k!late"),
        ("z@21 k@10 k@20", {}, "k[20,20]=1@20"),
        ("k@10 z@20 k@9", {"late": "own"}, "k!late"),
        ("k@10 z@20 k@10", {"late": "own"}, "k[10,10]=2@10"),
        ("z@1000 k@0", {"clock": "batch"}, "k[0,0]=1@0"),
        ("z@1000 k@0", {"clock": "batch", "late": "own"}, "k[0,0]=1@0"),
        ("z@1000 | k@0", {"clock": "batch"}, "k!late"),
        ("~1000 k@0", {"clock": "batch"}, "k[0,0]=1@0"),
        ("~1000 k@0 | k@0", {"clock": "batch"}, "k!late"),
        ("k@0 | | k@10", {}, "k[0,0]=∅@0 k[0,10]=2@10"),
    ],
    ids=[
        "on the edge",
        "past it",
        "by a clock advance",
        "beside a closed session",
        "on the edge of grace",
        "past grace",
        "rescued by a live session",
        "rescued by a rescued one",
        "out of the live session's reach",
        "another key's session rescues nothing",
        "a dropped record leaves no trace",
        "by its own timestamp",
        "on the edge by its own timestamp",
        "never within a batch",
        "never within a batch by its own timestamp",
        "after the cut",
        "a clock advance within the batch",
        "a clock advance and a cut",
        "a cut means nothing to stream time",
    ],
)
def test_a_record_is_late_when_its_session_ends_before_the_clock_less_gap_and_grace(
    arrivals: str, options: dict[str, Any], last: str
) -> None:
    assert steps(arrivals, SESSIONS, **options)[-1] == last


# Emit on close: the final value alone, once.


@pytest.mark.parametrize(
    ("arrivals", "options", "expected"),
    [
        ("a@0 a@5 z@15 z@16", {}, ["-", "-", "-", "a[0,5]=2@5"]),
        ("a@0 ~10 ~11", {}, ["-", "-", "a[0,0]=1@0"]),
        ("b@1 a@1 c@0 ~100", {}, ["-", "-", "-", "c[0,0]=1@0 a[1,1]=1@1 b[1,1]=1@1"]),
        ("a@0 ~10 b@100 c@0", {}, ["-", "-", "a[0,0]=1@0", "c!late"]),
        ("a@0 z@11 | z@11 | z@11", {"clock": "batch"}, ["-", "-", "a[0,0]=1@0", "-"]),
    ],
    ids=[
        "by the record that closes it",
        "by a clock advance, and not on the edge",
        "by end, then by key",
        "before the record that is late",
        "after the cut",
    ],
)
def test_a_session_is_emitted_once_when_it_closes(arrivals: str, options: dict[str, Any], expected: list[str]) -> None:
    assert steps(arrivals, SESSIONS, emit="close", **options) == expected


# A closed session is final.


OVERLAP = "a@0 a@5 z@16 a@15 a@5 ~100"


@pytest.mark.parametrize("retention", [10, 11, 1000])
def test_a_closed_session_is_neither_merged_nor_revised_whatever_the_retention(retention: int) -> None:
    opened = ["a[0,0]=1@0", "a[0,0]=∅@0 a[0,5]=2@5", "z[16,16]=1@16", "a[15,15]=1@15"]
    kept = {"retention_ms": retention}
    assert steps(OVERLAP, SESSIONS, **kept) == [*opened, "a[15,15]=∅@15 a[5,15]=2@15", "-"]
    assert steps(OVERLAP, SESSIONS, late="own", **kept) == [*opened, "a!late", "-"]
    closed = ["-", "-", "a[0,5]=2@5", "-", "-", "a[5,15]=2@15 z[16,16]=1@16"]
    assert steps(OVERLAP, SESSIONS, emit="close", **kept) == closed
    bridge = steps("a@0 a@12 a@6", SESSIONS, **kept)
    assert bridge == ["a[0,0]=1@0", "a[12,12]=1@12", "a[12,12]=∅@12 a[6,12]=2@12"]


# The meaning.


def test_the_meaning_leaves_closed_sessions_alone_and_under_close_it_has_no_others() -> None:
    played = play(history_of("a@0 a@5 z@16 a@15 a@5", SESSIONS))
    closed = {("a", (0, 5)): (2, 5)}
    every = {**closed, ("a", (5, 15)): (2, 15), ("z", (16, 16)): (1, 16)}
    assert meaning(SessionWindows(10), played.accepted, played.clock) == every
    assert meaning(SessionWindows(10, emit="close"), played.accepted, played.clock) == closed
    assert result_of(f"{OVERLAP} a@90", SESSIONS, emit="close") == every


# Laws; those of every operator are in tests/exhaustive.


@settings(QUIET, max_examples=100)
@given(declarations(), st.sampled_from([0, 1, 1000]), st.data())
def test_it_folds_to_the_meaning_under_any_options(options: dict[str, Any], longer: int, data: st.DataObject) -> None:
    """That the retention is no part of the answer is asked too."""
    history = data.draw(histories(HistorySettings(SESSIONS, options, (20, 45, 45, 90, 140), 16, ("a", "ab", "b"))))
    assert not broken_prefix(history)
    kept = {**options, "retention_ms": options["gap_ms"] + options["grace_ms"] + longer}
    assert play(History(SESSIONS, kept, history.lines, history.clock)).entries == play(history).entries


def connected(timestamps: Sequence[int], gap: int) -> set[tuple[int, int]]:
    """The windows of the connected components of `no more than a gap apart`, found by spreading."""
    left, windows = set(timestamps), set()
    while left:
        component, frontier = set(), {left.pop()}
        while frontier:
            component |= frontier
            frontier = {other for other in left if any(abs(other - one) <= gap for one in frontier)}
            left -= frontier
        windows.add((min(component), max(component)))
    return windows


@QUIET
@given(st.lists(st.integers(0, 100)), st.integers(1, 12))
def test_when_nothing_is_late_sessions_are_the_connected_components(timestamps: list[int], gap: int) -> None:
    text = " ".join(f"k@{timestamp}" for timestamp in timestamps)
    result = play(history_of(text, SESSIONS, gap_ms=gap, grace_ms=1000)).result
    assert {window for _, window in result} == connected(timestamps, gap)
