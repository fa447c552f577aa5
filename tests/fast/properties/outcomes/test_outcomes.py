from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from math import nan
from typing import Any

import pytest
from history_strategies import histories
from hypothesis import given, settings
from streamproof.properties.generators.draws import HistorySettings
from streamproof.properties.outcomes.outcomes import Difference, Grain, Outcome, differences
from streamproof.reference.core.history import CUT, History, Line
from streamproof.reference.core.play import Entry, play
from streamproof.reference.core.records import Change, Dropped, Output

QUIET = settings(deadline=None, max_examples=25, derandomize=True, database=None)

ONE = Change("a", (0, 0), 1, 0)
GONE = Change("a", (0, 0), None, 0)
TWO = Change("a", (0, 5), 2, 5)
OTHER_GONE = Change("a", (20, 20), None, 20)
MERGED = Change("a", (0, 20), 3, 20)
OTHER_KEY = Change("b", (0, 0), 1, 0)
LATE = Dropped("a", "late")


def outcome(*outputs: Output, grain: Grain = Grain.ARRIVAL, knows_dropped: bool = True, name: str = "h") -> Outcome:
    """All outputs of one arrival in one batch."""
    arrival = 0 if grain is Grain.ARRIVAL else -1
    return Outcome(name, grain, [Entry(arrival, 0, output) for output in outputs], knows_dropped=knows_dropped)


def expected(left: Iterable[Output], right: Iterable[Output], grain: Grain, key: str = "a") -> list[Difference]:
    """What differs in arrival (or batch) 0: by arrival the order across keys, under no key, and then the key."""
    found = Difference(0, list(left), list(right), key, "h")
    return [found._replace(key=None), found] if grain is Grain.ARRIVAL else [found]


def at(*entries: tuple[int, int, Output], grain: Grain = Grain.ARRIVAL) -> Outcome:
    return Outcome("h", grain, [Entry(*entry) for entry in entries])


def at_the_end(table: dict[Any, Any]) -> Outcome:
    return Outcome("h", Grain.END, final=table, knows_dropped=False)


@pytest.mark.parametrize("grain", [Grain.ARRIVAL, Grain.BATCH])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((GONE, OTHER_GONE, MERGED), (OTHER_GONE, GONE, MERGED)),
        ((GONE, TWO), (GONE, GONE, TWO)),
        ((GONE, TWO), (TWO, GONE)),
        ((TWO,), (TWO, TWO)),
        ((ONE, GONE, TWO), (TWO,)),
        ((GONE,), ()),
    ],
    ids=["swapped", "tombstone twice", "tombstone last", "value twice", "said less", "a tombstone of nothing"],
)
def test_what_a_folded_map_hides_is_a_difference(
    left: tuple[Output, ...], right: tuple[Output, ...], grain: Grain
) -> None:
    one, other = outcome(*left, grain=grain), outcome(*right, grain=grain)
    assert one.result == other.result
    assert differences(one, other) == expected(left, right, grain)


@pytest.mark.parametrize("changed", [TWO._replace(value=3), TWO._replace(timestamp=6), TWO._replace(window=(1, 5))])
@pytest.mark.parametrize("grain", [Grain.ARRIVAL, Grain.BATCH])
def test_another_value_timestamp_or_window_is_a_difference(changed: Change, grain: Grain) -> None:
    assert differences(outcome(TWO, grain=grain), outcome(changed, grain=grain)) == expected([TWO], [changed], grain)


def of(value: Any) -> Outcome:
    """A value of key a that is emitted at once."""
    return outcome(ONE._replace(value=value))


def final(value: Any) -> Outcome:
    """A value of key a in a table at the end."""
    return at_the_end({("a", (0, 0)): (value, 0)})


