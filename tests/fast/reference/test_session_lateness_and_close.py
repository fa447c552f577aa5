"""Which records of session windows are late, when a session is emitted on close, and that it is final then."""

from __future__ import annotations

from typing import Any

import pytest
from session_histories import changelog, history_of, shown
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.play import play
from streamproof.reference.definitions.windows import SessionWindows
from streamproof.reference.session_windows import meaning


def timed(text: str, clock: str = "stream_time", **options: Any) -> list[tuple[int, int, str]]:
    return [
        (entry.arrival, entry.batch, shown(entry.output)) for entry in play(history_of(text, clock, **options)).entries
    ]


# What is late.


@pytest.mark.parametrize(
    ("arrivals", "options", "expected"),
    [
        ("k@0 z@10 k@0", {}, "k[0,0]=1 z[10,10]=1 k[0,0]=2"),
        ("k@0 z@11 k@0", {}, "k[0,0]=1 z[11,11]=1 k dropped: late"),
        ("k@0 z@15 k@0", {"grace_ms": 5}, "k[0,0]=1 z[15,15]=1 k[0,0]=2"),
        ("k@0 z@16 k@0", {"grace_ms": 5}, "k[0,0]=1 z[16,16]=1 k dropped: late"),
        ("z@11 k@0", {}, "z[11,11]=1 k dropped: late"),
        ("z@10 k@0", {}, "z[10,10]=1 k[0,0]=1"),
        ("k@0 k@11 k@0", {}, "k[0,0]=1 k[11,11]=1 k dropped: late"),
        ("~11 k@0", {}, "k dropped: late"),
    ],
)
def test_a_record_is_late_when_its_session_ends_before_the_clock_less_gap_and_grace(
    arrivals: str, options: dict[str, Any], expected: str
) -> None:
    assert changelog(arrivals, **options) == expected


def test_lateness_is_that_of_the_merged_session_so_a_live_one_rescues_an_old_record() -> None:
    assert changelog("k@10 z@20 k@0") == "k[10,10]=1 z[20,20]=1 k[10,10]=∅ k[0,10]=2"


def test_a_rescued_record_may_rescue_another() -> None:
    assert changelog("k@20 z@30 k@10 k@0") == ("k[20,20]=1 z[30,30]=1 k[20,20]=∅ k[10,20]=2 k[10,20]=∅ k[0,20]=3")


def test_a_record_out_of_the_live_sessions_reach_is_not_rescued() -> None:
    assert changelog("k@20 z@30 k@9") == "k[20,20]=1 z[30,30]=1 k dropped: late"


def test_another_keys_session_rescues_nothing() -> None:
    assert changelog("j@10 z@20 k@0") == "j[10,10]=1 z[20,20]=1 k dropped: late"


def test_a_dropped_record_leaves_no_trace() -> None:
    assert changelog("z@21 k@10 k@20") == "z[21,21]=1 k dropped: late k[20,20]=1"


def test_own_lateness_drops_a_record_that_the_merged_session_would_rescue() -> None:
    assert changelog("k@10 z@20 k@9", late="own") == "k[10,10]=1 z[20,20]=1 k dropped: late"


def test_own_lateness_takes_a_record_exactly_on_the_edge() -> None:
    assert changelog("k@10 z@20 k@10", late="own") == "k[10,10]=1 z[20,20]=1 k[10,10]=2"


@pytest.mark.parametrize("late", ["merged", "own"])
def test_within_a_batch_nothing_is_late_under_the_batch_clock(late: str) -> None:
    assert changelog("z@1000 k@0", "batch", late=late) == "z[1000,1000]=1 k[0,0]=1"


def test_after_the_cut_the_batch_clock_makes_records_late() -> None:
    assert changelog("z@1000 | k@0", "batch") == "z[1000,1000]=1 k dropped: late"


def test_a_clock_advance_moves_the_batch_clock_at_the_cut_only() -> None:
    assert changelog("~1000 k@0 | k@0", "batch") == "k[0,0]=1 k dropped: late"


def test_a_cut_means_nothing_to_stream_time() -> None:
    assert changelog("k@0 | | k@10 | k@20", grace_ms=5) == changelog("k@0 k@10 k@20", grace_ms=5)


# Emit on close: the final value alone, once.


def test_a_session_is_emitted_by_the_record_that_closes_it() -> None:
    assert timed("a@0 a@5 z@15 z@16", emit="close") == [(3, 0, "a[0,5]=2")]


def test_a_session_is_not_emitted_on_its_edge() -> None:
    assert changelog("a@0 z@10", emit="close") == ""


