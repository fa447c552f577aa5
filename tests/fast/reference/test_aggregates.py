from __future__ import annotations

from functools import reduce as fold_values
from math import nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.aggregates import (
    AGGREGATES,
    AGGREGATES_OF_SAMZA,
    COUNT,
    LIST,
    MAX,
    MIN,
    SUM,
    Aggregate,
    reduce,
)

QUIET = settings(deadline=None, max_examples=40, derandomize=True, database=None)


DIFFERENCE = reduce(lambda one, two: one - two, "difference")


def of(aggregate: Aggregate, *values: Any) -> Any:
    return fold_values(lambda total, value: aggregate.aggregator("k", value, total), values, aggregate.initializer())


@pytest.mark.parametrize(("name", "nothing"), [("count", 0), ("sum", 0), ("min", None), ("max", None), ("list", [])])
def test_the_initializer_gives_the_aggregate_of_nothing(name: str, nothing: Any) -> None:
    assert AGGREGATES[name].initializer() == nothing


@pytest.mark.parametrize(
    ("aggregate", "values", "result"),
    [
        (COUNT, ["a", None], 2),
        (SUM, [0.5, 1, 2], 3.5),
        (MIN, [3, 0, 2], 0),
        (MAX, [0, 0], 0),
        (MIN, ["b", "a"], "a"),
        (MAX, ["b", "a"], "b"),
        (MIN, [nan, 1.5, nan], 1.5),
        (MAX, [1, 2, nan], nan),
        (MAX, [nan, 1], nan),
        (LIST, ["b", None, "a"], ["b", None, "a"]),
        (DIFFERENCE, [5], 5),
        (DIFFERENCE, [5, 2, 1], 2),
    ],
    ids=lambda part: getattr(part, "name", None),
)
def test_the_aggregator_takes_each_value_in_order(aggregate: Aggregate, values: list[Any], result: Any) -> None:
    assert repr(of(aggregate, *values)) == repr(result)


def test_an_ordered_aggregate_and_a_reducer_merge_in_session_order() -> None:
    assert LIST.merger("k", ["b"], ["a"]) == ["b", "a"]
    assert (DIFFERENCE.merger("k", 5, 2), DIFFERENCE.name) == (3, "difference")
    assert [name for name, aggregate in AGGREGATES.items() if aggregate.ordered] == ["list"]


def test_list_leaves_the_aggregate_it_was_given_as_it_was() -> None:
    before: list[Any] = ["a"]
    LIST.aggregator("k", "b", before)
    assert before == ["a"]


@pytest.mark.parametrize("name", AGGREGATES_OF_SAMZA)
@QUIET
@given(values=st.lists(st.integers()), index=st.integers(0, 10))
def test_merging_the_parts_gives_the_aggregate_of_the_whole(name: str, values: list[int], index: int) -> None:
    aggregate = AGGREGATES_OF_SAMZA[name]
    parts = of(aggregate, *values[:index]), of(aggregate, *values[index:])
    assert aggregate.merger("k", *parts) == of(aggregate, *values)


@QUIET
@given(st.lists(st.integers()).flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_only_the_ordered_aggregate_minds_the_order(orders: tuple[list[int], list[int]]) -> None:
    for aggregate in AGGREGATES.values():
        if not aggregate.ordered:
            assert of(aggregate, *orders[0]) == of(aggregate, *orders[1])


def test_a_reducer_may_refuse_values() -> None:
    longest = reduce(max, "longest", lambda value: None if isinstance(value, str) else "a string")
    with pytest.raises(BadInput, match="longest can't take the value 1: it needs a string"):
        longest.check(1)


@pytest.mark.parametrize("value", [None, "x", True, [1], {"a": 1}])
def test_sum_refuses_what_is_no_number(value: Any) -> None:
    with pytest.raises(BadInput, match=r"sum can't take the value .*: it needs a number$"):
        SUM.check(value)


@pytest.mark.parametrize("aggregate", [MIN, MAX])
@pytest.mark.parametrize("value", [None, True, [1], {"a": 1}])
def test_min_and_max_refuse_what_is_neither_number_nor_string(aggregate: Aggregate, value: Any) -> None:
    with pytest.raises(BadInput, match="it needs a number or a string"):
        aggregate.check(value)


@pytest.mark.parametrize("aggregate", [COUNT, LIST, reduce(max)])
@pytest.mark.parametrize("value", [None, "x", True, 1.5, [1], {"a": 1}])
def test_count_list_and_a_plain_reducer_take_anything(aggregate: Aggregate, value: Any) -> None:
    aggregate.check(value)
