"""The key that a user's aggregate is given: the value of a key of one column, and a tuple of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from memory_runtime import Groups, Row, stage_of
from streamproof.reference.definitions.aggregates import Aggregate, TableAggregate
from streamproof.reference.definitions.windows import RangeAggregate, SessionWindows, WindowAggregate, WindowedTable
from streamproof.spark_impl.range_aggregate import RangeLogic
from streamproof.spark_impl.runtime.logic import Logic
from streamproof.spark_impl.session_windows import SessionLogic
from streamproof.spark_impl.table_aggregate import GroupLogic
from streamproof.spark_impl.window_aggregate import WindowLogic
from streamproof.spark_impl.windowed_table import WindowedLogic

LOGICS: dict[str, tuple[Callable[[Aggregate], Logic[Any]], str]] = {
    "session": (lambda by: SessionLogic(SessionWindows(5, aggregate=by)), "added merged"),
    "session window": (lambda by: WindowLogic(WindowAggregate(5, "session", aggregate=by)), "added merged"),
    "window": (lambda by: WindowLogic(WindowAggregate(5, aggregate=by)), "added"),
    "range": (lambda by: RangeLogic(RangeAggregate(5, by)), "added"),
    "windowed table": (lambda by: WindowedLogic(WindowedTable(5, aggregate=by)), "added"),
}


def noting(seen: set[tuple[str, Any]]) -> Aggregate:
    """Return a count that notes the keys that it is given."""

    def note(what: str, key: Any, count: int) -> int:
        seen.add((what, key))
        return count

    return Aggregate(
        "noted",
        initializer=int,
        aggregator=lambda key, value, count: note("added", key, count + 1),
        merger=lambda key, one, two: note("merged", key, one + two),
        subtractor=lambda key, value, count: note("subtracted", key, count - 1),
    )


@pytest.mark.parametrize(("columns", "key"), [(("a",), "a"), (("a", 1), ("a", 1)), ((None, "a"), (None, "a"))])
@pytest.mark.parametrize("name", LOGICS)
def test_an_aggregate_is_given_the_key_itself_or_a_tuple_of_its_columns(
    name: str, columns: tuple[Any, ...], key: Any
) -> None:
    seen: set[tuple[str, Any]] = set()
    logic, asked = LOGICS[name]
    rows = [Row(columns, time, [number], 1) for number, time in enumerate((10, 18, 14, 14))]
    stage = stage_of(logic(noting(seen)), ["events"])
    stage.logic.keeps_null_keys = True
    Groups(1).batch(stage, rows, 0)
    assert seen == {(what, key) for what in asked.split()}


def test_an_aggregate_of_a_table_is_given_the_group() -> None:
    for columns, key in ((("a",), "a"), (("a", 1), ("a", 1))):
        seen: set[tuple[str, Any]] = set()
        groups = GroupLogic(TableAggregate("group", noting(seen)))
        assert (groups.added(columns, 1, 5), groups.subtracted(columns, 1, 5)) == (2, 0)
        assert seen == {("added", key), ("subtracted", key)}
