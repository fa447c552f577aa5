from __future__ import annotations

from functools import reduce as fold_values
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.aggregates import (
    AGGREGATES,
    COUNT,
    LIST,
    MAX,
    MIN,
    SUM,
    Aggregate,
    named_aggregate,
    reduce,
)

QUIET = settings(deadline=None, max_examples=40, derandomize=True, database=None)


def of(aggregate: Aggregate, *values: Any) -> Any:
    return fold_values(lambda total, value: aggregate.aggregator("k", value, total), values, aggregate.initializer())


@pytest.mark.parametrize(("name", "nothing"), [("count", 0), ("sum", 0), ("min", None), ("max", None), ("list", [])])
def test_the_initializer_gives_the_aggregate_of_nothing(name: str, nothing: Any) -> None:
    assert AGGREGATES[name].initializer() == nothing


@pytest.mark.parametrize(("name", "result"), [("count", 3), ("sum", 6), ("min", 1), ("max", 3), ("list", [3, 1, 2])])
def test_the_aggregator_takes_each_value(name: str, result: Any) -> None:
    assert of(AGGREGATES[name], 3, 1, 2) == result


@pytest.mark.parametrize("aggregate", [MIN, MAX])
def test_zero_is_a_value_to_min_and_max(aggregate: Aggregate) -> None:
    assert of(aggregate, 0, 0) == 0


def test_min_and_max_take_strings() -> None:
    assert (of(MIN, "b", "a"), of(MAX, "b", "a")) == ("a", "b")


def test_sum_takes_fractions() -> None:
    assert of(SUM, 0.5, 1) == 1.5


def test_count_counts_nulls() -> None:
    assert of(COUNT, None, None) == 2


def test_list_keeps_nulls() -> None:
    assert of(LIST, None, "a") == [None, "a"]


def test_list_leaves_the_aggregate_it_was_given_as_it_was() -> None:
    before: list[Any] = ["a"]
    LIST.aggregator("k", "b", before)
    assert before == ["a"]


def test_list_merges_in_session_order() -> None:
    assert LIST.merger("k", ["b"], ["a"]) == ["b", "a"]


@pytest.mark.parametrize("name", AGGREGATES)
@QUIET
@given(values=st.lists(st.integers()), index=st.integers(0, 10))
def test_merging_the_parts_gives_the_aggregate_of_the_whole(name: str, values: list[int], index: int) -> None:
    aggregate = AGGREGATES[name]
    parts = of(aggregate, *values[:index]), of(aggregate, *values[index:])
    assert aggregate.merger("k", *parts) == of(aggregate, *values)


@pytest.mark.parametrize("name", AGGREGATES)
@QUIET
@given(values=st.lists(st.integers()))
def test_the_aggregate_of_nothing_is_neutral(name: str, values: list[int]) -> None:
    aggregate, nothing = AGGREGATES[name], AGGREGATES[name].initializer()
    total = of(aggregate, *values)
    assert aggregate.merger("k", nothing, total) == aggregate.merger("k", total, nothing) == total


@QUIET
@given(st.lists(st.integers()).flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_only_the_ordered_aggregate_minds_the_order(orders: tuple[list[int], list[int]]) -> None:
    for aggregate in AGGREGATES.values():
        if not aggregate.ordered:
            assert of(aggregate, *orders[0]) == of(aggregate, *orders[1])


def test_list_alone_is_ordered() -> None:
    assert [name for name, aggregate in AGGREGATES.items() if aggregate.ordered] == ["list"]


def test_a_reducers_first_value_stands_for_itself() -> None:
    assert of(reduce(lambda one, two: one - two), 5) == 5


def test_a_reducer_takes_values_from_left_to_right() -> None:
    assert of(reduce(lambda one, two: one - two), 5, 2, 1) == 2


def test_a_reducer_merges_sessions_too() -> None:
    assert reduce(lambda one, two: one - two).merger("k", 5, 2) == 3


def test_a_reducer_may_be_given_a_name() -> None:
    assert reduce(max, "latest").name == "latest"


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


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_is_found_by_its_name(name: str) -> None:
    assert named_aggregate(name).name == name


@pytest.mark.parametrize("name", ["", "avg", "COUNT", None, 1, ["count"]])
def test_an_unknown_aggregate_is_refused_with_those_there_are(name: Any) -> None:
    with pytest.raises(BadInput, match="use one of count, sum, min, max, list"):
        named_aggregate(name)
