from __future__ import annotations

from typing import Any

import pytest
from streamproof.reference.spark.aggregates import AggregateFunction
from streamproof.reference.spark.groups import Groups, GroupsState

COUNT = {"n": AggregateFunction("count", None)}


def rows(*values: Any, column: str = "at") -> list[dict[str, Any]]:
    return [{"k": "a", "at": None, column: value} for value in values]


def emitted(
    state: GroupsState, given: list[dict[str, Any]], late_ms: int = 0, eviction_ms: int = 0
) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in state.batch(given, late_ms, eviction_ms)]


def test_in_append_mode_a_group_comes_once_its_event_time_is_at_the_watermark() -> None:
    state = GroupsState(Groups(("k", "at"), "at", COUNT))
    assert emitted(state, rows(5_000, 5_000, 5_001)) == []
    assert emitted(state, rows(5_000), 4, 5) == [("a", 5_000, 3)]
    assert emitted(state, rows(5_000, 5_001), 5, 6) == [("a", 5_001, 2)]  # the first is late now


def test_in_update_mode_the_groups_of_new_rows_come_and_a_closed_group_begins_anew() -> None:
    state = GroupsState(Groups(("k", "at"), "at", COUNT, "update"))
    assert emitted(state, rows(5_000, 6_000)) == [("a", 5_000, 1), ("a", 6_000, 1)]
    assert emitted(state, rows(5_000), 0, 5) == [("a", 5_000, 2)]
    assert emitted(state, rows(5_000, 6_000), 4, 5) == [("a", 5_000, 1), ("a", 6_000, 2)]
    assert emitted(state, [], 5, 6) == []


def test_in_complete_mode_all_groups_come_in_each_batch_and_nothing_is_late() -> None:
    state = GroupsState(Groups(("k", "at"), "at", COUNT, "complete"))
    assert emitted(state, rows(5_000), 9, 9) == [("a", 5_000, 1)]
    assert emitted(state, rows(6_000), 9, 9) == [("a", 5_000, 1), ("a", 6_000, 1)]
    assert emitted(state, [], 9, 9) == [("a", 5_000, 1), ("a", 6_000, 1)]


def test_without_an_event_time_no_group_is_late_or_forgotten_and_null_is_a_group() -> None:
    state = GroupsState(Groups(("k",), None, COUNT, "update"))
    assert emitted(state, rows("a", None, None, column="k"), 9, 9) == [("a", 1), (None, 2)]
    assert emitted(state, rows(None, column="k"), 9, 9) == [(None, 3)]


def test_a_null_event_time_is_a_group_that_is_never_closed() -> None:
    state = GroupsState(Groups(("k", "at"), "at", COUNT))
    assert emitted(state, rows(None, 5_000), 9, 99) == []
    assert emitted(state, [], 99, 999) == []


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_an_aggregate_of_all_rows_is_a_row_in_each_batch_from_the_first_on(mode: Any) -> None:
    state = GroupsState(Groups((), None, {**COUNT, "most": AggregateFunction("max", "v")}, mode))
    assert emitted(state, []) == [(0, None)]
    assert emitted(state, rows(2, 1, column="v")) == [(2, 2)]
    assert emitted(state, []) == [(2, 2)]
