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


def test_records_exactly_one_gap_apart_share_a_session():
    assert table(event("a", 0), event("a", 10)) == {("a", (0, 10)): (2, 10)}


def test_records_more_than_one_gap_apart_do_not_share_a_session():
    found = table(event("a", 0), event("a", 11), grace_ms=100)
    assert found == {("a", (0, 0)): (1, 0), ("a", (11, 11)): (1, 11)}


def test_a_record_between_two_sessions_merges_them():
    assert table(event("a", 0), event("a", 20), event("a", 10), grace_ms=100) == {("a", (0, 20)): (3, 20)}


def test_keys_do_not_share_sessions():
    assert table(event("a", 5), event("b", 5)) == {("a", (5, 5)): (1, 5), ("b", (5, 5)): (1, 5)}


def test_the_members_of_a_merge_are_in_order_of_the_sessions_ends_with_the_new_record_last():
    lines = (event("k", 20, "a"), event("k", 0, "b"), event("k", 10, "c"))
    assert table(*lines, grace_ms=100, aggregate="list") == {("k", (0, 20)): (["b", "a", "c"], 20)}


def test_a_record_whose_session_is_closed_is_dropped():
    assert table(event("a", 100), event("a", 89)) == {("a", (100, 100)): (1, 100)}


def test_a_record_at_the_edge_is_not_late():
    assert table(event("a", 100), event("a", 88), gap_ms=12) == {("a", (88, 100)): (2, 100)}


def test_a_late_record_joins_a_session_that_is_open():
    assert table(event("a", 30), event("b", 42), event("a", 29)) == {
        ("a", (30, 30)): (1, 30),
        ("b", (42, 42)): (1, 42),
    }
    assert table(event("a", 32), event("b", 42), event("a", 25))[("a", (25, 32))] == (2, 32)


def test_a_record_before_the_edge_is_late_on_its_own_whatever_session_it_would_join():
    lines = (event("a", 32), event("b", 42), event("a", 25))
    assert table(*lines, late="own") == {("a", (32, 32)): (1, 32), ("b", (42, 42)): (1, 42)}


def test_a_closed_session_is_never_revised_and_may_overlap_a_later_one():
    # At 22 the session from 0 to 4 is closed; 5 lies within the gap of it, and 3 within it.
    lines = (event("a", 0), event("a", 4), event("a", 15), event("b", 22), event("a", 5), event("a", 3))
    assert table(*lines, grace_ms=2) == {
        ("a", (0, 4)): (2, 4),
        ("a", (3, 15)): (3, 15),
        ("b", (22, 22)): (1, 22),
    }


def test_the_batch_clock_stands_still_within_a_batch():
    lines = (event("a", 100), event("a", 0))
    assert table(*lines, clock="batch") == {("a", (100, 100)): (1, 100), ("a", (0, 0)): (1, 0)}
    assert table(lines[0], CUT, lines[1], clock="batch") == {("a", (100, 100)): (1, 100)}


def test_a_heartbeat_moves_the_clock():
    assert table(ClockAdvance(100), event("a", 0)) == {}


def test_a_null_key_is_dropped_and_does_not_move_the_clock():
    assert table(event(None, 100), event("a", 0)) == {("a", (0, 0)): (1, 0)}


@pytest.mark.parametrize("clock", ["stream_time", "batch"])
def test_emit_close_emits_the_sessions_that_the_last_clock_has_closed(clock):
    lines = (event("a", 0), event("a", 5), event("b", 16), event("b", 17))
    assert table(*lines, emit="close", clock=clock) == {("a", (0, 5)): (2, 5)}
    assert table(event("a", 0), ClockAdvance(10), emit="close", clock=clock) == {}
    assert table(event("a", 0), ClockAdvance(11), emit="close", clock=clock) == {("a", (0, 0)): (1, 0)}


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
