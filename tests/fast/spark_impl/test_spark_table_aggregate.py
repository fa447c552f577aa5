"""The table aggregate on Spark: what is declared, what each stage decides, and one streaming query."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.aggregates import COUNT, LIST, SUM, Aggregate, TableAggregate
from streamproof.spark_impl.runtime.logic import Arrived
from streamproof.spark_impl.table_aggregate import table_aggregate_stages


def stages(aggregate: Aggregate = LIST) -> Any:
    return table_aggregate_stages(TableAggregate("group", aggregate, None if aggregate is COUNT else "amount"))


def row(order: int, group: str | None, member: Any, timestamp: int = 0) -> Arrived:
    return Arrived(timestamp, [order, timestamp], [group, member])


def test_a_member_that_the_aggregate_cannot_take_is_refused() -> None:
    with pytest.raises(BadInput, match="sum can't take the value None"):
        stages(SUM).rows.take(("a",), [], row(0, "x", None), 0)


def test_messages_are_taken_by_order_then_timestamp_then_number() -> None:
    groups = stages().groups
    places = [[1, 0, 0], [0, 5, 1], [0, 5, 0], [0, 2, 7]]
    arrived = [Arrived(0, place, []) for place in places]
    assert [one.order for one in groups.in_order(arrived)] == sorted(places)
