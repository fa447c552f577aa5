from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.reference.session_store import MIN_SEGMENT_INTERVAL_MS, Session, SessionStore

QUIET = settings(deadline=None, max_examples=40, derandomize=True, database=None)


def store(retention: int = 2000, segments: int = 3, minimum: int = 1, *windows: tuple[int, int]) -> SessionStore:
    made = SessionStore(retention, segments, minimum)
    for start, end in windows:
        made.put("k", Session(end, start, f"{start}-{end}"))
    return made


def windows_of(sessions: list[Session]) -> list[tuple[int, int]]:
    return [session.window for session in sessions]


KIP_SESSIONS = ((0, 99), (101, 200), (201, 300), (301, 400))


def test_sessions_are_ordered_by_end_and_then_by_start() -> None:
    sessions = [Session(5, 3, "c"), Session(9, 0, "d"), Session(5, 1, "b"), Session(4, 4, "a")]
    assert [session.aggregate for session in sorted(sessions)] == ["a", "b", "c", "d"]


def test_a_sessions_window_is_start_and_end() -> None:
    assert Session(end=9, start=2, aggregate=None).window == (2, 9)


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


@pytest.mark.parametrize(("end", "index"), [(0, 0), (500, 0), (1000, 1), (2000, 2)])
def test_the_segment_of_a_session_is_known_by_its_end(end: int, index: int) -> None:
    assert list(store(2000, 3, 1, (0, end)).segments) == [index]


@pytest.mark.parametrize("start", [0, 999, 1500])
def test_the_start_plays_no_part_in_the_segment(start: int) -> None:
    assert list(store(2000, 3, 1, (start, 1500)).segments) == [1]


@pytest.mark.parametrize(
    ("earliest_end", "latest_start", "found"),
    [
        (0, 1000, [(0, 99), (101, 200), (201, 300), (301, 400)]),
        (99, 1000, [(0, 99), (101, 200), (201, 300), (301, 400)]),
        (100, 1000, [(101, 200), (201, 300), (301, 400)]),
        (200, 301, [(101, 200), (201, 300), (301, 400)]),
        (201, 300, [(201, 300)]),
        (200, 300, [(101, 200), (201, 300)]),
        (0, 200, [(0, 99), (101, 200)]),
        (0, 201, [(0, 99), (101, 200), (201, 300)]),
        (0, 0, [(0, 99)]),
        (400, 301, [(301, 400)]),
        (401, 1000, []),
        (-50, -1, []),
        (-50, 0, [(0, 99)]),
    ],
)
@pytest.mark.parametrize("minimum", [1, 60_000])
def test_a_fetch_finds_what_ends_no_earlier_and_starts_no_later(
    minimum: int, earliest_end: int, latest_start: int, found: list[tuple[int, int]]
) -> None:
    assert windows_of(store(200, 3, minimum, *KIP_SESSIONS).fetch("k", earliest_end, latest_start)) == found


def test_a_fetch_gives_sessions_by_end_whatever_the_order_they_were_put_in() -> None:
    assert windows_of(store(200, 3, 1, *KIP_SESSIONS[::-1]).fetch("k", 0, 1000)) == list(KIP_SESSIONS)


def test_a_long_session_is_found_behind_a_short_one_that_starts_too_late() -> None:
    assert windows_of(store(2000, 3, 1, (50, 60), (0, 1000)).fetch("k", 0, 10)) == [(0, 1000)]


def test_a_fetch_finds_the_sessions_of_its_key_alone() -> None:
    sessions = store(2000, 3, 1, (0, 5))
    sessions.put("kk", Session(5, 0, "other"))
    assert [session.aggregate for session in sessions.fetch("k", 0, 10)] == ["0-5"]


def test_a_fetch_of_an_unknown_key_finds_nothing() -> None:
    assert store().fetch("nobody", 0, 10**9) == []


def test_put_says_that_it_kept_the_session() -> None:
    assert store().put("k", Session(5, 0, "x")) is True


def test_put_replaces_the_session_of_the_same_window() -> None:
    sessions = store(2000, 3, 1, (0, 5))
    sessions.put("k", Session(5, 0, "new"))
    assert sessions.fetch("k", 0, 10) == [Session(5, 0, "new")]


@pytest.mark.parametrize("other", [Session(5, 1, "x"), Session(6, 0, "x")])
def test_put_leaves_sessions_of_other_windows(other: Session) -> None:
    sessions = store(2000, 3, 1, (0, 5))
    sessions.put("k", other)
    assert len(sessions.fetch("k", 0, 10)) == 2


def test_sessions_of_one_window_whose_aggregates_cannot_be_compared_are_no_trouble() -> None:
    sessions = store()
    sessions.put("k", Session(5, 0, {"a": 1}))
    sessions.put("k", Session(5, 1, object()))
    assert windows_of(sessions.fetch("k", 0, 10)) == [(0, 5), (1, 5)]


def test_remove_forgets_the_session() -> None:
    sessions = store(2000, 3, 1, (0, 5), (10, 15))
    sessions.remove("k", Session(5, 0, "whatever"))
    assert windows_of(sessions.fetch("k", 0, 100)) == [(10, 15)]


@pytest.mark.parametrize("session", [Session(5, 1, None), Session(4, 0, None), Session(9999, 0, None)])
def test_removing_a_session_that_is_not_there_changes_nothing(session: Session) -> None:
    sessions = store(2000, 3, 1, (0, 5))
    sessions.remove("k", session)
    assert windows_of(sessions.fetch("k", 0, 100)) == [(0, 5)]


def test_remove_leaves_other_keys_alone() -> None:
    sessions = store(2000, 3, 1, (0, 5))
    sessions.remove("j", Session(5, 0, None))
    assert windows_of(sessions.fetch("k", 0, 100)) == [(0, 5)]


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


def test_a_put_into_an_expired_segment_is_dropped() -> None:
    sessions = store()
    sessions.advance(3000)
    assert sessions.put("k", Session(999, 0, "x")) is False


def test_a_dropped_put_leaves_no_trace() -> None:
    sessions = store()
    sessions.advance(3000)
    sessions.put("k", Session(999, 0, "x"))
    assert sessions.fetch("k", 0, 10**6) == []


def test_a_put_into_the_first_live_segment_is_kept() -> None:
    sessions = store()
    sessions.advance(3000)
    assert sessions.put("k", Session(1000, 0, "x")) is True


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
