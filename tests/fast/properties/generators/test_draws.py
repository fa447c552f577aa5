from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from history_strategies import declarations
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.properties.generators.cohorts import clock_schedule, record_batches
from streamproof.properties.generators.coverage import count_goals_met
from streamproof.properties.generators.draws import KINDS, HistorySettings, Move, draw_histories, draw_move, history_of
from streamproof.properties.generators.schedules import draw_schedule, edges_met
from streamproof.properties.operators.session_windows import GOALS
from streamproof.properties.registration.registration import registered
from streamproof.reference.core.history import ClockAdvance, History
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.records import Record

QUIET = settings(deadline=None, max_examples=25, derandomize=True, database=None)
SCHEDULE = (20, 45, 45, 90, 140)
SETTINGS = HistorySettings("session_windows", {"gap_ms": 10, "grace_ms": 5}, SCHEDULE)
MOVES = st.builds(
    Move,
    kind=st.integers(0, KINDS - 1),
    back=st.integers(0, 4),
    jitter=st.integers(0, 12),
    key=st.integers(0, 2),
    value=st.integers(0, 3),
    cuts=st.integers(0, 2),
)


def move(kind: int, jitter: int = 0, key: int = 0, cuts: int = 0, back: int = 0, value: int = 0) -> Move:
    return Move(kind, back, jitter, key, value, cuts)


def placed(*moves: Move, profile: HistorySettings = SETTINGS) -> list[tuple[str | None, int]]:
    return [(record.key, record.timestamp) for record in history_of(profile, moves).records]


def within_the_clock(history: History, schedule: tuple[int, ...]) -> bool:
    batches = zip(history.batches, schedule, strict=True)
    return all(0 <= line.timestamp <= clock for batch, clock in batches for line in batch if isinstance(line, Record))


def test_the_seed_decides_the_histories_which_differ_and_are_named_by_number() -> None:
    drawn, other = (list(draw_histories(SETTINGS, 50, seed)) for seed in (1, 2))
    assert drawn == list(draw_histories(SETTINGS, 50, seed=1)) != other
    assert drawn[:5] == list(draw_histories(SETTINGS, 5, seed=1))
    assert len({history.lines for history in drawn}) == 50
    assert [history.name for history in drawn] == [f"h{number}" for number in range(50)]


@pytest.mark.parametrize("arrivals", [1, 7, 20])
def test_a_drawn_history_has_exactly_the_arrivals_of_its_settings(arrivals: int) -> None:
    profile = HistorySettings("session_windows", SETTINGS.options, SCHEDULE, arrivals)
    assert {len(history.records) for history in draw_histories(profile, 30, seed=1)} == {arrivals}


def test_drawn_cuts_leave_every_batch_its_share() -> None:
    counts = [0] * len(SCHEDULE)
    for history in draw_histories(SETTINGS, 300, seed=1):
        for number, batch in enumerate(history.batches):
            counts[number] += len(batch) - 1
    assert min(counts) > sum(counts) / len(SCHEDULE) / 2


def test_a_few_hundred_drawn_histories_meet_every_coverage_goal() -> None:
    met = count_goals_met(draw_histories(SETTINGS, 200, seed=1))
    assert [name for name in GOALS if not met[name]] == []


@QUIET
@given(
    st.lists(MOVES, max_size=25),
    declarations(),
    st.sampled_from([SCHEDULE, (20,), (0, 0, 5), (5, 5, 5), (10**12, 10**12 + 1)]),
)
def test_every_record_lies_within_its_batchs_clock(
    moves: list[Move], options: dict[str, Any], schedule: tuple[int, ...]
) -> None:
    assert within_the_clock(history_of(HistorySettings("session_windows", options, schedule), moves), schedule)


@QUIET
@given(st.lists(MOVES, max_size=25))
def test_every_list_of_moves_gives_a_history_under_the_schedule_on_the_batch_clock(moves: list[Move]) -> None:
    history = history_of(SETTINGS, moves)
    assert (clock_schedule(history), history.clock) == (SCHEDULE, "batch")
    assert [batch[-1] for batch in history.batches] == [ClockAdvance(clock) for clock in SCHEDULE]


