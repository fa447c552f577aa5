from __future__ import annotations

import pytest
from notation import changelog, result_of, steps
from streamproof.reference.core.records import Change

RANGE = "range_aggregate"
TEN_MINUTES = 600_000


def test_the_average_price_over_the_last_ten_minutes() -> None:
    # SELECT STREAM product, AVG(price) FROM Orders OVER (ORDER BY time RANGE '10' min PRECEDING)
    minute = 60_000
    orders = [("pen", 10, 0), ("pen", 20, 5), ("ink", 90, 6), ("pen", 60, 10), ("pen", 40, 15), ("pen", 1, 26)]
    text = " ".join(f"{product}={price}@{at * minute}" for product, price, at in orders)
    assert [one.rpartition("@")[0] for one in steps(text, RANGE, preceding_ms=TEN_MINUTES, aggregate="average")] == [
        "pen=10.0",
        "pen=15.0",
        "ink=90.0",
        "pen=30.0",  # both ends count: the order exactly ten minutes ago too
        "pen=40.0",
        "pen=1.0",
    ]


@pytest.mark.parametrize(
    ("aggregate", "emitted"),
    [("count", "3"), ("sum", "9"), ("min", "2"), ("max", "4"), ("list", "(2,3,4)"), ("average", "3.0")],
)
def test_each_aggregate_over_a_range(aggregate: str, emitted: str) -> None:
    assert steps("k=3@2 k=2@1 k=4@3", RANGE, preceding_ms=5, aggregate=aggregate)[-1] == f"k={emitted}@3"


def test_values_are_folded_by_timestamp_and_then_by_arrival() -> None:
    text = "k=c@5 k=a@3 k=d@5 k=b@3 k=e@5"
    assert steps(text, RANGE, preceding_ms=5, aggregate="list")[-1] == "k=(a,b,c,d,e)@5"


@pytest.mark.parametrize(("earlier", "inside"), [(4, False), (5, True), (15, True), (16, False)])
def test_both_ends_of_the_range_are_included_and_nothing_after_it(earlier: int, inside: bool) -> None:
    assert steps(f"k@{earlier} k@15", RANGE, preceding_ms=10)[-1] == f"k={1 + inside}@15"


def test_a_range_of_nothing_holds_the_records_of_that_instant() -> None:
    assert steps("k@4 k@5 k@5", RANGE, preceding_ms=0)[-1] == "k=2@5"


def test_a_record_that_comes_late_is_answered_from_what_has_arrived_and_changes_no_earlier_answer() -> None:
    assert steps("k@10 k@99999 k@5 k@10", RANGE, preceding_ms=10) == ["k=1@10", "k=1@99999", "k=1@5", "k=3@10"]


def test_the_result_is_a_stream_in_which_equal_answers_stand_twice() -> None:
    assert result_of("j@1 k@1 j@9", RANGE, preceding_ms=0) == [
        Change("j", None, 1, 1),
        Change("j", None, 1, 9),
        Change("k", None, 1, 1),
    ]


# Laws.


def test_a_null_value_is_counted() -> None:
    assert changelog("k=∅@1", RANGE, preceding_ms=10) == "k=1@1"
