from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from memory_jobs import RUN
from streamproof.properties.checking.jobs.failing import TRIED, failing_history
from streamproof.properties.checking.jobs.smallest import narrowed
from streamproof.properties.generators.columns.model import Arrival, JobHistory, Unreadable
from streamproof.properties.generators.shrinking import Deadline
from streamproof.properties.laws.variation import Variation
from streamproof.properties.witnesses.job.running import QueryOutput


def history(*batches: Sequence[int]) -> JobHistory:
    return JobHistory(tuple(tuple(Arrival("n", {"n": n}) for n in batch) for batch in batches), (0,) * len(batches))


def where(fails: Callable[[list[int]], bool]) -> tuple[Callable[[Sequence[JobHistory]], bool], list[int]]:
    """Return what fails where a query over all rows does, and how many histories each query had."""
    asked: list[int] = []

    def query(histories: Sequence[JobHistory]) -> bool:
        asked.append(len(histories))
        return fails([arrival.row["n"] for one in histories for arrival in one.arrivals])

    return query, asked


def test_the_row_that_makes_a_query_fail_is_found_among_hundreds_of_histories() -> None:
    drawn = [history([n, n + 1], [n + 2]) for n in range(0, 900, 3)]
    fails, asked = where(lambda rows: 700 in rows)
    assert failing_history(drawn, fails) == JobHistory(((Arrival("n", {"n": 700}),),))
    assert len(asked) <= 9 + 2 + 2 * 3


def test_a_row_that_fails_only_in_its_batch_stays_there() -> None:
    def fails(histories: Sequence[JobHistory]) -> bool:
        return any(len(one.batches) == 2 and {arrival.row["n"] for arrival in one.arrivals} >= {5} for one in histories)

    assert failing_history([history([1], [5, 6])], fails) == history([], [5])


def test_rows_that_fail_together_are_all_shown() -> None:
    fails, _ = where(lambda rows: {1, 2} <= {*rows})
    assert failing_history([history([7], [8]), history([1], [2, 3])], fails) == history([1], [2, 3])


def test_a_job_that_always_fails_has_no_history_to_show() -> None:
    assert failing_history([history([1]), history([2])], lambda histories: True) is None


def test_a_job_that_fails_on_no_history_alone_has_none_to_show() -> None:
    fails, _ = where(lambda rows: len(rows) > 3)
    assert failing_history([history([1], [2]), history([3], [4])], fails) is None


def test_a_long_history_costs_few_queries() -> None:
    fails, asked = where(lambda rows: len(rows) > 50)
    assert failing_history([history(range(100))], fails) == history(range(100))
    assert len(asked) == 2 + 2 * TRIED


class After(Deadline):
    """Is over once it has been asked so many times."""

    def __init__(self, times: int) -> None:
        super().__init__(0)
        self.left = times

    def is_over(self) -> bool:
        self.left -= 1
        self.has_stopped |= self.left < 0
        return self.has_stopped


def test_the_search_ends_by_its_deadline_with_the_history_that_it_has_found() -> None:
    drawn = [history([1]), history([2, 3])]
    whole, alone = history([2, 3]), JobHistory(((Arrival("n", {"n": 3}),),))
    for times, found, queries in [(0, None, 1), (1, None, 2), (2, whole, 3), (6, alone, 6)]:
        fails, asked = where(lambda rows: 3 in rows)
        deadline = After(times)
        assert (failing_history(drawn, fails, deadline), len(asked)) == (found, queries)
        assert deadline.has_stopped == (times < 6)


def test_the_empty_batches_at_the_end_of_a_history_that_fails_are_left_out() -> None:
    fails, _ = where(lambda rows: {1, 2} <= {*rows})
    assert failing_history([history([1], [2], [], [])], fails) == history([1], [2])


def test_the_record_that_is_no_row_is_found_among_rows_and_other_records() -> None:
    cut, null = (Unreadable(1, "n", {"n": 1}, fault) for fault in ("truncated", "null"))
    drawn = replace(history([1], [2, 3]), unreadable=(cut, null))

    def fails(histories: Sequence[JobHistory]) -> bool:
        return any(one.fault == "null" for each in histories for one in each.unreadable)

    assert failing_history([history([1]), drawn], fails) == JobHistory(((),), unreadable=(null._replace(batch=0),))
    # A row that fails only in its batch is shown without the records beside it.
    beside = failing_history([drawn], lambda histories: any(one.batches[1:] and len(one.arrivals) for one in histories))
    assert beside == history([1], [])
    of_a_row, _ = where(lambda rows: 3 in rows)
    assert failing_history([drawn], of_a_row) == JobHistory(((Arrival("n", {"n": 3}),),))


def test_a_variation_is_narrowed_by_the_parts_that_its_own_part_s_query_has_shown() -> None:
    parts_of = {"whole": "a b", "b": "c d e f", "d": "g h", "c": "wrong", "f": "g", "h": "i j k l m"}

    def variation_of(name: str) -> Variation:
        return Variation(RUN, given=name, parts=lambda output: [*map(variation_of, output.died_at.split())])

    def narrowed_to(*wrong: str, seconds: float = 60) -> Any:
        def compare_alone(history: JobHistory, part: Variation) -> Any:
            output = QueryOutput([], died_at=parts_of.get(part.given, ""))
            return SimpleNamespace(differs=part.given in wrong, output=output)

        judge: Any = SimpleNamespace(compare_alone=compare_alone)
        output = QueryOutput([], died_at=parts_of["whole"])
        found = narrowed(judge, JobHistory(((),)), variation_of("whole"), output=output, deadline=Deadline(seconds))
        return found.given

    assert narrowed_to("b", "d", "h", "l") == "l"
    assert narrowed_to("b", "d", "h", "m") == "h"  # so many parts are tried
    assert narrowed_to("c", "d") == "whole"
    assert narrowed_to("b", "f", seconds=-1) == "b"  # the first parts are tried in any case


def test_a_row_that_comes_again_is_tried_in_each_of_its_batches() -> None:
    again = Arrival("n", {"n": 5})
    drawn = JobHistory(((again,), (again,)), (0, 0))

    def fails(histories: Sequence[JobHistory]) -> bool:
        return any(len(one.batches) == 2 and one.batches[1] for one in histories)

    assert failing_history([drawn], fails) == replace(drawn, batches=((), (again,)))