def test_moves_beyond_the_arrivals_and_cuts_beyond_the_schedule_are_left_out() -> None:
    assert len(history_of(replace(SETTINGS, arrivals=2), [move(0)] * 5).records) == 2
    assert len(history_of(SETTINGS, [move(0, cuts=2)] * 9).batches) == len(SCHEDULE)


@pytest.mark.parametrize("kind", [1, 10])
def test_a_record_comes_beside_the_oldest_that_is_not_forgotten_where_closed_windows_take_records(kind: int) -> None:
    moves = [*map(move, (0, 0, 0, kind), (6, 7, 12, 0), (0, 1, 0, 2), (0, 0, 0, 1))]
    options = {"size": 10, "late": "update", "retention_ms": 17, "aggregate": "sum"}
    # At 54 nothing is kept that is 27 ms behind the clock: a window's size and its retention.
    drawn = history_of(HistorySettings("window_aggregate", options, (54, 60)), moves)
    assert [(record.key, record.timestamp) for record in drawn.records] == [("a", 27), ("b", 31), ("a", 54), ("b", 31)]
    without = history_of(HistorySettings("session_windows", {"gap_ms": 10}, (54, 60)), moves)
    assert without.records[-1].timestamp == 54


@pytest.mark.parametrize(
    ("kind", "jitter", "timestamp"),
    [
        (0, 0, 0),
        (0, 5, 18),
        (0, 12, 45),
        (1, 0, 25),
        (2, 0, 35),
        (3, 0, 36),
        (4, 0, 15),
        (5, 0, 14),
        (6, 3, 28),
        (6, 13, 28),
        (7, 0, 4),
        (7, 1, 5),
        (7, 2, 6),
        (8, 2, 3),
        (9, 0, 45),
        (9, 4, 41),
        (10, 0, 25),
    ],
)
def test_a_move_sets_its_record_by_the_one_it_names_or_by_the_edge(kind: int, jitter: int, timestamp: int) -> None:
    # The record at 25 is in the second batch, whose clock was 20 before: the close edge is 20 - 10 - 5.
    assert placed(move(9, jitter=20, cuts=1), move(kind, jitter))[1] == ("a", timestamp)


@pytest.mark.parametrize("kind", [2, 3, 4, 5, 6, 10])
def test_a_move_near_a_record_takes_its_key(kind: int) -> None:
    assert placed(move(0, jitter=10, key=1), move(kind, key=2))[1][0] == "b"


@pytest.mark.parametrize("kind", [0, 1, 7, 8, 9])
def test_other_moves_keep_their_own_key(kind: int) -> None:
    assert placed(move(0, key=1), move(kind, key=2))[1][0] == "c"


def test_a_repeat_is_the_whole_record_again() -> None:
    history = history_of(SETTINGS, [move(0, jitter=3, key=1, value=2), move(10, cuts=1)])
    assert history.records[0] == history.records[1]


@pytest.mark.parametrize("keys", [("a",), ("x", "y"), ("a", "b", "c", "d")])
def test_the_keys_of_the_settings_alone_are_drawn(keys: tuple[str, ...]) -> None:
    profile = HistorySettings("session_windows", SETTINGS.options, SCHEDULE, keys=keys)
    assert {record.key for history in draw_histories(profile, 50, seed=1) for record in history.records} == set(
        keys[:3]
    )


def test_the_first_key_is_drawn_most_often() -> None:
    keys = [record.key for history in draw_histories(SETTINGS, 100, seed=1) for record in history.records]
    assert keys.count("a") > keys.count("b") > keys.count("c")


def test_the_smallest_integers_draw_the_simplest_move() -> None:
    assert draw_move(lambda low, high: low) == Move(0, 0, 0, 0, 0, 0)


