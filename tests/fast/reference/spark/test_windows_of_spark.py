from __future__ import annotations

from typing import Any

import pytest
from streamproof.reference.spark import session_windows, windows
from streamproof.reference.spark.aggregates import AggregateFunction

COUNT = {"rows": AggregateFunction("count", None)}


def rows(*times_us: int | None, key: str = "a") -> list[dict[str, Any]]:
    return [{"key": key, "at": time_us} for time_us in times_us]


def spans(emitted: Any) -> list[tuple[int, int, int]]:
    return sorted((row["start"], row["end"], row["rows"]) for row in emitted)


def sessions(mode: Any = "append") -> session_windows.SessionsState:
    return session_windows.SessionsState(session_windows.SessionAggregation("at", ("key",), 10_000, COUNT, mode))


def hopping(
    mode: Any = "append", size_us: int = 10_000, slide_us: int = 10_000, start_us: int = 0
) -> windows.WindowsState:
    return windows.WindowsState(windows.Windows("at", ("key",), size_us, slide_us, start_us, COUNT, mode))


def test_rows_exactly_a_gap_apart_share_a_session_and_a_microsecond_more_parts_them() -> None:
    assert spans(sessions().batch(rows(5_000, 15_000), 0, 100)) == [(5_000, 25_000, 2)]
    assert spans(sessions().batch(rows(5_000, 15_001), 0, 100)) == [(5_000, 15_000, 1), (15_001, 25_001, 1)]


def test_a_row_merges_sessions_of_earlier_batches() -> None:
    state = sessions()
    assert state.batch(rows(5_000, 25_000), 0, 0) == []
    assert state.batch(rows(15_000), 0, 0) == []
    assert spans(state.batch([], 0, 35)) == [(5_000, 35_000, 3)]


def test_a_row_is_late_by_the_end_of_its_own_session_though_it_would_merge_into_a_live_one() -> None:
    state = sessions()
    state.batch(rows(10_000), 0, 0)
    state.batch(rows(5_000), 15, 15)  # its own session ends at the watermark
    assert spans(state.batch([], 20, 20)) == [(10_000, 20_000, 1)]
    state = sessions()
    state.batch(rows(10_000), 0, 0)
    state.batch(rows(5_001), 15, 15)  # a microsecond later it isn't
    assert spans(state.batch([], 20, 20)) == [(5_001, 20_000, 2)]


def test_a_session_is_evicted_once_its_end_is_at_the_watermark() -> None:
    state = sessions()
    assert state.batch(rows(10_001), 0, 20) == []
    assert spans(state.batch([], 20, 21)) == [(10_001, 20_001, 1)]
    assert state.batch([], 21, 22) == []


def test_in_the_batch_in_which_the_watermark_moves_a_row_behind_it_still_counts() -> None:
    assert spans(sessions().batch(rows(5_000), 14, 100)) == [(5_000, 15_000, 1)]


def test_keys_have_sessions_of_their_own_and_rows_without_a_time_none() -> None:
    assert len(sessions().batch(rows(5_000) + rows(6_000, key="b") + rows(None), 0, 100)) == 2


@pytest.mark.parametrize(("time_us", "starts"), [(9_999, [0]), (10_000, [10_000]), (-1, [-10_000])])
def test_a_tumbling_window_has_its_start_and_not_its_end(time_us: int, starts: list[int]) -> None:
    assert hopping().windows.starts(time_us) == starts


def test_a_row_falls_into_each_hopping_window_that_covers_it() -> None:
    assert hopping(slide_us=4_000).windows.starts(12_000) == [12_000, 8_000, 4_000]
    assert hopping(slide_us=4_000).windows.starts(13_999) == [12_000, 8_000, 4_000]
    assert hopping(slide_us=4_000, start_us=3_000).windows.starts(12_000) == [11_000, 7_000, 3_000]


def test_a_row_is_late_for_those_of_its_windows_alone_that_end_at_the_watermark() -> None:
    state = hopping(slide_us=5_000)
    state.batch(rows(12_000), 15, 15)  # windows [5, 15) and [10, 20) ms
    assert spans(state.batch([], 15, 100)) == [(10_000, 20_000, 1)]


def test_a_row_is_late_from_the_watermark_at_the_end_of_its_window_on_and_not_before() -> None:
    assert spans(hopping("update").batch(rows(9_999), 9, 9)) == [(0, 10_000, 1)]
    assert hopping("update").batch(rows(9_999), 10, 10) == []
    assert hopping().batch(rows(9_999), 10, 10) == []


def test_append_emits_a_window_once_its_end_is_at_the_watermark() -> None:
    state = hopping()
    assert state.batch(rows(3_000), 0, 9) == []
    assert spans(state.batch([], 9, 10)) == [(0, 10_000, 1)]
    assert state.batch([], 10, 11) == []


def test_update_emits_what_changed_and_forgets_what_closed() -> None:
    state = hopping("update")
    assert spans(state.batch(rows(3_000, 4_000, 11_000), 0, 0)) == [(0, 10_000, 2), (10_000, 20_000, 1)]
    assert spans(state.batch(rows(5_000), 9, 10)) == [(0, 10_000, 3)]  # closed by this batch, and emitted by it
    assert state.batch([], 10, 20) == []
    assert spans(state.batch(rows(19_999), 19, 20)) == [(10_000, 20_000, 1)]  # forgotten, so it begins anew


def test_complete_emits_all_and_drops_nothing() -> None:
    state = hopping("complete")
    state.batch(rows(3_000), 0, 0)
    assert spans(state.batch(rows(4_000), 100, 100)) == [(0, 10_000, 2)]


def test_aggregates_ignore_nulls_and_are_null_of_nothing() -> None:
    values = [{"amount": 3}, {"amount": None}, {"amount": 1}, {"amount": 3}]
    found = {
        function: AggregateFunction(function, "amount").of(values)
        for function in ("count", "sum", "min", "max", "avg", "collect_list", "collect_set")
    }
    assert found == {
        "count": 3,
        "sum": 7,
        "min": 1,
        "max": 3,
        "avg": pytest.approx(7 / 3),
        "collect_list": [1, 3, 3],
        "collect_set": [1, 3],
    }
    assert AggregateFunction("count", None).of(values) == 4
    nulls = [{"amount": None}]
    assert [AggregateFunction(function, "amount").of(nulls) for function in ("sum", "avg", "max", "count")] == [
        None
    ] * 3 + [0]
    assert AggregateFunction("max", "amount").of([{"amount": 1.0}, {"amount": float("nan")}]) != 1.0
