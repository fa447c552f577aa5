"""What a reader finds of a history, and the verdict on it."""

from __future__ import annotations

from collections import Counter

import pytest
from streamproof.properties.checking.sinks.cohorts import BATCHES, Payments, SinkCohort, payments
from streamproof.properties.checking.sinks.judging import BROKEN_BY, FoundRows, found_in, judged, verdicts_on
from streamproof.properties.witnesses.job.dying.faults import Seen

HISTORY = Payments(("a", "ab", "", "b"))
EVERY = range(BATCHES)
ROWS = Counter(["0", "100", "101", "300"])
TOTALS = Counter({"a": 2, "b": 2})


def verdicts(end: Counter[str], *readings: Counter[str], totals: bool = False, **seen: object) -> list[str]:
    found: list[FoundRows] = [{0: reading} for reading in readings]
    return [*verdicts_on(SinkCohort([HISTORY], totals), 0, Seen(EVERY, found, {0: end}, **seen))]  # type: ignore[arg-type]


def test_a_history_has_a_row_for_each_key_of_a_batch() -> None:
    assert [*HISTORY.rows(1)] == [("a", 100), ("b", 101)]
    assert str(HISTORY) == "batch 0: a, batch 1: a b, batch 3: b"


@pytest.mark.parametrize(("end", "totals"), [(ROWS, False), (TOTALS, True)])
def test_a_history_whose_rows_are_there_once_is_kept(end: Counter[str], totals: bool) -> None:
    assert verdicts(end, totals=totals) == []


def test_a_missing_row_is_lost_and_a_row_too_many_doubled() -> None:
    assert verdicts(ROWS - Counter(["100"])) == ["lost"]
    assert verdicts(ROWS + Counter(["100"])) == ["doubled"]
    assert verdicts(ROWS - Counter(["0"]) + Counter(["300"])) == ["lost", "doubled"]
    assert verdicts(ROWS + Counter(["999"])) == ["doubled"], "a row that nobody wrote"


def test_a_total_that_is_too_small_is_lost_and_one_too_large_doubled() -> None:
    assert verdicts(Counter({"a": 1, "b": 2}), totals=True) == ["lost"]
    assert verdicts(Counter({"a": 3, "b": 2}), totals=True) == ["doubled"]


def test_a_reader_that_finds_half_a_batch_finds_it_torn() -> None:
    assert verdicts(ROWS, Counter(["0", "101"])) == ["torn"]
    assert verdicts(ROWS, Counter(["0"]), Counter(["0", "100", "101"])) == []
    assert verdicts(ROWS, Counter(["0", "0", "100", "101"])) == [], "doubled rows are no half"


def test_a_reader_that_finds_the_new_total_of_one_key_finds_the_batch_torn() -> None:
    assert verdicts(TOTALS, Counter({"a": 2}), totals=True) == ["torn"]
    assert verdicts(TOTALS, Counter({"a": 1}), Counter({"a": 2, "b": 1}), totals=True) == []


def test_of_a_stuck_query_no_rows_are_judged() -> None:
    assert verdicts(Counter(), stuck="it fails") == ["stuck"]


def test_rows_of_a_second_query_are_expected_too() -> None:
    second = Counter(["400", "500", "501", "700"])
    assert verdicts(ROWS + second, second=True) == []
    assert verdicts(ROWS, second=True) == ["lost"]


def test_a_cohort_counts_its_histories_and_names_the_smallest() -> None:
    cohort = SinkCohort([Payments(("", "ab", "", "")), Payments(("a", "", "", "")), Payments(("", "a", "", ""))])
    end = {0: Counter(["100", "101", "101"]), 1: Counter(["0"]), 2: Counter(["100", "100"])}
    found = judged(cohort, Seen(EVERY, [], end))
    assert found.counts == {"doubled": 2}
    assert found.smallest == {"doubled": 2}


def test_what_a_reader_finds_is_told_apart_by_the_history() -> None:
    assert found_in([{"history": 1, "id": 100}, {"history": 1, "id": 100}], totals=False) == {1: Counter({"100": 2})}
    assert found_in([{"history": 2, "key": "a", "total": 3}], totals=True) == {2: Counter({"a": 3})}


def test_the_smallest_histories_come_first_and_are_drawn_by_the_seed() -> None:
    drawn = payments(60, 7)
    assert [sum(map(len, one.batches)) for one in drawn[:5]] == [1, 1, 1, 1, 2]
    assert len({*drawn[:32]}) == 32
    assert drawn == payments(60, 7) != payments(60, 8)


def test_rows_that_fill_a_disk_are_of_no_history() -> None:
    cohort = SinkCohort(payments(10, 0))
    filled = cohort.table(1, filling=True)
    assert filled.num_rows > cohort.table(1).num_rows
    assert {*filled["history"].to_pylist()} - {*range(10)} == {-1}


def test_no_promise_is_broken_by_a_reader_that_finds_half_a_batch() -> None:
    assert all("torn" not in broken for broken in BROKEN_BY.values())
    assert "doubled" not in BROKEN_BY["at least once"]
