"""The laws of session windows hold. Histories are drawn as in the gate, and free-form: any line after any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from history_strategies import declarations, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from session_histories import history_of
from session_laws import (
    KEYS,
    SCHEDULE,
    closed_is_emitted_at_once,
    closed_is_final,
    closing_is_in_order,
    cuts_play_no_part,
    declaration,
    drops_exactly_what_is_late,
    every_accepted_record_counts_once,
    folds_to_the_meaning,
    keys_are_independent,
    open_sessions_lie_apart,
    order_plays_no_part,
    repeats_count_again,
)
from streamproof.properties.generators.draws import HistorySettings
from streamproof.reference.core.history import CUT, ClockAdvance, History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Dropped, Output, Record

QUIET = settings(deadline=None, max_examples=25, derandomize=True, database=None)
THOROUGH = settings(QUIET, max_examples=60)


@st.composite
def free_form(draw: st.DrawFn, /, **fixed: Any) -> History:
    options = {**draw(declarations()), **fixed}
    extra = draw(st.sampled_from([None, 0, 1, 1000]))
    if extra is not None:
        options["retention_ms"] = options["gap_ms"] + options["grace_ms"] + extra
    key = st.sampled_from(["a", "a", "a", "ab", "b", None])
    record = st.builds(Record, st.just("events"), key, st.integers(0, 3), st.integers(0, 60))
    line = st.one_of(record, record, record, record, st.builds(ClockAdvance, st.integers(0, 80)), st.just(CUT))
    lines = draw(st.lists(line, max_size=16))
    return History("session_windows", options, tuple(lines), draw(st.sampled_from(["stream_time", "batch"])))


def drawn(**fixed: Any) -> st.SearchStrategy[History]:
    return declarations().flatmap(
        lambda options: histories(HistorySettings("session_windows", {**options, **fixed}, SCHEDULE, 16, KEYS))
    )


def either(**fixed: Any) -> st.SearchStrategy[History]:
    return drawn(**fixed) | free_form(**fixed)


@THOROUGH
@given(either())
def test_the_behaviour_folds_to_the_meaning_after_every_step(history: History) -> None:
    assert folds_to_the_meaning(history)


@QUIET
@given(either())
def test_exactly_the_late_records_are_dropped(history: History) -> None:
    assert drops_exactly_what_is_late(history)


@QUIET
@given(drawn(grace_ms=1000))
def test_the_order_of_arrival_plays_no_part_when_nothing_is_late(history: History) -> None:
    assert order_plays_no_part(history)


@QUIET
@given(drawn(grace_ms=1000))
def test_cuts_play_no_part_when_nothing_is_late(history: History) -> None:
    assert cuts_play_no_part(history)


@QUIET
@given(drawn(grace_ms=1000, aggregate="list"))
def test_repeats_count_again(history: History) -> None:
    assert repeats_count_again(history)


@QUIET
@given(drawn())
def test_keys_are_independent_under_clock_advances(history: History) -> None:
    assert keys_are_independent(history)


@QUIET
@given(either())
def test_a_closed_session_is_final(history: History) -> None:
    assert closed_is_final(history)


@QUIET
@given(either(emit="close"))
def test_closing_is_always_in_order(history: History) -> None:
    assert closing_is_in_order(history)


@QUIET
@given(either(emit="close"))
def test_a_closed_session_is_emitted_at_once(history: History) -> None:
    assert closed_is_emitted_at_once(history)


@QUIET
@given(either(emit="update"))
def test_sessions_open_at_the_same_time_lie_more_than_a_gap_apart(history: History) -> None:
    assert open_sessions_lie_apart(history)


@QUIET
@given(either(emit="update", aggregate="count"))
def test_every_accepted_record_is_counted_exactly_once(history: History) -> None:
    assert every_accepted_record_counts_once(history)


@QUIET
@given(either(emit="update", late="merged"))
def test_what_is_emitted_on_close_is_what_updates_come_to(history: History) -> None:
    closing = History(history.operator, {**history.options, "emit": "close"}, history.lines, history.clock)
    updated, closed = play(history), play(closing)
    edge = declaration(history).close_edge(updated.clock)
    assert closed.result == {row: at for row, at in updated.result.items() if at[1] < edge}


@QUIET
@given(either())
def test_the_retention_changes_nothing(history: History) -> None:
    longer = History(history.operator, {**history.options, "retention_ms": 10**6}, history.lines, history.clock)
    assert play(history).entries == play(longer).entries


@QUIET
@given(either())
def test_playing_twice_gives_the_same(history: History) -> None:
    assert play(history) == play(history)


@QUIET
@given(drawn())
def test_own_lateness_never_takes_what_the_merged_one_drops_at_first(history: History) -> None:
    def first_dropped(late: str) -> int:
        options = {**history.options, "late": late}
        entries = play(History(history.operator, options, history.lines, history.clock)).entries
        return next((entry.arrival for entry in entries if isinstance(entry.output, Dropped)), len(history.lines))

    assert first_dropped("own") <= first_dropped("merged")


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
    history = history_of(" ".join(f"k@{timestamp}" for timestamp in timestamps), gap_ms=gap, grace_ms=1000)
    assert {window for _, window in play(history).result} == connected(timestamps, gap)


@QUIET
@given(st.lists(st.integers(0, 60), min_size=1), st.integers(0, 1000))
def test_the_answer_moves_with_the_origin_of_time(timestamps: list[int], shift: int) -> None:
    def emitted(by: int) -> list[Output]:
        return [entry.output for entry in play(history_of(" ".join(f"k@{at + by}" for at in timestamps))).entries]

    def moved(output: Output) -> Output:
        if isinstance(output, Dropped) or output.window is None:
            return output
        start, end = output.window
        return output._replace(window=(start + shift, end + shift), timestamp=output.timestamp + shift)

    assert emitted(shift) == [moved(output) for output in emitted(0)]
