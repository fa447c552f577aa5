from __future__ import annotations

import random
from typing import Any

import pytest
from streamproof.properties.outcomes.outcomes import Grain
from streamproof.properties.witnesses.duckdb.witness import DuckDBWitness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, ClockAdvance, Delivery, History, Line, Record
from streamproof.reference.core.play import play

# The values of one history come from one pool; floats are such that no sum of them is rounded.
POOLS: dict[str, list[list[Any]]] = {
    "count": [[None, 1, "x"]],
    "list": [[None, "x", 1, 2.5, True, [1, None], {"a": 2}, "\ud800"]],
    "sum": [[1, -3, 2**62, 10**25, 0], [0.5, 1, -3.25, 7]],
    "min": [[1, -3, 2**62, 10**25, 0.5, 1.0], ["b", "a", "A", ""]],
    "max": [["", "a", "b", "é", "\uffff", "\U0001f600", "a\0b"], [1, 0.5, -(10**25)]],
}


def event(key: str | None, timestamp: int, value: Any = 1) -> Record:
    return Record("events", key, value, timestamp)


def table(*lines: Line, clock: str = "stream_time", **options: Any) -> dict[Any, Any]:
    (outcome,) = DuckDBWitness().evaluate([History("session_windows", {"gap_ms": 10, **options}, lines, clock)])
    assert outcome.final is not None
    return outcome.final


def drawn(draw: random.Random, options: dict[str, Any], clock: str) -> History:
    """A random history with late records, cuts, heartbeats and null keys."""
    lines: list[Line] = []
    pool = draw.choice(POOLS[options["aggregate"]])
    for _ in range(draw.randrange(30)):
        kind = draw.random()
        if kind < 0.1:
            lines.append(CUT)
        elif kind < 0.15:
            lines.append(ClockAdvance(draw.randrange(100)))
        else:
            key = None if kind < 0.2 else draw.choice("ab")
            lines.append(event(key, draw.randrange(81), draw.choice(pool)))
    return History("session_windows", options, tuple(lines), clock)


@pytest.mark.parametrize("aggregate", POOLS)
@pytest.mark.parametrize("clock", ["stream_time", "batch"])
@pytest.mark.parametrize("emit", ["update", "close"])
@pytest.mark.parametrize("late", ["merged", "own"])
def test_duckdb_and_the_reference_agree_on_random_histories(aggregate, clock, emit, late):
    draw = random.Random(f"{aggregate} {clock} {emit} {late}")
    # A statement costs more than the histories in it: every aggregate has one gap and grace, and the others the others.
    gap, grace = ((5, 0), (8, 30), (12, 3))[list(POOLS).index(aggregate) % 3]
    histories = [
        drawn(draw, {"gap_ms": gap, "grace_ms": grace, "aggregate": aggregate, "emit": emit, "late": late}, clock)
        for _ in range(60)
    ]
    for history, outcome in zip(histories, DuckDBWitness().evaluate(histories), strict=True):
        assert outcome.final == play(history).result, history.to_text()


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


def test_histories_of_several_options_and_clocks_come_back_in_their_order():
    lines = (event("a", 100), event("a", 89))
    asked = [
        History("session_windows", {"gap_ms": 10}, lines, "stream_time", "first"),
        History("session_windows", {"gap_ms": 20}, lines, "stream_time", "second"),
        History("session_windows", {"gap_ms": 10}, lines, "batch", "third"),
        History("session_windows", {"gap_ms": 10}, lines, "stream_time", "fourth"),
    ]
    outcomes = DuckDBWitness().evaluate(asked)
    assert [outcome.history for outcome in outcomes] == ["first", "second", "third", "fourth"]
    assert [len(outcome.result) for outcome in outcomes] == [1, 1, 2, 1]
    assert {outcome.grain for outcome in outcomes} == {Grain.END}


def test_the_same_key_in_two_histories_is_two_keys():
    one, two = (History("session_windows", {"gap_ms": 10}, (event("a", at),)) for at in (0, 5))
    assert [outcome.final for outcome in DuckDBWitness().evaluate([one, two])] == [
        {("a", (0, 0)): (1, 0)},
        {("a", (5, 5)): (1, 5)},
    ]


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


def test_duckdb_and_the_reference_agree_on_a_long_history():
    draw = random.Random(7)
    lines: list[Line] = []
    for index in range(400):
        lines += [CUT] if index and not index % 90 else []
        lines.append(event(draw.choice(["a", "b", "c", None]), index + draw.randrange(60)))
    for clock in ("batch", "stream_time"):
        history = History("session_windows", {"gap_ms": 3, "grace_ms": 5}, tuple(lines), clock)
        (outcome,) = DuckDBWitness().evaluate([history])
        assert outcome.final == play(history).result