BY_BATCH = {"grain": Grain.BATCH}
MIXED = [None, 1, "x", {"b": 1, "a": 2}, [1]]
EQUAL = {
    "the same": (outcome(GONE, TWO), outcome(GONE, TWO)),
    "nothing": (outcome(), outcome()),
    "by batch, another order of keys": (outcome(ONE, OTHER_KEY, **BY_BATCH), outcome(OTHER_KEY, ONE, **BY_BATCH)),
    "by arrival and by batch, another order of keys": (outcome(ONE, OTHER_KEY), outcome(OTHER_KEY, ONE, **BY_BATCH)),
    "by batch, another arrival": (at((0, 0, GONE), (3, 0, TWO)), at((-1, 0, GONE), (-1, 0, TWO), **BY_BATCH)),
    "the table alone": (outcome(ONE, GONE, TWO), at_the_end({("a", (0, 5)): (2, 5)})),
    "dropped records that the other doesn't know": (outcome(ONE, LATE), outcome(ONE, knows_dropped=False)),
    "by batch, dropped records that the other doesn't know": (
        outcome(ONE, LATE),
        outcome(ONE, knows_dropped=False, **BY_BATCH),
    ),
    "by batch, a dropped record elsewhere": (outcome(ONE, LATE, **BY_BATCH), outcome(LATE, ONE, **BY_BATCH)),
    "whole numbers and doubles": (of([1, {"x": 2}]), of([1.0, {"x": 2.0}])),
    "what is no number": (of({"x": nan}), of({"x": json.loads("NaN")})),
    "what is no number, at the end": (final([nan, 1]), final([json.loads("NaN"), 1])),
}
EQUAL_BAGS = {
    "lists": (of(["x", "y"]), of(["y", "x"])),
    "a list, and its table": (of(["x", "y"]), final(["y", "x"])),
    "values without an order": (of(MIXED), of(MIXED[::-1])),
    "days": (final([date(2020, 1, 2), date(2020, 1, 1)]), final([date(2020, 1, 1), date(2020, 1, 2)])),
    "large whole numbers and doubles": (final([10**16, 2]), final([2.0, 1e16])),
    "whole numbers and doubles deep within": (of([[2.0], [2.5], {"x": 3}]), of([{"x": 3.0}, [2.5], [2]])),
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("one", "other"), EQUAL.values(), ids=EQUAL)
def test_what_the_coarser_grain_cannot_tell_is_no_difference(one: Outcome, other: Outcome, turned: bool) -> None:
    assert differences(*((other, one) if turned else (one, other))) == []


@pytest.mark.parametrize(("one", "other"), EQUAL_BAGS.values(), ids=EQUAL_BAGS)
def test_bags_are_compared_without_their_order(one: Outcome, other: Outcome) -> None:
    assert differences(one, other, unordered=True) == []
    assert differences(one, other)


DIFFERENT = {
    "by batch, the order within a key across arrivals": (
        at((0, 0, GONE), (3, 0, TWO)),
        at((-1, 0, TWO), (-1, 0, GONE), **BY_BATCH),
    ),
    "the reason for dropping": (outcome(LATE), outcome(Dropped("a", "null value"))),
    "how many were dropped": (outcome(LATE, LATE), outcome(LATE)),
    "by batch, whether one was dropped": (outcome(ONE, LATE, **BY_BATCH), outcome(ONE)),
    "a truth and a text": (of(True), of("True")),
    "a truth and a number": (of({"x": [True]}), of({"x": [1]})),
    "a truth and a number, at the end": (final(False), final(0)),
    "whole numbers beyond 2^53": (of([2**53 + 1]), of([2**53])),
    "a whole number beyond 2^53 and its double, at the end": (final(2**53 + 1), final(2.0**53)),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_both_know_is_a_difference(one: Outcome, other: Outcome) -> None:
    assert differences(one, other)
    assert differences(one, other, unordered=True)


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (
            outcome(ONE, OTHER_KEY),
            outcome(OTHER_KEY, ONE),
            [Difference(0, [ONE, OTHER_KEY], [OTHER_KEY, ONE], None, "h")],
        ),
        (
            at((0, 0, ONE)),
            at((1, 0, ONE)),
            [Difference(*moved, key, "h") for moved in ((0, [ONE], []), (1, [], [ONE])) for key in (None, "a")],
        ),
        (
            at((0, 0, ONE)),
            at((-1, 1, ONE), **BY_BATCH),
            [Difference(0, [ONE], [], "a", "h"), Difference(1, [], [ONE], "a", "h")],
        ),
        (
            outcome(ONE, TWO),
            at_the_end({("a", (0, 5)): (3, 5), ("b", (0, 0)): (1, 0)}),
            [
                Difference(None, ONE, None, "a", "h"),
                Difference(None, TWO, TWO._replace(value=3), "a", "h"),
                Difference(None, None, OTHER_KEY, "b", "h"),
            ],
        ),
    ],
    ids=["by arrival, the order of keys", "by arrival, the arrival", "by batch, the batch", "at the end, each row"],
)
def test_differences_say_where_and_what_they_are(one: Outcome, other: Outcome, found: list[Difference]) -> None:
    assert differences(one, other) == found