TIMED: list[tuple[str, dict[str, Any]]] = [
    ("session_windows", {"gap_ms": 1_799_999, "grace_ms": 600_000}),
    ("stream_stream_join", {"before_ms": 1, "after_ms": 2_592_000_000, "grace_ms": 5}),
    ("window_aggregate", {"size": 10, "step": 4, "late": "update", "retention_ms": 15}),
    ("windowed_table", {"size_ms": 10, "grace_ms": 1, "emit": "close"}),
    ("range_aggregate", {"preceding_ms": 86_400_000}),
    ("table_table_join", {}),
]


@pytest.mark.parametrize(("operator", "options"), TIMED)
def test_a_drawn_schedule_never_falls_and_spans_the_declaration(operator: str, options: dict[str, Any]) -> None:
    reach = registered()[operator].domain.reach(operator_named(operator).declare(options))
    for seed in range(50):
        schedule = draw_schedule(operator, options, seed, 6)
        assert list(schedule) == sorted(schedule)
        assert len(schedule) == 6
        assert reach < schedule[0] <= schedule[-1] < 40 * reach
    assert len({draw_schedule(operator, options, seed) for seed in range(50)}) > 40
    assert draw_schedule(operator, options, 7) == draw_schedule(operator, options, 7)


@pytest.mark.parametrize("seed", range(20))
def test_a_schedule_hits_an_edge_of_fixed_windows_and_a_ms_to_both_sides_of_one(seed: int) -> None:
    schedule = draw_schedule("windowed_table", {"size_ms": 100, "grace_ms": 7, "emit": "close"}, seed)
    assert {0, 1, 99} <= {(clock - 107) % 100 for clock in schedule}


def test_some_schedule_stands_still_and_some_moves_by_a_ms() -> None:
    steps = {
        later - earlier
        for seed in range(50)
        for earlier, later in pairwise(draw_schedule("session_windows", {"gap_ms": 1000}, seed))
    }
    assert {0, 1} <= steps


@pytest.mark.parametrize("by", [-1, 0, 1])
@pytest.mark.parametrize(("back", "clock"), [(0, 5000), (1, 9000), (4, 9000)])
def test_records_are_drawn_at_the_close_edge_of_each_later_clock(by: int, back: int, clock: int) -> None:
    profile = HistorySettings("session_windows", {"gap_ms": 1000, "grace_ms": 4500}, (5000, 9000))
    wanted = max(0, min(5000, clock - 5500 + by))
    assert placed(move(11, jitter=by + 1, back=back), profile=profile) == [("a", wanted)]


def test_both_edges_of_a_stream_join_are_drawn() -> None:
    profile = HistorySettings("stream_stream_join", {"before_ms": 100, "after_ms": 300}, (1000, 2000))
    moves = [Move(7, 0, jitter, 0, 0, 1) for jitter in range(12)]
    drawn = {history_of(profile, [one]).records[0].timestamp for one in moves}
    assert {*range(699, 702), *range(899, 902)} <= drawn


def test_a_batch_between_two_with_records_may_be_empty() -> None:
    drawn = [record_batches(history) for history in draw_histories(SETTINGS, 60, 5)]
    gaps = {sum(not batch for batch in batches[:-1]) for batches in drawn if batches[0] and batches[-1]}
    assert len(gaps) > 1


@pytest.mark.parametrize(
    ("schedule", "met"),
    [
        ((23,), set()),
        ((15, 23), set()),
        ((23, 25), {"at"}),
        ((22, 23), {"1 ms before"}),
        ((24, 32, 34, 43), {"1 ms after", "1 ms before"}),
        ((3, 99), set()),  # the first window ends at 10, and its grace at 13
        ((13, 99), {"at"}),
    ],
)
def test_an_edge_is_met_by_each_clock_but_the_last(schedule: tuple[int, ...], met: set[str]) -> None:
    found = edges_met(("windowed_table", {"size_ms": 10, "grace_ms": 3, "emit": "close"}), schedule)
    assert found == {f"clock {place} the end of a window" for place in met}