def test_a_clock_advance_closes_sessions() -> None:
    assert timed("a@0 ~10 ~11", emit="close") == [(2, 0, "a[0,0]=1")]


def test_closing_results_come_by_end_and_then_by_key() -> None:
    assert changelog("b@1 a@1 c@0 d@2 ~100", emit="close") == "c[0,0]=1 a[1,1]=1 b[1,1]=1 d[2,2]=1"


def test_a_record_emits_what_it_closes_before_it_is_dropped() -> None:
    assert changelog("a@0 ~10 b@100 c@0", emit="close") == "a[0,0]=1 c dropped: late"


def test_under_the_batch_clock_a_cut_emits_what_it_closes_with_the_batch_that_follows() -> None:
    assert timed("a@0 z@11 | z@11 | z@11", "batch", emit="close") == [(2, 1, "a[0,0]=1")]


def test_the_end_of_the_history_moves_the_batch_clock_once_more() -> None:
    assert timed("a@0 | z@11", "batch", emit="close") == [(1, 1, "a[0,0]=1")]


def test_at_the_end_what_is_open_stays_open() -> None:
    assert changelog("a@0 | a@5", "batch", emit="close") == ""


@pytest.mark.parametrize("clock", ["stream_time", "batch"])
def test_each_session_is_emitted_once(clock: str) -> None:
    assert changelog("a@0 | ~11 | ~12 | ~50 | ~1000", clock, emit="close", retention_ms=500) == "a[0,0]=1"


def test_a_merged_session_is_emitted_and_its_parts_are_not() -> None:
    assert changelog("a@0 a@20 a@10 ~100", emit="close", grace_ms=50) == "a[0,20]=3"


def test_a_session_that_grew_inside_is_emitted_once_with_all_its_records() -> None:
    assert changelog("a@0 a@5 a@3 a@3 ~100", emit="close") == "a[0,5]=4"


def test_a_table_of_closed_sessions_keeps_two_sessions_of_a_key() -> None:
    assert play(history_of("a@0 a@50 ~100", emit="close")).result == {
        ("a", (0, 0)): (1, 0),
        ("a", (50, 50)): (1, 50),
    }


# A closed session is final.


OVERLAP = "a@0 a@5 z@16 a@15 a@5 ~100"


@pytest.mark.parametrize("retention", [10, 11, 1000])
def test_a_closed_session_is_neither_merged_nor_revised_whatever_the_retention(retention: int) -> None:
    assert changelog(OVERLAP, retention_ms=retention) == (
        "a[0,0]=1 a[0,0]=∅ a[0,5]=2 z[16,16]=1 a[15,15]=1 a[15,15]=∅ a[5,15]=2"
    )


@pytest.mark.parametrize("retention", [10, 11, 1000])
def test_beside_a_closed_session_a_new_one_is_emitted_with_its_own_records(retention: int) -> None:
    assert timed(OVERLAP, retention_ms=retention, emit="close") == [
        (2, 0, "a[0,5]=2"),
        (5, 0, "a[5,15]=2"),
        (5, 0, "z[16,16]=1"),
    ]


@pytest.mark.parametrize("retention", [10, 11, 1000])
def test_own_lateness_lets_nothing_into_a_closed_session(retention: int) -> None:
    assert changelog(OVERLAP, retention_ms=retention, late="own") == (
        "a[0,0]=1 a[0,0]=∅ a[0,5]=2 z[16,16]=1 a[15,15]=1 a dropped: late"
    )


@pytest.mark.parametrize("retention", [10, 1000])
def test_a_record_that_would_bridge_a_closed_session_and_an_open_one_joins_the_open_one(retention: int) -> None:
    assert changelog("a@0 a@12 a@6", retention_ms=retention) == "a[0,0]=1 a[12,12]=1 a[12,12]=∅ a[6,12]=2"


@pytest.mark.parametrize("retention", [10, 1000])
def test_the_meaning_too_leaves_closed_sessions_alone(retention: int) -> None:
    history = history_of(OVERLAP, retention_ms=retention)
    played = play(history)
    windows = SessionWindows(10, retention_ms=retention)
    assert meaning(windows, played.accepted, played.clock) == {
        ("a", (0, 5)): (2, 5),
        ("a", (5, 15)): (2, 15),
        ("z", (16, 16)): (1, 16),
    }


def test_a_retention_less_than_gap_and_grace_is_refused() -> None:
    with pytest.raises(BadInput, match=r"less than gap \+ grace \(15\)"):
        play(history_of("a@0", grace_ms=5, retention_ms=14))
