"""The engine that shrinks, on tuples of numbers: the smaller the numbers and the fewer, the simpler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from streamproof.properties.generators.shrinking import MANY, Deadline, Shrinker, fewer, one_by_one

Numbers = tuple[int, ...]
Bad = Callable[[Numbers], bool]


def size(numbers: Numbers) -> tuple[int, ...]:
    return (len(numbers), sum(numbers), *numbers)


def candidates(numbers: Numbers, thorough: bool) -> Iterator[Numbers]:
    yield from map(tuple, fewer(numbers, thorough))
    for index, number in enumerate(numbers):
        yield (*numbers[:index], number - 1, *numbers[index + 1 :])


def together(numbers: Numbers, failing: Sequence[Numbers]) -> list[Numbers]:
    """Lower all numbers that single candidates lowered."""
    same = [candidate for candidate in failing if len(candidate) == len(numbers)]
    return [tuple(map(min, *same))] if len(same) > 1 else []


SHRINKER = Shrinker(size, candidates)


class Asked:
    """A planted failure, which remembers every round of candidates."""

    def __init__(self, bad: Bad) -> None:
        self.bad = bad
        self.rounds: list[list[Numbers]] = []

    def __call__(self, numbers: Sequence[Numbers]) -> list[bool]:
        self.rounds.append(list(numbers))
        return [self.bad(each) for each in numbers]


def above(least: int, count: int = 1) -> Bad:
    """Fail on `count` numbers or more, if none is below `least`."""
    return lambda numbers: len(numbers) >= count and min(numbers, default=0) >= least


class Clock:
    """Stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("time.monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_the_smallest_that_fails_is_returned_when_nothing_smaller_does() -> None:
    asked = Asked(above(3, 2))
    assert SHRINKER.shrink((5, 9, 4, 7), asked, rounds=50) == (3, 3)
    assert not any(map(above(3, 2), asked.rounds[-1]))


def test_candidates_come_smallest_first_each_once_and_all_are_smaller() -> None:
    asked = Asked(above(2, 2))
    SHRINKER.shrink((5, 5, 5, 5), asked)
    best: Numbers = (5, 5, 5, 5)
    for numbers in asked.rounds:
        sizes = [size(each) for each in numbers]
        assert sizes == sorted(set(sizes))
        assert sizes[-1] < size(best)
        best = next(filter(above(2, 2), numbers), best)


@pytest.mark.parametrize(("count", "is_thorough"), [(3, False), (4, True), (MANY, True), (MANY + 1, False)])
def test_one_round_is_thorough_where_there_are_few_records_and_not_too_few(count: int, is_thorough: bool) -> None:
    flags: list[bool] = []

    def noted(numbers: Numbers, thorough: bool) -> Iterator[Numbers]:
        flags.append(thorough)
        return candidates(numbers, thorough)

    asked = Asked(lambda numbers: len(numbers) == count)
    Shrinker(size, noted).shrink((9,) * count, asked, rounds=3)
    assert flags[:3] == [is_thorough, False, False]


def test_a_history_with_many_records_is_thorough_once_few_are_left() -> None:
    scattered = Asked(lambda numbers: {0, 10, 20} <= set(numbers) and len(numbers) in (3, MANY - 1, MANY + 1))
    assert SHRINKER.shrink(tuple(range(MANY + 1)), scattered, rounds=2) == (0, 10, 20)


def test_fewer_leaves_out_spans_and_when_thorough_yields_every_choice_of_three_first() -> None:
    spans = [[2, 3], [0, 1], [1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [2, 3], [0, 1]]
    assert sorted(fewer([0, 1, 2, 3], False)) == sorted([*spans, [1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
    thorough = [*fewer([0, 1, 2, 3], True)]
    assert thorough[:5] == [[0], [1], [2], [3], [0, 1]]
    assert [each for each in thorough if len(each) == 3][:4] == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]
    assert [*fewer([7], False)] == [[7], [7], [], []]
    assert [*fewer([], True)] == []


def test_what_failed_in_a_round_is_tried_together_in_the_next() -> None:
    plain, combining = Asked(above(5, 3)), Asked(above(5, 3))
    assert SHRINKER.shrink((8, 8, 8), plain, rounds=20) == (5, 5, 5)
    assert Shrinker(size, candidates, together).shrink((8, 8, 8), combining, rounds=20) == (5, 5, 5)
    assert (7, 7, 7) in combining.rounds[1]
    assert len(combining.rounds) < len(plain.rounds)


@pytest.mark.parametrize(("at_once", "asked_about"), [(0, 9), (1, 1), (2, 2), (4, 3), (9, 9), (20, 9)])
def test_at_once_spreads_what_is_asked_evenly(at_once: int, asked_about: int) -> None:
    shrinker = Shrinker(size, lambda numbers, thorough: [(number,) for number in range(1, 10)])
    asked = Asked(lambda numbers: False)
    shrinker.shrink((10,), asked, at_once=at_once)
    assert len(asked.rounds[0]) == asked_about
    assert asked.rounds[0] == [(number,) for number in range(1, 10)][:: -(-9 // (at_once or 9))]


def test_several_shrink_together_as_each_alone_with_a_query_a_round() -> None:
    bads = [above(3, 2), above(1), above(0, 5), lambda numbers: numbers == (7,)]
    histories: list[Numbers] = [(5, 9, 4, 7), (2, 2), (3,) * 6, (7,)]
    alone = [Asked(bad) for bad in bads]
    rounds: list[list[int]] = []

    def fails(asked: Sequence[Sequence[Numbers]]) -> list[list[bool]]:
        rounds.append([len(each) for each in asked])
        return [[bad(one) for one in each] for bad, each in zip(bads, asked, strict=True)]

    for shrinker in (SHRINKER, Shrinker(size, candidates, together)):
        rounds.clear()
        for one in alone:
            one.rounds.clear()
        smallest = [shrinker.shrink(history, one, 50) for history, one in zip(histories, alone, strict=True)]
        assert shrinker.shrink_together(histories, fails, 50) == smallest
        assert len(rounds) == max(len(one.rounds) for one in alone)
        for number, of_round in enumerate(rounds):
            assert of_round == [len(one.rounds[number]) if number < len(one.rounds) else 0 for one in alone]


def test_no_round_begins_after_the_deadline_and_the_smallest_so_far_is_returned(clock: Clock) -> None:
    deadline = Deadline(10)

    def fails(numbers: Sequence[Numbers]) -> list[bool]:
        clock.now += 4
        return [above(0, 1)(each) for each in numbers]

    asked = Asked(above(0))
    assert SHRINKER.shrink((9,), asked, rounds=4) == (5,)
    assert SHRINKER.shrink((9,), fails, rounds=20, deadline=deadline) == (6,)
    assert (clock.now, deadline.has_stopped) == (12, True)


def test_a_deadline_that_passes_when_nothing_is_left_to_try_has_not_stopped_anything(clock: Clock) -> None:
    deadline = Deadline(10)

    def slow(numbers: Sequence[Numbers]) -> list[bool]:
        clock.now += 1000
        return [False] * len(numbers)

    assert SHRINKER.shrink((1,), slow, deadline=deadline) == (1,)
    assert not deadline.has_stopped
    assert deadline.is_over()
    assert deadline.has_stopped


def test_one_by_one_asks_until_the_first_that_fails(clock: Clock) -> None:
    asked: list[Numbers] = []

    def fails(numbers: Numbers) -> bool:
        asked.append(numbers)
        return numbers == (2,)

    deadline = Deadline(10)
    assert one_by_one(fails, deadline)([(1,), (2,), (3,)]) == [False, True, False]
    assert (asked, deadline.has_stopped) == ([(1,), (2,)], False)
    assert one_by_one(fails, deadline)([(1,), (3,)]) == [False, False]


def test_one_by_one_asks_nothing_more_after_the_deadline(clock: Clock) -> None:
    def slow(numbers: Numbers) -> bool:
        clock.now += 6
        return numbers == (3,)

    deadline = Deadline(10)
    assert one_by_one(slow, deadline)([(1,), (2,), (3,)]) == [False, False, False]
    assert (clock.now, deadline.has_stopped) == (12, True)
