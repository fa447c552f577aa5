"""The table aggregate on Spark: what its stages decide beyond the histories that test_declared.py plays."""

from __future__ import annotations

import pytest
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.aggregates import SUM, TableAggregate
from streamproof.spark_impl.runtime.logic import Arrived
from streamproof.spark_impl.table_aggregate import table_aggregate_stages

STAGES = table_aggregate_stages(TableAggregate("group", SUM, "amount"))


def test_a_member_that_the_aggregate_cannot_take_is_refused() -> None:
    with pytest.raises(BadInput, match="sum can't take the value None"):
        STAGES.rows.take(("a",), [], Arrived(0, [0, 0], ["x", None]), 0)


def test_messages_are_taken_by_order_then_timestamp_then_number() -> None:
    places = [[1, 0, 0], [0, 5, 1], [0, 5, 0], [0, 2, 7]]
    arrived = [Arrived(0, place, []) for place in places]
    assert [one.order for one in STAGES.groups.in_order(arrived)] == sorted(places)


@pytest.mark.parametrize("first", [-9, 0, 9])
def test_a_group_has_the_largest_time_of_its_messages_before_1970_too(first: int) -> None:
    state, stamps = STAGES.groups.empty(), []
    for timestamp in (first, first - 1, first + 2):
        message = Arrived(0, [0, 0], [timestamp, None, None, 1, False, True])
        stamps += [one.timestamp for one in STAGES.groups.take(("x",), state, message, 0)]
    assert stamps == [first, first, first + 2]
