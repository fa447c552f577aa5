"""What kills a query that many definitions share is found by halves, and the others get their answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamproof.properties.witnesses.spark.failures import MachineTooBusy, QueryFailed
from streamproof.properties.witnesses.spark.isolation import MOST, isolated

DEFINITIONS = [[3 * index, 3 * index + 2, 3 * index + 1] for index in range(20)]


def failing(*killers: int) -> tuple[Callable[[list[int]], int], list[int]]:
    """Return what runs numbers in a query that some kill, and how many there were in each query."""
    sizes: list[int] = []

    def run(numbers: list[int]) -> int:
        sizes.append(len(numbers))
        if set(killers) & set(numbers):
            raise QueryFailed("a worker ended")
        return sum(numbers)

    return run, sizes


def test_what_runs_together_is_one_query() -> None:
    run, sizes = failing()
    assert isolated(DEFINITIONS, run) == [(list(range(60)), sum(range(60)))]
    assert sizes == [60]


@pytest.mark.parametrize(("killers", "killed"), [([31], [30, 31, 32]), ([1, 58], [0, 1, 2, 57, 58, 59])])
def test_definitions_that_kill_the_query_are_found_and_the_others_are_answered(
    killers: list[int], killed: list[int]
) -> None:
    run, sizes = failing(*killers)
    found = isolated(DEFINITIONS, run)
    failed = [numbers for numbers, one in found if isinstance(one, QueryFailed)]
    assert [number for numbers in failed for number in numbers] == killed
    assert len(failed) == len(killers)
    assert all(one == sum(numbers) for numbers, one in found if not isinstance(one, QueryFailed))
    assert sorted(number for numbers, _ in found for number in numbers) == list(range(60))
    assert len(sizes) <= 2 + 2 * 5 * len(killers)


def test_where_everything_fails_the_failure_is_reported_after_few_queries() -> None:
    run, sizes = failing(*range(60))
    with pytest.raises(QueryFailed, match="a worker ended"):
        isolated(DEFINITIONS, run)
    assert len(sizes) <= 5 + 4 * MOST


def test_one_alone_is_to_blame_only_where_other_queries_ran() -> None:
    run, _ = failing(0)
    with pytest.raises(QueryFailed, match="a worker ended"):
        isolated(DEFINITIONS[:1], run)
    ((numbers, failure),) = isolated(DEFINITIONS[:1], run, others_ran=True)
    assert numbers == [0, 1, 2]
    assert isinstance(failure, QueryFailed)


def test_a_worker_that_is_ended_from_outside_is_nobodys_fault() -> None:
    ended = iter([True, True, False, False, False, False, False])

    def run(numbers: list[int]) -> int:
        if next(ended):
            raise QueryFailed("a worker ended")
        return sum(numbers)

    found = isolated(DEFINITIONS, run)
    assert sum(one for _, one in found if isinstance(one, int)) == sum(range(60))


def test_a_machine_too_busy_is_nobodys_fault() -> None:
    def run(numbers: list[int]) -> int:
        raise MachineTooBusy("too busy")

    with pytest.raises(MachineTooBusy):
        isolated(DEFINITIONS, run)