def test_by_arrival_the_order_of_dropped_records_among_changes_is_part_of_the_answer() -> None:
    assert differences(outcome(ONE, LATE), outcome(LATE, ONE)) == [Difference(0, [ONE, LATE], [LATE, ONE], None, "h")]


def test_differences_come_by_time_and_then_by_key() -> None:
    left = at((1, 0, ONE), (0, 0, OTHER_KEY), (0, 0, ONE), (0, 0, Dropped(None, "null key")))
    by_batch = at(grain=Grain.BATCH)
    assert [(found.when, found.key) for found in differences(left, by_batch)] == [(0, None), (0, "a"), (0, "b")]
    by_arrival = [(found.when, found.key) for found in differences(left, at())]
    assert by_arrival == [(0, None), (0, None), (0, "a"), (0, "b"), (1, None), (1, "a")]


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (
            at((-1, 3, GONE), grain=Grain.BATCH),
            {"batch": 3, "key": "a", "window": [0, 0], "value": None, "timestamp": 0},
        ),
        (outcome(Change("a", None, 1, 0)), {"arrival": 0, "key": "a", "value": 1, "timestamp": 0}),
        (at((3, 0, LATE)), {"arrival": 3, "dropped": "late"}),
        (at((-1, 2, LATE), grain=Grain.BATCH), {"batch": 2, "key": "a", "dropped": "late"}),
    ],
    ids=["by batch", "without a window", "dropped", "dropped, by batch"],
)
def test_a_line_has_what_its_grain_knows(outcome: Outcome, line: dict[str, Any]) -> None:
    assert outcome.to_lines() == [{"history": "h", **line}]


def test_the_table_is_printed_in_key_order() -> None:
    later = Change("a", (9, 9), {"not": "ordered"}, 9)
    assert outcome(OTHER_KEY, later, ONE).table_lines() == [
        {"history": "h", "key": "a", "window": [0, 0], "value": 1, "timestamp": 0},
        {"history": "h", "key": "a", "window": [9, 9], "value": {"not": "ordered"}, "timestamp": 9},
        {"history": "h", "key": "b", "window": [0, 0], "value": 1, "timestamp": 0},
    ]


SETTINGS = HistorySettings("session_windows", {"gap_ms": 10, "grace_ms": 5}, (20, 45, 90))


@QUIET
@given(histories(SETTINGS))
def test_an_outcome_never_differs_from_itself_at_any_grain(history: History) -> None:
    fine = Outcome.of_play("h", play(history))
    by_batch = Outcome("h", Grain.BATCH, [entry._replace(arrival=-1) for entry in fine.entries])
    assert not differences(fine, fine)
    assert not differences(fine, by_batch)
    assert not differences(fine, at_the_end(fine.result))


@QUIET
@given(histories(SETTINGS))
def test_differences_do_not_depend_on_the_side(history: History) -> None:
    moved: list[Line] = [line for line in history.lines if line != CUT]
    one, other = (Outcome.of_play("h", play(each)) for each in (history, history.with_lines(moved)))
    turned = [found._replace(expected=found.actual, actual=found.expected) for found in differences(other, one)]
    assert differences(one, other) == turned
