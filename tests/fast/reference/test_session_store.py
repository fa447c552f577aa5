from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.reference.core.errors import BadInput
from streamproof.reference.session_store import MIN_SEGMENT_INTERVAL_MS, Session, SessionStore

QUIET = settings(deadline=None, max_examples=40, derandomize=True, database=None)


@pytest.mark.parametrize(
    ("retention", "segments", "minimum", "interval"),
    [
        (2000, 3, 1, 1000),
        (2001, 3, 1, 1000),
        (2000, 2, 1, 2000),
        (2000, 5, 1, 500),
        (2000, 3, 1000, 1000),
        (2000, 3, 1001, 1001),
        (0, 3, 60_000, 60_000),
        (10, 3, MIN_SEGMENT_INTERVAL_MS, 60_000),
    ],
)
def test_a_segment_covers_its_share_of_the_retention_but_no_less_than_the_minimum(
    retention: int, segments: int, minimum: int, interval: int
) -> None:
    assert SessionStore(retention, segments, minimum).interval_ms == interval


TIMES = st.sampled_from([0, 1, 4, 5, 9, 10, 11, 19, 20, 30, 400])
MOVES = st.tuples(st.sampled_from(["put", "put", "remove", "advance"]), st.sampled_from(["k", "kk"]), TIMES, TIMES)


@settings(QUIET, max_examples=300)
@given(st.lists(MOVES, max_size=25), st.sampled_from([0, 10, 20]), st.integers(2, 3), st.sampled_from([1, 5, 10]))
def test_a_session_is_kept_until_all_that_its_segment_can_hold_has_expired(
    moves: list[tuple[str, str, int, int]], retention: int, segments: int, minimum: int
) -> None:
    sessions, kept, latest = SessionStore(retention, segments, minimum), dict[tuple[str, int, int], object](), 0

    def is_live(end: int) -> bool:
        last_of_segment = (end // sessions.interval_ms + 1) * sessions.interval_ms - 1
        return last_of_segment >= latest - retention

    for what, key, one, other in moves:
        start, end = sorted((one, other))
        session = Session(end, start, object())  # aggregates need not be comparable
        if what == "put":
            assert sessions.put(key, session) == is_live(end)
            kept |= {(key, end, start): session.aggregate} if is_live(end) else {}
        elif what == "remove":
            sessions.remove(key, session)
            kept.pop((key, end, start), None)
        else:
            sessions.advance(one)
            latest = max(latest, one)  # a clock that goes back revives nothing
            kept = {at: aggregate for at, aggregate in kept.items() if is_live(at[1])}
        found = [(at[1:], of) for at, of in kept.items() if at[0] == key and at[1] >= one and at[2] <= other]
        assert [(at[:2], at[2]) for at in sessions.fetch(key, one, other)] == sorted(found, key=lambda it: it[0])
    assert set().union(*sessions.segments.values()) == {*kept}


def test_a_store_of_one_segment_is_refused() -> None:
    with pytest.raises(BadInput, match="segments is 1: a store needs two or more"):
        SessionStore(10, segments=1)
