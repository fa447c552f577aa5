from __future__ import annotations

from typing import Any

import pytest
from notation import changelog, histories_drawn, history_of, result_of, rows_of, steps
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change

TABLE = "windowed_table"
SUM: dict[str, Any] = {"size_ms": 10, "aggregate": "sum"}


# The windowed aggregate alone.


def test_each_change_of_a_window_is_emitted_by_key_and_window() -> None:
    assert steps("k=1@1 k=2@5 j=7@5 k=4@12", TABLE, **SUM) == [
        "k[0,10]=1@1",
        "k[0,10]=3@5",
        "j[0,10]=7@5",
        "k[10,20]=4@12",
    ]


COUNTED = {
    "the end of a window is exclusive": ({}, "k@9 k@10", "k[10,20]=1@10"),
    "a record is in all windows that hold its timestamp": ({"step_ms": 5}, "k@12", "k[5,15]=1@12 k[10,20]=1@12"),
    "no window starts before 0": ({"step_ms": 5}, "k@3", "k[0,10]=1@3"),
    "a window is stamped with the largest timestamp": ({}, "k@5 k@1", "k[0,10]=2@5"),
    "a window is open until its end": ({}, "k@0 z@9 k@1", "k[0,10]=2@1"),
    "a window is closed at its end": ({}, "k@0 z@10 k@1", "k!late"),
    "a window is open until its grace is over": ({"grace_ms": 5}, "k@0 z@14 k@1", "k[0,10]=2@1"),
    "a window is closed when its grace is over": ({"grace_ms": 5}, "k@0 z@15 k@1", "k!late"),
    "a record goes into those of its windows that are open": ({"step_ms": 5}, "z@12 k@7", "k[5,15]=1@7"),
}


@pytest.mark.parametrize(("options", "text", "last"), COUNTED.values(), ids=COUNTED)
def test_a_record_is_counted_in_its_open_windows(options: dict[str, Any], text: str, last: str) -> None:
    assert steps(text, TABLE, size_ms=10, **options)[-1] == last


CLOSE = [
    ("k=1@1 k=2@5 ~9", "-", 0),
    ("k=1@1 k=2@5 ~10", "k[0,10]=3@5", 0),
    ("k=1@1 k=2@5 ~14", "-", 5),
    ("k=1@1 k=2@5 k=4@15", "k[0,10]=3@5", 5),
    ("b=1@1 a=2@1 a=3@12 b=4@12 ~99", "a[0,10]=2@1 b[0,10]=1@1 a[10,20]=3@12 b[10,20]=4@12", 5),
]


@pytest.mark.parametrize(("text", "last", "grace"), CLOSE)
def test_on_close_a_window_is_emitted_once_by_end_then_key(text: str, last: str, grace: int) -> None:
    assert steps(text, TABLE, emit="close", grace_ms=grace, **SUM)[-1] == last


def test_without_grace_the_windows_emitted_on_close_are_those_of_samza() -> None:
    for history in histories_drawn("window_aggregate", 100, options={"size": 10, "step": 5, "aggregate": "sum"}):
        mine = history_of("", TABLE, history.clock, emit="close", step_ms=5, **SUM).with_lines(history.lines)
        assert [entry.output for entry in play(mine).entries] == [entry.output for entry in play(history).entries]


# WTable by KTable (left).

WITH_TABLE = [
    ("E k=1@1", "k[0,10]=(1,null)@1"),
    ("R k=x@2", "k[0,10]=(1,x)@2"),
    ("E k=2@12", "k[10,20]=(2,x)@12"),
    ("R k=y@3", "k[0,10]=(1,y)@3 k[10,20]=(2,y)@12"),  # closed windows too, by start
    ("R j=z@3", "-"),
    ("R k=∅@4", "k[0,10]=(1,null)@4 k[10,20]=(2,null)@12"),
    ("R k=∅@5", "k[0,10]=(1,null)@5 k[10,20]=(2,null)@12"),
    ("E k=3@13", "k[10,20]=(5,null)@13"),
    ("E k=9@1", "k!late"),
]


def test_a_windowed_table_is_joined_with_a_table_by_key_and_both_drive() -> None:
    rows_of(WITH_TABLE, TABLE, with_="table", **SUM)


def test_a_change_of_the_table_touches_the_windows_by_start_whichever_came_first() -> None:
    text = "E k=1@12 k=2@3 R k=x@13"
    assert steps(text, TABLE, with_="table", grace_ms=50, **SUM)[-1] == "k[0,10]=(2,x)@13 k[10,20]=(1,x)@13"


def test_on_close_a_window_joins_the_table_once_it_is_emitted() -> None:
    text = "E k=1@1 R k=x@2 ~10 R k=y@3"
    assert steps(text, TABLE, with_="table", emit="close", **SUM) == ["-", "-", "k[0,10]=(1,x)@2", "k[0,10]=(1,y)@3"]


# WTable by WTable (inner, left, outer), under a shifter.

WITH_WINDOWS = [
    # arrival, inner, left, outer
    ("E k=1@1", "-", "k[0,10]=(1,null)@1", "k[0,10]=(1,null)@1"),
    ("R k=2@3", "k[0,10]=(1,2)@3", "k[0,10]=(1,2)@3", "k[0,10]=(1,2)@3"),
    ("R k=4@12", "-", "-", "k[10,20]=(null,4)@12"),
    ("E k=8@13", "k[10,20]=(8,4)@13", "k[10,20]=(8,4)@13", "k[10,20]=(8,4)@13"),
    ("R k=1@12", "k[10,20]=(8,5)@13", "k[10,20]=(8,5)@13", "k[10,20]=(8,5)@13"),
    ("R j=1@12", "-", "-", "j[10,20]=(null,1)@12"),
    ("R k=1@2", "k!late", "k!late", "k!late"),
]


