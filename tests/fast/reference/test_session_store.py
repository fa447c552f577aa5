from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.reference.core.errors import BadInput
from streamproof.reference.session_store import MIN_SEGMENT_INTERVAL_MS, Session, SessionStore

QUIET = settings(deadline=None, max_examples=40, derandomize=True, database=None)


def store(retention: int = 2000, segments: int = 3, minimum: int = 1, *windows: tuple[int, int]) -> SessionStore:
    made = SessionStore(retention, segments, minimum)
    for start, end in windows:
        made.put("k", Session(end, start, f"{start}-{end}"))
    return made


def windows_of(sessions: list[Session]) -> list[tuple[int, int]]:
    return [session.window for session in sessions]


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


@pytest.mark.parametrize(("end", "index"), [(0, 0), (999, 0), (1000, 1), (2000, 2)])
@pytest.mark.parametrize("start", [0, 999])
def test_the_segment_of_a_session_is_known_by_its_end_alone(start: int, end: int, index: int) -> None:
    assert list(store(2000, 3, 1, (start, end)).segments) == [index]


def test_a_fetch_finds_the_sessions_of_its_key_alone() -> None:
    sessions = store(2000, 3, 1, (0, 5))
    sessions.put("kk", Session(5, 0, "other"))
    assert [session.aggregate for session in sessions.fetch("k", 0, 10)] == ["0-5"]


def test_put_replaces_the_session_of_the_same_window() -> None:
    sessions = store(2000, 3, 1, (0, 5))
    sessions.put("k", Session(5, 0, "new"))
    assert sessions.fetch("k", 0, 10) == [Session(5, 0, "new")]


def test_sessions_of_one_window_whose_aggregates_cannot_be_compared_are_no_trouble() -> None:
    sessions = store()
    sessions.put("k", Session(5, 0, {"a": 1}))
    sessions.put("k", Session(5, 1, object()))
    assert windows_of(sessions.fetch("k", 0, 10)) == [(0, 5), (1, 5)]


def test_remove_forgets_the_session_of_that_window_and_no_other() -> None:
    sessions = store(2000, 3, 1, (0, 5), (10, 15))
    for key, session in (("k", (5, 1)), ("k", (4, 0)), ("k", (9999, 0)), ("j", (5, 0))):
        sessions.remove(key, Session(*session, None))
    assert windows_of(sessions.fetch("k", 0, 100)) == [(0, 5), (10, 15)]
    sessions.remove("k", Session(5, 0, "whatever"))
    assert windows_of(sessions.fetch("k", 0, 100)) == [(10, 15)]


def test_a_put_into_an_expired_segment_is_dropped_and_leaves_no_trace() -> None:
    sessions = store()
    sessions.advance(3000)
    assert sessions.put("k", Session(999, 0, "x")) is False
    assert sessions.fetch("k", 0, 10**6) == []
    assert sessions.put("k", Session(1000, 0, "x")) is True


@pytest.mark.parametrize(
    ("clock", "kept_windows"),
    [
        (2000, [(0, 999), (0, 1000)]),
        (2999, [(0, 999), (0, 1000)]),
        (3000, [(0, 1000)]),
        (3999, [(0, 1000)]),
        (4000, []),
    ],
)
def test_a_segment_is_forgotten_once_all_it_can_hold_has_expired(
    clock: int, kept_windows: list[tuple[int, int]]
) -> None:
    sessions = store(2000, 3, 1, (0, 999), (0, 1000))
    sessions.advance(clock)
    assert windows_of(sessions.fetch("k", 0, 10**6)) == kept_windows


def test_a_clock_that_goes_back_revives_nothing() -> None:
    sessions = store(2000, 3, 1, (0, 5))
    sessions.advance(10_000)
    sessions.advance(0)
    assert sessions.put("k", Session(5, 0, "x")) is False


ENDS = st.integers(0, 400)


@QUIET
@given(st.lists(ENDS, max_size=8), st.integers(0, 100), st.integers(2, 5), st.integers(1, 50), st.integers(0, 500))
def test_the_retention_is_a_lower_bound(
    ends: list[int], retention: int, segments: int, minimum: int, clock: int
) -> None:
    sessions = store(retention, segments, minimum, *((end, end) for end in ends))
    sessions.advance(clock)
    live = {(end, end) for end in ends if end >= clock - retention}
    assert live <= set(windows_of(sessions.fetch("k", 0, 1000)))


@QUIET
@given(st.lists(ENDS, max_size=8), st.integers(0, 100), st.integers(2, 5), st.integers(1, 50), st.integers(0, 500))
def test_a_session_is_kept_no_more_than_a_segment_longer(
    ends: list[int], retention: int, segments: int, minimum: int, clock: int
) -> None:
    sessions = store(retention, segments, minimum, *((end, end) for end in ends))
    sessions.advance(clock)
    found = sessions.fetch("k", 0, 1000)
    assert all(session.end > clock - retention - sessions.interval_ms for session in found)


@QUIET
@given(st.lists(st.tuples(ENDS, ENDS).map(sorted), max_size=10), st.integers(-50, 450), st.integers(-50, 450))
def test_segments_play_no_part_in_what_a_fetch_finds(
    bounds: list[list[int]], earliest_end: int, latest_start: int
) -> None:
    windows = [(start, end) for start, end in bounds]
    sessions = store(100, 3, 7, *windows)
    found = {(start, end) for start, end in windows if end >= earliest_end and start <= latest_start}
    assert windows_of(sessions.fetch("k", earliest_end, latest_start)) == sorted(found, key=lambda window: window[::-1])


def test_a_store_of_one_segment_is_refused() -> None:
    with pytest.raises(BadInput, match="segments is 1: a store needs two or more"):
        SessionStore(10, segments=1)


def test_a_session_that_is_removed_leaves_its_segment() -> None:
    made = store(10, 3, 5, (0, 3))
    made.remove("k", Session(3, 0, None))
    assert [*made.segments.values()] == [set()]
