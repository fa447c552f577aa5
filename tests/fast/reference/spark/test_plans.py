"""Plans, node by node: the columns, the event time and the rows of their output."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from streamproof.reference.spark.aggregates import AggregateFunction
from streamproof.reference.spark.execution import Execution
from streamproof.reference.spark.expressions import Expression, column, constant
from streamproof.reference.spark.groups import Groups
from streamproof.reference.spark.plans import (
    Aggregation,
    Deduplication,
    Explode,
    Filter,
    Join,
    Limit,
    Lookup,
    Node,
    Processing,
    Project,
    Scan,
    Union,
    WithWatermark,
    pruned,
    with_joins,
)
from streamproof.reference.spark.processor import Processor
from streamproof.reference.spark.session_windows import SessionAggregation
from streamproof.reference.spark.static_join import StaticJoin
from streamproof.reference.spark.stream_join import StreamJoin
from streamproof.reference.spark.windows import Windows

S = 1_000_000
EVENTS = Scan("a", ("k", "ts", "v"))
TIMED = WithWatermark((EVENTS,), "ts", 5 * S)
COUNT = {"n": AggregateFunction("count", None)}
V_PLUS_1 = Expression("+", (column("v"), constant(1)))
WINDOWS = Windows("ts", ("k",), 10 * S, 10 * S, 0, COUNT)


def select(node: Node, *names: str, **made: Expression) -> Project:
    return Project((node,), (*((name, column(name)) for name in names), *made.items()))


def joined(kind: Any = "inner", before_us: int | None = S, right: Node = TIMED, left: Node = TIMED) -> Join:
    renamed = select(right, **{f"{name}2": column(name) for name in right.columns})
    return Join((left, renamed), StreamJoin(kind, (("k",), ("k2",)), ("ts", "ts2"), before_us, S))


def rows_of(plan: Node, *batches: list[tuple[Any, ...]], **options: Any) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each micro-batch of a plan over the input `a`."""
    given = [{"a": [dict(zip(EVENTS.has, row, strict=True)) for row in batch]} for batch in batches]
    return [[tuple(row.values()) for row in micro.rows] for micro in Execution(plan, **options).run(given)]


A_AND_NULLS = [("a", S, 1), (None, None, None)]


@pytest.mark.parametrize(
    ("plan", "columns", "rows"),
    [
        (TIMED, "k ts v", A_AND_NULLS),
        (select(EVENTS, "v", w=V_PLUS_1), "v w", [(1, 2), (None, None)]),
        (Filter((EVENTS,), Expression("=", (column("v"), constant(1)))), "k ts v", [("a", S, 1)]),
        (Filter((EVENTS,), Expression("<>", (column("v"), constant(2)))), "k ts v", [("a", S, 1)]),
        (
            Explode((select(EVENTS, "k", "v"),), "v", (column("v"), V_PLUS_1)),
            "k v",
            [("a", 1), ("a", 2), (None, None), (None, None)],
        ),
        (Union((EVENTS, EVENTS)), "k ts v", A_AND_NULLS * 2),
        (Limit((EVENTS,), 1), "k ts v", [("a", S, 1)]),
        (Deduplication((Union((EVENTS, EVENTS)),), ("k",)), "k ts v", A_AND_NULLS),
        (Aggregation((EVENTS,), Groups((), None, COUNT, "complete")), "n", [(2,)]),
        (Aggregation((TIMED,), replace(WINDOWS, mode="complete"), "at"), "k at n", [("a", 10 * S - 1, 1)]),
        (Aggregation((TIMED,), replace(WINDOWS, mode="complete")), "k n", [("a", 1)]),
        (
            Aggregation((TIMED,), SessionAggregation("ts", ("k",), 2 * S, COUNT, "complete"), "at"),
            "k at n",
            [("a", 3 * S - 1, 1)],
        ),
        (joined(), "k ts v k2 ts2 v2", [("a", S, 1, "a", S, 1)]),
        (joined("left_semi"), "k ts v", [("a", S, 1)]),
    ],
)
def test_a_node_has_these_columns_and_rows(plan: Node, columns: str, rows: list[tuple[Any, ...]]) -> None:
    assert plan.columns == tuple(columns.split())
    assert rows_of(plan, A_AND_NULLS, without_data=False) == [rows]


TABLE = ({"id": "a", "x": 7}, {"id": "a", "x": 8}, {"id": None, "x": 9})


@pytest.mark.parametrize(
    ("kind", "columns", "rows"),
    [
        ("inner", "k ts v x", [("a", S, 1, 7), ("a", S, 1, 8)]),
        ("left", "k ts v x", [("a", S, 1, 7), ("a", S, 1, 8), (None, None, None, None)]),
        ("left_semi", "k ts v", [("a", S, 1)]),
        ("left_anti", "k ts v", [(None, None, None)]),
    ],
)
def test_a_lookup_adds_columns_of_the_table_or_keeps_the_streams_alone(kind: Any, columns: str, rows: Any) -> None:
    plan = Lookup((EVENTS,), StaticJoin(kind, ("k",), ("id",), ("x",), TABLE))
    assert plan.columns == tuple(columns.split())
    assert rows_of(plan, A_AND_NULLS) == [rows]


def test_a_limit_counts_over_all_batches() -> None:
    one, two = ("a", S, 1), ("b", S, 2)
    assert rows_of(Limit((EVENTS,), 3), [one, two], [one, two], [one]) == [[one, two], [one], []]


