from __future__ import annotations

from typing import Any

import pytest
from notation import changelog, result_of, rows_of, steps, values_of
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Record, Value
from streamproof.reference.definitions.aggregates import MAX, TableAggregate

AGGREGATE = "table_aggregate"

# "Subtract the old from its group, add the new to its group": arrivals at 0, 1, 2 …

ROWS = [
    # arrival, count, sum of v, list of v
    ("k=1/g", "g=1@0", "g=1@0", "g=(1)@0"),
    ("j=2/g", "g=2@1", "g=3@1", "g=(1,2)@1"),
    ("k=3/g", "g=2@2", "g=5@2", "g=(2,3)@2"),
    ("k=3/h", "g=1@3 h=1@3", "g=2@3 h=3@3", "g=(2)@3 h=(3)@3"),
    ("j=4/null", "g=0@4", "g=0@4", "g=()@4"),
    ("j=5/h", "h=2@5", "h=8@5", "h=(3,5)@5"),
    ("j=∅", "h=1@6", "h=3@6", "h=(3)@6"),
    ("j=∅", "-", "-", "-"),
    ("i=6/null", "-", "-", "-"),
    ("i=∅", "-", "-", "-"),
    ("k=∅", "h=0@10", "h=0@10", "h=()@10"),
    ("k=7/g", "g=1@11", "g=7@11", "g=(7)@11"),
]


@pytest.mark.parametrize(("column", "aggregate"), [(1, "count"), (2, "sum"), (3, "list")])
def test_the_old_is_subtracted_and_the_new_added(column: int, aggregate: str) -> None:
    rows_of([(row[0], row[column]) for row in ROWS], AGGREGATE, aggregate=aggregate, field="v")


def test_the_old_group_is_emitted_before_the_new_one() -> None:
    assert steps("k=1/z k=1/a", AGGREGATE)[-1] == "z=0@1 a=1@1"


def test_the_same_row_again_is_emitted_again() -> None:
    assert steps("k=1/g k=1/g", AGGREGATE) == ["g=1@0", "g=1@1"]


def test_a_list_without_field_holds_whole_values() -> None:
    emitted = result_of("k=1/g", AGGREGATE, aggregate="list")
    assert emitted == {("g", None): ([{"v": 1, "group": "g"}], 0)}


def test_an_updated_member_goes_to_the_end_of_the_list() -> None:
    assert changelog("a=1/g b=2/g a=3/g", AGGREGATE, aggregate="list", field="v").endswith("g=(2,3)@2")


def test_of_two_equal_members_the_first_is_taken_away() -> None:
    text = "a=1/g b=2/g c=1/g c=∅"
    assert changelog(text, AGGREGATE, aggregate="list", field="v").endswith("g=(2,1)@3")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k=1/g@9 j=1/g@3", "g=2@9"),
        ("k=1/g@9 k=1/h@3", "g=0@9 h=1@3"),
        ("k=1/g@9 k=∅@3", "g=0@9"),
        ("k=1/g@3 k=1/h@9", "g=0@9 h=1@9"),
    ],
)
def test_a_group_is_stamped_with_the_largest_timestamp_that_it_has_seen(text: str, expected: str) -> None:
    assert steps(text, AGGREGATE)[-1] == expected


def test_the_last_to_arrive_stands_whatever_its_timestamp() -> None:
    assert steps("k=1/g@9 k=5/g@3", AGGREGATE, aggregate="sum", field="v")[-1] == "g=5@9"


def test_a_row_without_group_needs_no_field() -> None:
    assert changelog("k=x/null", AGGREGATE, aggregate="sum", field="v") == ""


def test_an_aggregate_that_cannot_subtract_is_refused() -> None:
    with pytest.raises(BadInput, match="the aggregate max can't subtract: use count, sum or list"):
        TableAggregate("group", MAX)


# Laws.


def rows_in_turn(*rows: tuple[str, Value], aggregate: str) -> History:
    """Rows of one group by key, one after the other."""
    options = {"group_by": "group", "aggregate": aggregate, "field": "v"}
    lines: list[Any] = []
    for at, (key, value) in enumerate(rows):
        lines += [Record("events", key, None if value is None else {"v": value, "group": "g"}, at), CUT]
    return History(AGGREGATE, options, tuple(lines))


@pytest.mark.parametrize(("values", "emitted"), [((0.1, 0.2), 0.30000000000000004 - 0.1), ((1e16, 1.0), 0.0)])
def test_a_sum_of_fractions_is_updated_by_subtraction_too(values: tuple[float, float], emitted: float) -> None:
    history = rows_in_turn(("a", values[0]), ("b", values[1]), ("a", None), aggregate="sum")
    assert values_of(play(history).result)["g", None] == emitted


@pytest.mark.parametrize("values", [(1, True), (True, 1), (0, False)])
def test_a_truth_value_is_no_number_when_it_is_taken_from_a_list(values: tuple[Any, Any]) -> None:
    history = rows_in_turn(("a", values[0]), ("b", values[1]), ("b", None), aggregate="list")
    emitted = values_of(play(history).result)["g", None]
    assert [type(member) for member in emitted] == [type(values[0])]
