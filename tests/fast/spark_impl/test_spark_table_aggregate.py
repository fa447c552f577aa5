"""The table aggregate on Spark: what is declared, what each stage decides, and one streaming query."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.aggregates import COUNT, LIST, SUM, Aggregate, TableAggregate
from streamproof.spark_impl.runtime.logic import Arrived, Emitted
from streamproof.spark_impl.table_aggregate import InGroup, table_aggregate_stages


def stages(aggregate: Aggregate = LIST) -> Any:
    return table_aggregate_stages(TableAggregate("group", aggregate, None if aggregate is COUNT else "amount"))


def row(order: int, group: str | None, member: Any, timestamp: int = 0) -> Arrived:
    return Arrived(timestamp, [order, timestamp], [group, member])


def message(order: int, step: int, taken: Any, added: Any, takes: bool, adds: bool, timestamp: int = 0) -> Arrived:
    return Arrived(timestamp, [order, timestamp, step], [timestamp, None, taken, added, takes, adds])


def sent(emitted: list[Emitted]) -> list[Any]:
    return [one.value for one in emitted]


def test_a_row_that_moves_is_subtracted_from_its_old_group_before_it_is_added_to_the_new_one() -> None:
    rows = stages().rows
    state = [InGroup(("x",), 1)]
    assert sent(rows.take(("a",), state, row(0, "y", 2), 0)) == [
        ("x", 1, None, True, False),
        ("y", None, 2, False, True),
    ]
    assert state == [InGroup(("y",), 2)]


def test_a_row_that_stays_in_its_group_sends_one_message() -> None:
    rows = stages().rows
    assert sent(rows.take(("a",), [InGroup(("x",), 1)], row(0, "x", 2), 0)) == [("x", 1, 2, True, True)]


def test_a_row_without_a_group_takes_back_what_it_had_added_and_is_forgotten() -> None:
    rows = stages().rows
    state = [InGroup(("x",), 1)]
    assert sent(rows.take(("a",), state, row(0, None, None), 0)) == [("x", 1, None, True, False)]
    assert rows.pack(state) is None
    assert rows.take(("a",), state, row(1, None, 7), 0) == []


def test_a_member_that_the_aggregate_cannot_take_is_refused() -> None:
    with pytest.raises(BadInput, match="sum can't take the value None"):
        stages(SUM).rows.take(("a",), [], row(0, "x", None), 0)


def test_a_group_subtracts_then_adds_and_shows_the_largest_timestamp() -> None:
    groups = stages().groups
    state: list[Any] = []
    emitted = [
        one
        for received in (
            message(0, 0, None, 1, False, True, 50),
            message(1, 0, None, 2, False, True, 20),
            message(2, 0, 1, 3, True, True, 30),
            message(3, 0, 2, None, True, False, 10),
            message(4, 0, 3, None, True, False, 60),
        )
        for one in groups.take(("x",), state, received, 0)
    ]
    assert [(one.value, one.timestamp) for one in emitted] == [
        ([1], 50),
        ([1, 2], 50),
        ([2, 3], 50),
        ([3], 50),
        ([], 60),
    ]
    assert groups.unpack(groups.pack(state)) == state


def test_messages_are_taken_by_order_then_timestamp_then_number() -> None:
    groups = stages().groups
    places = [[1, 0, 0], [0, 5, 1], [0, 5, 0], [0, 2, 7]]
    arrived = [Arrived(0, place, []) for place in places]
    assert [one.order for one in groups.in_order(arrived)] == sorted(places)


def test_a_dropped_row_is_handed_on_without_touching_a_group() -> None:
    groups = stages().groups
    state: list[Any] = []
    dropped = Arrived(0, [0, 0, 0], [0, "null key", None, None, None, None])
    emitted = groups.take((None,), state, dropped, 0)
    assert [(one.change, one.reason) for one in emitted] == [("dropped", "null key")]
    assert groups.pack(state) is None