@pytest.mark.parametrize(("join", "column"), [("inner", 1), ("left", 2), ("outer", 3)])
def test_two_windowed_tables_are_joined_on_the_same_window(join: str, column: int) -> None:
    rows = [(row[0], row[column]) for row in WITH_WINDOWS]
    rows_of(rows, TABLE, with_="windowed_table", join=join, **SUM)


def test_two_windowed_tables_have_an_inner_join_by_default() -> None:
    assert changelog("E k=1@1", TABLE, with_="windowed_table", **SUM) == ""


SHIFTED = [
    # last week's: the left window joins the right one ten earlier
    (-10, "R k=1@3 E k=2@12", "k[10,20]=(2,1)@12"),
    (-10, "R k=1@3 E k=2@3", "-"),
    (10, "E k=2@3 R k=1@12", "k[0,10]=(2,1)@12"),
    (0, "E k=2@3 R k=1@4", "k[0,10]=(2,1)@4"),
]


@pytest.mark.parametrize(("shift", "text", "last"), SHIFTED)
def test_a_shifter_says_which_window_of_the_other_table_a_window_joins(shift: int, text: str, last: str) -> None:
    assert steps(text, TABLE, with_="windowed_table", shift_ms=shift, grace_ms=50, **SUM)[-1] == last


def test_an_unmatched_right_window_is_emitted_under_the_left_window_and_before_0_there_is_none() -> None:
    options = {"with": "windowed_table", "join": "outer", "shift_ms": 10}
    assert changelog("R k=1@12 k=2@3", TABLE, grace_ms=50, **options, **SUM) == "k[0,10]=(null,1)@12"


def test_with_close_a_window_that_both_sides_close_is_emitted_once() -> None:
    text = "E k=1@1 R k=2@2 ~10"
    assert steps(text, TABLE, with_="windowed_table", join="outer", emit="close", **SUM)[-1] == "k[0,10]=(1,2)@2"


# Look-ups: (key, value) → window. KStream by WTable, KTable by WTable (left).

STREAM_LOOKUP = [
    ("R k=a:0@0", "k=(a:0,null)@0"),
    ("E k=1@1", "-"),
    ("R k=b:0@5", "k=(b:0,1)@5"),
    ("E k=2@2", "-"),  # the stream alone drives
    ("R k=c:0@3", "k=(c:0,3)@3"),
    ("R k=d:10@3", "k=(d:10,null)@3"),
    ("R k=e:null@3", "k=(e:null,null)@3"),
    ("R k=f:3@3", "k=(f:3,null)@3"),  # no window starts there
    ("R j=g:0@3", "j=(g:0,null)@3"),
    ("R k=∅@3", "k!null value"),
]


def test_a_stream_looks_a_window_up_and_drives_alone() -> None:
    rows_of(STREAM_LOOKUP, TABLE, with_="stream_lookup", window_start="start", **SUM)


TABLE_LOOKUP = [
    ("R k=a:0@0", "k=(a:0,null)@0"),
    ("E k=1@1", "k=(a:0,1)@1"),
    ("E k=2@2", "k=(a:0,3)@2"),
    ("E k=4@12", "-"),
    ("R k=b:10@5", "k=(b:10,4)@12"),
    ("E k=8@13", "k=(b:10,12)@13"),
    ("R k=c:null@14", "k=(c:null,null)@14"),
    ("E k=1@15", "-"),
    ("R k=∅@16", "k=∅@16"),
    ("R k=∅@17", "-"),
    ("E k=1@17", "-"),
]


def test_a_table_looks_a_window_up_and_both_drive() -> None:
    rows_of(TABLE_LOOKUP, TABLE, with_="table_lookup", window_start="start", **SUM)


def test_on_close_a_window_is_there_to_be_looked_up_once_it_is_emitted() -> None:
    options = {"with": "stream_lookup", "window_start": "start", "emit": "close"}
    assert steps("E k=1@1 R k=a:0@2 k=b:0@10", TABLE, **options, **SUM) == ["-", "k=(a:0,null)@2", "k=(b:0,1)@10"]


# toStream.


def test_a_window_may_go_into_the_key_and_the_result_is_read_as_a_table() -> None:
    text = "k=1@1 k=2@5 k=4@12"
    assert changelog(text, TABLE, to_stream="window_in_key", **SUM) == "k@0=1@1 k@0=3@5 k@10=4@12"
    assert result_of(text, TABLE, to_stream="window_in_key", **SUM) == {("k@0", None): (3, 5), ("k@10", None): (4, 12)}


def test_a_window_may_go_into_the_value_and_the_result_is_joinable_by_the_key() -> None:
    assert result_of("k=1@1 k=2@5", TABLE, to_stream="window_in_value", **SUM) == [
        Change("k", None, {"value": 1, "window": [0, 10]}, 1),
        Change("k", None, {"value": 3, "window": [0, 10]}, 5),
    ]


def test_the_result_of_a_join_is_re_keyed_too() -> None:
    options = {"with": "table", "to_stream": "window_in_key"}
    assert changelog("E k=1@1 R k=x@2", TABLE, **options, **SUM) == "k@0=(1,null)@1 k@0=(1,x)@2"


def test_a_clock_that_jumps_past_two_ends_emits_what_it_would_have_emitted_at_each() -> None:
    options = {"with": "windowed_table", "join": "left", "shift_ms": 10, "emit": "close"}
    for grace in (0, 5):
        text = "E k=1@1 R k=2@12 ~99"
        assert changelog(text, TABLE, grace_ms=grace, **options, **SUM) == "k[0,10]=(1,null)@1 k[0,10]=(1,2)@12"
