from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.clocks import CLOCKS, BatchClock, StreamTime, make_clock
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, History
from streamproof.reference.core.operator import OPERATORS, operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Record

QUIET = settings(deadline=None, max_examples=40, derandomize=True, database=None)
TIMES = st.lists(st.integers(0, 100) | st.none())  # None is a cut


@QUIET
@given(TIMES)
def test_stream_time_is_the_largest_timestamp_and_the_batch_clock_that_before_the_last_cut(
    times: list[int | None],
) -> None:
    stream_time, batch = StreamTime(), BatchClock()
    seen = before_the_cut = 0
    for time in times:
        for clock in (stream_time, batch):
            clock.cut() if time is None else clock.observe(time)
        seen, before_the_cut = max(seen, time or 0), seen if time is None else before_the_cut
        assert (stream_time.now, batch.now) == (seen, before_the_cut)


@pytest.mark.parametrize("name", CLOCKS)
def test_two_clocks_do_not_share_what_they_have_seen(name: str) -> None:
    clock = make_clock(name)
    clock.observe(5)
    clock.cut()
    assert (clock.now, make_clock(name).now) == (5, 0)


@pytest.mark.parametrize("name", ["", "Batch"])
def test_an_unknown_clock_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(BadInput, match=f"unknown clock '{name}': use one of stream_time, batch"):
        make_clock(name)


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_record_without_a_value_moves_the_clock_of_every_operator_and_input(operator: str, name: str) -> None:
    for profile in registration_of(operator).profiles.values():
        options = {option: "count" if option == "aggregate" else value for option, value in profile.items()}
        inputs = operator_named(operator).declare(options).inputs
        for at, one in enumerate(inputs):
            records = [Record(one, "a", None, 10 + at), CUT, Record(one, "a", None, 3)]
            assert play(History(operator, options, tuple(records), name)).clock == 10 + at
