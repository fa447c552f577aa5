from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.reference.core.clocks import CLOCKS, BatchClock, StreamTime, make_clock
from streamproof.reference.core.errors import BadInput

QUIET = settings(deadline=None, max_examples=40, derandomize=True, database=None)
TIMES = st.lists(st.integers(0, 100) | st.none())  # None is a cut


@pytest.mark.parametrize("name", CLOCKS)
def test_a_clock_that_has_seen_nothing_says_0(name: str) -> None:
    assert make_clock(name).now == 0


def test_stream_time_moves_with_the_record() -> None:
    clock = StreamTime()
    clock.observe(5)
    assert clock.now == 5


def test_stream_time_ignores_cuts() -> None:
    clock = StreamTime()
    clock.observe(5)
    clock.cut()
    assert clock.now == 5


def test_the_batch_clock_waits_for_the_cut() -> None:
    clock = BatchClock()
    clock.observe(5)
    assert clock.now == 0


def test_the_batch_clock_moves_at_the_cut_to_the_largest_timestamp() -> None:
    clock = BatchClock()
    clock.observe(5)
    clock.observe(3)
    clock.cut()
    assert clock.now == 5


def test_a_cut_after_an_empty_batch_leaves_the_batch_clock_where_it_is() -> None:
    clock = BatchClock()
    clock.observe(5)
    clock.cut()
    clock.cut()
    assert clock.now == 5


def test_a_batch_of_older_records_does_not_move_the_batch_clock_back() -> None:
    clock = BatchClock()
    clock.observe(5)
    clock.cut()
    clock.observe(3)
    clock.cut()
    assert clock.now == 5


@pytest.mark.parametrize("name", CLOCKS)
@QUIET
@given(times=TIMES)
def test_no_clock_goes_back(name: str, times: list[int | None]) -> None:
    clock, before = make_clock(name), 0
    for time in times:
        clock.cut() if time is None else clock.observe(time)
        assert clock.now >= before
        before = clock.now


@QUIET
@given(TIMES)
def test_at_a_cut_both_clocks_agree(times: list[int | None]) -> None:
    stream_time, batch = StreamTime(), BatchClock()
    for time in times:
        for clock in (stream_time, batch):
            clock.cut() if time is None else clock.observe(time)
    batch.cut()
    assert batch.now == stream_time.now


def test_the_two_clocks_do_not_share_what_they_have_seen() -> None:
    make_clock("stream_time").observe(5)
    assert make_clock("stream_time").now == 0


@pytest.mark.parametrize("name", ["", "watermark", "Batch"])
def test_an_unknown_clock_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(BadInput, match=f"unknown clock '{name}': use one of stream_time, batch"):
        make_clock(name)
