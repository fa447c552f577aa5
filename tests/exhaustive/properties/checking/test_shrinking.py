from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations

import pytest
from streamproof.properties.checking.shrinking import shrink, shrink_together, size, without_clock_advances
from streamproof.properties.generators.cohorts import clock_schedule, moved_by_records
from streamproof.properties.generators.coverage import count_goals_met
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.reference.core.history import CUT, ClockAdvance, History, Line
from streamproof.reference.core.records import Record

SCHEDULE = (20, 45, 45, 90, 140)
SETTINGS = HistorySettings("session_windows", {"gap_ms": 10, "grace_ms": 5}, SCHEDULE)

Planted = Callable[[History], bool]


class Asked:
    """A planted failure, which also remembers every round of candidates."""

    def __init__(self, planted: Planted) -> None:
        self.planted = planted
        self.rounds: list[list[History]] = []

    def __call__(self, candidates: Sequence[History]) -> list[bool]:
        self.rounds.append(list(candidates))
        return [self.planted(candidate) for candidate in candidates]


def has_three_records(history: History) -> bool:
    return len(history.records) >= 3


def has_a_pair_exactly_a_gap_apart(history: History) -> bool:
    return any(
        one.key == two.key and abs(one.timestamp - two.timestamp) == 10 for one, two in combinations(history.records, 2)
    )


def has_a_record_after_a_cut(history: History) -> bool:
    return any(isinstance(line, Record) for batch in history.batches[1:] for line in batch)


@cache
def goals_of(lines: tuple[Line, ...]) -> Counter[str]:
    """The coverage goals that a history of SETTINGS meets: many tests ask for those of the same candidates."""
    return count_goals_met([History("session_windows", SETTINGS.options, lines, "batch")])


def merges_three(history: History) -> bool:
    return goals_of(history.lines)["merge of three or more"] > 0


def drops_a_late_record(history: History) -> bool:
    return goals_of(history.lines)["dropped: late"] > 0


def has_five_records_of_key_b(history: History) -> bool:
    return sum(record.key == "b" for record in history.records) >= 5


def failing(planted: Planted, arrivals: int = 20, seed: int = 1) -> History:
    profile = HistorySettings("session_windows", SETTINGS.options, SCHEDULE, arrivals)
    return next(history for history in draw_histories(profile, 500, seed) if planted(history))


def emitted(history: History) -> list[list[tuple[str | None, int, int]]]:
    """Key, timestamp and value of each batch's records."""
    return [
        [(line.key, line.timestamp, line.value) for line in batch if isinstance(line, Record)]
        for batch in history.batches
    ]


@pytest.mark.parametrize(
    ("planted", "smallest"),
    [
        (has_three_records, [("a", 0, 0), ("a", 0, 0), ("a", 0, 0)]),
        (has_a_pair_exactly_a_gap_apart, [("a", 0, 0), ("a", 10, 0)]),
        (has_a_record_after_a_cut, [("a", 0, 0)]),
        (drops_a_late_record, [("a", 0, 0)]),
        (has_five_records_of_key_b, [("b", 0, 0)] * 5),
    ],
)
def test_a_planted_failure_is_shrunk_to_its_minimum(
    planted: Planted, smallest: list[tuple[str | None, int, int]]
) -> None:
    best = shrink(failing(planted), Asked(planted), rounds=60)
    assert sorted(record for batch in emitted(best) for record in batch) == smallest


def test_a_merge_of_three_is_shrunk_to_three_records_of_one_key_from_0() -> None:
    best = shrink(failing(merges_three), Asked(merges_three), rounds=60)
    records = sorted(record for batch in emitted(best) for record in batch)
    assert [(key, value) for key, _, value in records] == [("a", 0)] * 3
    assert records[0][1] == 0


def test_a_record_is_moved_to_the_earliest_batch_that_still_fails() -> None:
    best = shrink(failing(has_three_records), Asked(has_three_records), rounds=60)
    assert [len(batch) for batch in emitted(best)] == [3, 0, 0, 0, 0]


def test_three_of_many_records_are_found_in_the_first_round() -> None:
    best = shrink(failing(merges_three), Asked(merges_three), rounds=1)
    assert len(best.records) == 3


@pytest.mark.parametrize(("planted", "most"), [(has_five_records_of_key_b, 9), (merges_three, 6)])
def test_a_round_takes_two_steps_for_each_costs_a_query(planted: Planted, most: int) -> None:
    for seed in range(1, 4):
        asked = Asked(planted)
        shrink(failing(planted, seed=seed), asked, rounds=60)
        assert len(asked.rounds) <= most
        assert all(len(candidates) < 3000 for candidates in asked.rounds)


def test_a_round_of_few_candidates_takes_one_step() -> None:
    history = failing(has_three_records, arrivals=3)
    few, all_of_them = Asked(has_three_records), Asked(has_three_records)
    shrink(history, few, 1, at_once=6)
    shrink_together([history], lambda asked: [all_of_them(asked[0])], 1)
    assert 0 < len(few.rounds[0]) <= 6
    assert {one.lines for one in few.rounds[0]} <= {one.lines for one in all_of_them.rounds[0]}


def test_a_history_whose_records_move_the_clock_is_shrunk_without_further_heartbeats() -> None:
    def moves_back(history: History) -> bool:
        first, *rest = history.batches
        times = [line.timestamp for line in first]
        return bool(rest) and max(times, default=0) > (times or [0])[-1]

    drawn = moved_by_records(failing(lambda history: moves_back(moved_by_records(history))))
    smallest = shrink(drawn, Asked(moves_back), rounds=60)
    assert smallest.records == [Record("events", "a", 0, 1), Record("events", "a", 0, 0)]
    assert smallest.batches[0] == smallest.records


def test_a_failure_of_anything_shrinks_to_no_records() -> None:
    assert shrink(failing(has_three_records), Asked(lambda history: True)).records == []


def test_every_candidate_is_another_one_smaller_than_the_best_so_far_and_under_the_same_clock() -> None:
    best, asked = failing(merges_three), Asked(merges_three)
    shrink(best, asked)
    for candidates in asked.rounds:
        assert len({candidate.lines for candidate in candidates}) == len(candidates)
        assert all(size(candidate) < size(best) for candidate in candidates)
        assert {clock_schedule(candidate) for candidate in candidates} == {SCHEDULE}
        for candidate in candidates:
            for batch, clock in zip(candidate.batches, SCHEDULE, strict=True):
                assert all(line.timestamp <= clock for line in batch if isinstance(line, Record))
        best = min([one for one in candidates if merges_three(one)], key=size, default=best)


ONE, TWO = Record("events", "a", 0, 5), Record("events", "a", 0, 15)


@pytest.mark.parametrize(
    ("lines", "bare"),
    [
        ((ONE, ClockAdvance(20), CUT, TWO, ClockAdvance(45)), (ONE, CUT, TWO)),
        ((ClockAdvance(20), CUT, ONE, ClockAdvance(45), CUT, ClockAdvance(90)), (ONE,)),
        ((ONE, ClockAdvance(20), CUT, ClockAdvance(45), CUT, TWO, ClockAdvance(90)), (ONE, CUT, CUT, TWO)),
        ((ClockAdvance(20), CUT, ClockAdvance(45)), ()),
        ((), ()),
    ],
)
def test_without_clock_advances_a_history_has_no_cut_at_its_ends(
    lines: tuple[Record, ...], bare: tuple[Record, ...]
) -> None:
    assert without_clock_advances(History("session_windows", {}, lines)).lines == bare
