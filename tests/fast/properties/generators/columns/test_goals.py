"""A coverage goal is met by the histories that it names, and by no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from streamproof.properties.generators.columns.debezium import DELETED as IS_DELETED
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.histories.goals import (
    AGAIN,
    DELETED,
    DISORDER,
    DUPLICATE,
    EMPTY_BATCH,
    EQUAL_TIMES,
    KEYS,
    LATE,
    MALFORMED,
    NULL_IN,
    NULL_VALUE,
    ROWS_ON,
    SILENT,
    UPDATED,
    covered,
)
from streamproof.properties.generators.columns.inputs import Input
from streamproof.properties.generators.columns.model import Arrival, JobHistory, Unreadable
from streamproof.properties.generators.columns.resolving import resolve_all

SECOND, DELAY = 1_000_000, 2_000_000
(CLICKS,) = resolve_all([Input("user string, at timestamp, n int", key="user", name="clicks")], 0)
TABLE_OF = Input("id string, name string", key="id", time="ts_ms", name="table", format="kafka", value="debezium")
ROWS = ROWS_ON.format("clicks")


def history(*batches: list[tuple[Any, Any, Any]], unreadable: Any = ()) -> JobHistory:
    def row(user: Any, at: Any, n: Any) -> Arrival:
        time = None if at is None else from_microseconds(int(at * SECOND))
        return Arrival("clicks", {"user": user, "at": time, "n": n})

    return JobHistory(tuple(tuple(row(*one) for one in batch) for batch in batches), unreadable=unreadable)


@pytest.mark.parametrize(
    ("given", "goals"),
    [
        (history([("a", 9, 1)]), set()),
        (history([("a", 8, 1), ("a", 9, 1)]), set()),
        (history([("a", 9, 1), ("a", 8, 1)]), {DISORDER}),
        (history([("a", 9, 1)], [("a", 8, 1)]), set()),
        (history([("a", 9, 1)], [("a", 7.000001, 1)]), set()),
        (history([("a", 9, 1)], [("a", 7, 1)]), {LATE}),
        (history([("a", 9, 1), ("a", 1, 1)], [("a", 10, 1)]), {DISORDER}),
        (history([("a", 9, 1)], [], [("a", 7, 1)]), {LATE, EMPTY_BATCH}),
        (history([("a", 9, 1), ("a", 9, 2)]), {EQUAL_TIMES}),
        (history([("a", 9, 1), ("a", 9, 1)]), {EQUAL_TIMES, DUPLICATE}),
        (history([("a", 8, 1)], [("a", 8, 1)]), {EQUAL_TIMES, DUPLICATE}),
        (history([("a", 8, 1), ("b", 9, 1)]), {KEYS}),
        (history([("a", 9, None)]), {NULL_IN.format("n", "clicks")}),
        (history([("a", None, 1), ("a", 9, 1)]), {NULL_IN.format("at", "clicks")}),
        (history([("a", 9, 1)], unreadable=(Unreadable(0, "clicks", {}, "null"),)), {NULL_VALUE.format("clicks")}),
        (history([("a", 9, 1)], unreadable=(Unreadable(0, "clicks", {}, "empty"),)), {MALFORMED.format("clicks")}),
    ],
)
def test_a_goal_is_met_exactly_where_it_came_up(given: JobHistory, goals: set[str]) -> None:
    assert covered([given], [CLICKS.source], [], DELAY) == goals | {ROWS}


@pytest.mark.parametrize("apart", [0, 59.999, 60, 60.001, 61])
def test_a_distance_is_met_by_two_times_or_by_a_time_and_the_clock_before_its_batch(apart: float) -> None:
    words = {59.999: "times 1 ms less than 1 minute apart", 60: "times exactly 1 minute apart"}
    words[60.001] = "times 1 ms more than 1 minute apart"
    met = {words[apart]} if apart in words else set()
    every = {*words.values()}
    for given in (history([("a", 100, 1), ("a", 100 + apart, 2)]), history([("a", 100, 1)], [("b", 100 + apart, 2)])):
        assert covered([given], [CLICKS.source], [60 * SECOND], DELAY) & every == met


@pytest.mark.parametrize(
    ("changes", "goals"),
    [
        ([False], set()),
        ([True], set()),
        ([False, False], {UPDATED}),
        ([False, True], {DELETED}),
        ([True, True], set()),
        ([True, False], {AGAIN}),
        ([False, True, True], {DELETED}),
        ([False, True, False], {DELETED, AGAIN}),
        ([False, True, False, False], {DELETED, AGAIN, UPDATED}),
    ],
)
def test_changes_of_a_table_are_those_of_rows_that_are_there(changes: list[bool], goals: set[str]) -> None:
    (given,) = resolve_all([TABLE_OF], 0)
    blank = dict.fromkeys(given.source.schema.names)
    rows = [
        Arrival(
            "table", {**blank, "id": "a", "ts_ms": from_microseconds(at * SECOND), "name": f"{at}", IS_DELETED: deleted}
        )
        for at, deleted in enumerate(changes)
    ]
    found = covered([JobHistory((tuple(rows),))], [given.source], [], DELAY)
    known = {one.format("table"): one for one in (UPDATED, DELETED, AGAIN)}
    assert {known[one] for one in found & known.keys()} == goals


@pytest.mark.parametrize(("second", "is_silent"), [("a", False), ("b", True)])
def test_a_key_is_silent_until_its_next_row(second: str, is_silent: bool) -> None:
    drawn = replace(history([("a", 0, 1)], [(second, 60, 1)]), clock=(0, 60 * SECOND))
    met = covered([drawn], [CLICKS.source], [], timeouts_us=[60 * SECOND])
    assert (SILENT[0].format("1 minute", "1 ms") in met) is is_silent


def test_a_key_is_silent_since_its_last_row() -> None:
    drawn = replace(history([("a", 0, 1)], [("a", 30, 1)], [("b", 90, 1)]), clock=(0, 30 * SECOND, 90 * SECOND))
    met = {silent: covered([drawn], [CLICKS.source], [], timeouts_us=[silent * SECOND]) for silent in (60, 90)}
    words = {60: "1 minute", 90: "90 seconds"}
    assert [SILENT[0].format(words[silent], "1 ms") in met[silent] for silent in met] == [True, False]
