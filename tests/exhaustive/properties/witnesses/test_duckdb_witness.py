from __future__ import annotations

from typing import Any

import pytest
from streamproof.properties.witnesses.duckdb.witness import DuckDBWitness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, Delivery, History, Line, Record


def event(key: str | None, timestamp: int, value: Any = 1) -> Record:
    return Record("events", key, value, timestamp)


def table(*lines: Line, clock: str = "stream_time", **options: Any) -> dict[Any, Any]:
    (outcome,) = DuckDBWitness().evaluate([History("session_windows", {"gap_ms": 10, **options}, lines, clock)])
    assert outcome.final is not None
    return outcome.final


def test_a_sum_of_whole_numbers_is_whole_and_exact():
    found = table(event("a", 0, 2**63 - 1), event("a", 0, 2**63 - 1), aggregate="sum")
    assert found == {("a", (0, 0)): (2**64 - 2, 0)}
    assert type(found["a", (0, 0)][0]) is int


def test_a_sum_of_whole_numbers_and_floats_is_a_float():
    found = table(event("a", 0, 1), event("a", 0, 0.5), aggregate="sum")
    assert found == {("a", (0, 0)): (1.5, 0)}


def test_strings_are_compared_by_code_point():
    lines = (event("a", 0, "\U0001f600"), event("a", 0, "\uffff"))
    assert table(*lines, aggregate="max") == {("a", (0, 0)): ("\U0001f600", 0)}


def test_a_history_without_records_has_an_empty_table():
    assert table() == {}


def test_no_histories_have_no_outcomes():
    assert DuckDBWitness().evaluate([]) == []


@pytest.mark.parametrize(
    ("values", "aggregate", "message"),
    [
        (["x"], "sum", "sum can't take the value 'x'"),
        ([1, "x"], "min", "can't compare the string 'x' with the number 1"),
        ([10**40], "sum", "more than 38 digits"),
        ([10**38 - 1] * 20, "sum", "more than 38 digits"),
        (["\ud800"], "max", "surrogate"),
    ],
)
def test_a_value_that_duckdb_cannot_take_is_refused(values, aggregate, message):
    with pytest.raises(BadInput, match=message):
        table(*(event("a", 0, value) for value in values), aggregate=aggregate)


def test_an_operator_that_nobody_knows_is_refused():
    with pytest.raises(BadInput, match="unknown operator 'sort'"):
        DuckDBWitness().evaluate([History("sort", {}, ())])


def test_a_delivery_is_refused():
    with pytest.raises(BadInput, match="no channels"):
        table(Delivery("response", "r", "l"))


@pytest.mark.parametrize(
    ("aggregate", "values", "expected"),
    [
        ("count", [None] * 4, [1, 2]),
        ("sum", [1, 2, 3, 4], [2, 4]),
        ("sum", [0.5, 2.0, 3.0, 4.0], [2.0, 3.5]),
        ("min", ["d", "c", "b", "a"], ["c", "b"]),
        ("max", [1, 2, 3, 4], [2, 3]),
        ("list", ["d", None, "b", "a"], [[None], ["d", "b"]]),
    ],
)
def test_a_history_with_a_null_key_gives_the_sessions_of_the_others(aggregate, values, expected):
    first, second, third, fourth = zip(["b", "a", "b", None], [10, 0, 20, 500], values, strict=True)
    lines = [event(*first), event(*second), CUT, event(*third), event(*fourth)]
    history = History("session_windows", {"gap_ms": 10, "aggregate": aggregate}, tuple(lines), "batch")
    (outcome,) = DuckDBWitness().evaluate([history])
    assert outcome.final == {("a", (0, 0)): (expected[0], 0), ("b", (10, 20)): (expected[1], 20)}