def test_an_outer_join_has_nulls_for_the_side_that_is_missing() -> None:
    assert rows_of(joined("left"), [("a", S, 1)], [("b", 20 * S, 2)])[1:] == [
        [("b", 20 * S, 2, "b", 20 * S, 2)],
        [],
    ]
    filtered = Filter((TIMED,), constant(False))
    assert rows_of(joined("left", right=filtered), [("a", S, 1)], [("b", 20 * S, 2)]) == [
        [],
        [],
        [("a", S, 1, None, None, None)],
    ]
    assert rows_of(joined("right", left=filtered), [("a", S, 1)], [("b", 20 * S, 2)]) == [
        [],
        [],
        [(None, None, None, "a", S, 1)],
    ]


@pytest.mark.parametrize(
    ("plan", "event_times"),
    [
        (EVENTS, []),
        (TIMED, ["ts"]),
        (Filter((TIMED,), constant(True)), ["ts"]),
        (select(TIMED, "k", at=column("ts")), ["at"]),
        (select(TIMED, "ts", at=column("ts")), ["ts", "at"]),
        (select(TIMED, ts=Expression("coalesce", (column("ts"), column("ts")))), []),
        (select(TIMED, "k", "v"), []),
        (Explode((TIMED,), "v", (column("v"),)), ["ts"]),
        (Explode((TIMED,), "ts", (column("ts"),)), []),
        (Union((TIMED, EVENTS)), ["ts"]),
        (Union((EVENTS, TIMED)), []),
        (Lookup((TIMED,), StaticJoin("inner", ("k",), ("id",), ("x",), TABLE)), ["ts"]),
        (Deduplication((TIMED,), ("k",)), ["ts"]),
        (joined(), ["ts", "ts2"]),
        (joined("left_semi"), ["ts"]),
        (joined(right=EVENTS), ["ts"]),
        (Aggregation((TIMED,), WINDOWS, "at"), ["at"]),
        (Aggregation((TIMED,), WINDOWS), []),
        (Aggregation((EVENTS,), WINDOWS, "at"), []),
        (Aggregation((TIMED,), Groups(("k", "ts"), "ts", COUNT)), ["ts"]),
        (Aggregation((TIMED,), Groups(("k",), None, COUNT, "update")), []),
    ],
)
def test_the_event_time_goes_through_names_alone(plan: Node, event_times: list[str]) -> None:
    assert [time.column for time in plan.event_times] == event_times
    assert all(time.delay_us == 5 * S for time in plan.event_times)


def test_a_union_has_the_delay_of_its_first_side() -> None:
    other = WithWatermark((EVENTS,), "ts", 9 * S)
    assert [Union(sides).event_times[0].delay_us for sides in ((TIMED, other), (other, TIMED))] == [5 * S, 9 * S]


LATE = [("a", 20 * S, 1)], [("d", 20 * S, 1)], [("b", 15 * S, 2), ("c", 15 * S + 1, 3)]


@pytest.mark.parametrize(
    ("plan", "written", "planned"),
    [
        (select(Deduplication((TIMED,), ("k",)), "k"), ["c"], ["b", "c"]),
        (select(Deduplication((TIMED,), ("k",)), "k", "ts"), ["c"], ["c"]),
        (select(Deduplication((TIMED,), ("k", "ts")), "k"), ["c"], ["c"]),
        (select(Deduplication((TIMED,), ("k",), within_watermark=True), "k"), ["c"], ["b", "c"]),
        (select(replace(joined(), by=replace(joined().by, before_us=None, after_us=None)), "k"), ["c"], ["b", "c"]),
        (select(joined(), "k"), ["c"], ["c"]),
        (select(Filter((TIMED,), constant(True)), "k"), ["b", "c"], ["b", "c"]),
        (Aggregation((TIMED,), Groups(("k",), None, COUNT, "update")), ["b", "c"], ["b", "c"]),
    ],
)
def test_without_its_event_time_an_operator_drops_no_late_row(
    plan: Node, written: list[str], planned: list[str]
) -> None:
    for one, rows in ((plan, written), (pruned(plan), planned)):
        assert one.columns == plan.columns
        assert [row[0] for row in rows_of(one, *LATE, without_data=False)[2]] == rows


def test_a_plan_that_takes_all_columns_is_pruned_of_nothing() -> None:
    for plan in (TIMED, joined(), Deduplication((joined(),), ("k", "ts2"))):
        assert pruned(plan) == plan


def test_the_column_that_explode_makes_is_not_needed_below() -> None:
    plan = pruned(select(Explode((EVENTS,), "v", (column("k"), constant("b"))), "v"))
    assert [node.columns for node in plan.walk()] == [("k", "ts", "v"), ("k",), ("k", "v"), ("v",), ("v",)]
    assert rows_of(plan, A_AND_NULLS) == [[("a",), ("b",), (None,), ("b",)]]


@pytest.mark.parametrize("kind", ["inner", "left", "full", "left_semi"])
def test_null_keys_join_where_a_plan_says_so(kind: Any) -> None:
    batch = [(None, S, 1)]
    found = [rows_of(with_joins(joined(kind), null_keys=equal), batch) for equal in (True, False)]
    assert [len(rows[0]) for rows in found] == [1, 0]
    assert with_joins(TIMED, null_keys=True) is TIMED


def test_a_processor_takes_all_columns_and_its_output_has_no_event_time() -> None:
    node = Processing((TIMED,), Processor(("k",), None, "n", 5_000))
    assert (node.columns, node.event_times) == (("k", "n"), ())
    assert node.needs == {"k", "ts"}
    assert rows_of(node, [("a", 20 * S, 1)], [("b", 40 * S, 1), ("a", 10 * S, 1)]) == [
        [("a", 1)],
        [("a", -1)],
        [("b", 1)],
        [("b", -1)],
    ]
    assert TIMED in [*pruned(select(node, "k")).walk()]
