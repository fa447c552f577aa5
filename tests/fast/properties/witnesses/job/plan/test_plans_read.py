"""The facts that a check reads off a job's analyzed plan, each by plans that have it and plans that nearly do."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest
from given_plans import Expression, Operator, alias, column, literal, project, stream, table, watermark
from streamproof.properties.witnesses.job.plan.grouping import Grouping, grouping_of
from streamproof.properties.witnesses.job.plan.plans import (
    Plan,
    WatermarkColumn,
    delays_by_input,
    operators_of,
    plan_of,
)

USER, TIME, AMOUNT = column("User", 1), column("time", 2), column("amount", 3)
CLICKS = stream(USER, TIME, AMOUNT)
NAMES = ["User", "time", "amount"]
KEY, REGION = column("key", 11), column("region", 12)
REGIONS = table(KEY, REGION)
DAY_US = 86_400_000_000


def filtered(*conditions: Expression, below: Operator = CLICKS) -> Operator:
    return Operator("Filter", below, expressions=conditions)


def call(kind: str, *below: Expression, **node: Any) -> Expression:
    return Expression(kind, *below, **node)


def joined(condition: Expression, left: Operator = CLICKS, right: Operator = REGIONS) -> Operator:
    return Operator("Join", left, right, expressions=[condition])


def with_state(kind: str, clock: str, **more: Any) -> Operator:
    text = SimpleNamespace(toString=lambda: clock)
    name = "timeMode" if kind.startswith("Transform") else "timeout"
    return Operator(kind, CLICKS, **{name: text, "hasInitialState": False, **more})


def unread(text: str) -> Expression:
    return literal(text, "string")


def offsets() -> Operator:
    names = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    return stream(*(column(name, number) for number, name in enumerate(names, 1)))


IN_MICROSECONDS = call("Add", call("PreciseTimestampConversion", TIME), literal(1_000, "long"))
NUMBER = alias(call("Rand"), "draw", 21)
NOW = alias(call("CurrentTimestamp"), "now", 22)
ID_OF_USER = call("GetStructField", USER, name="Id")
FIELD = call("GetStructField", call("AttributeReference", name="window", exprId={"id": 8}), name="Start")


@pytest.mark.parametrize(
    ("plan", "fact", "expected"),
    [
        (
            filtered(below=watermark(CLICKS, TIME, 5)),
            "operators",
            {"Filter", "EventTimeWatermark", "StreamingRelation"},
        ),
        (joined(call("EqualTo", USER, KEY)), "sources", [NAMES]),
        (joined(USER, right=stream(KEY)), "sources", [NAMES, ["key"]]),
        # durations
        (watermark(CLICKS, TIME, 5, 3), "durations_us", [3_000, 5_000]),
        (watermark(CLICKS, TIME, 5, 3), "delays_us", [3_000, 5_000]),
        (watermark(CLICKS, TIME, 0), "durations_us", []),
        (watermark(CLICKS, TIME, 0), "delays_us", [0]),
        (filtered(unread("1 minute")), "durations_us", [60_000_000]),
        (filtered(literal("2 seconds", "interval")), "durations_us", [2_000_000]),
        (filtered(unread("paid")), "durations_us", []),
        (filtered(literal(-7_000, "interval day to second")), "durations_us", [7_000]),
        (filtered(literal(7_000, "interval year to month")), "durations_us", []),
        (filtered(literal(7_000, "interval year")), "durations_us", []),
        (filtered(literal(None, "string")), "durations_us", []),
        (filtered(IN_MICROSECONDS), "durations_us", [1_000]),
        (filtered(call("MicrosToTimestamp", literal(-2_000))), "durations_us", [2_000]),
        (filtered(call("UnixMicros", literal(1_001, "long"))), "durations_us", []),
        (filtered(call("Add", AMOUNT, literal(1_000, "long"))), "durations_us", []),
        (filtered(unread("400 days"), unread("401 days")), "durations_us", [400 * DAY_US]),
        # event times
        (watermark(CLICKS, TIME, 5), "event_times", [WatermarkColumn("time", "time", NAMES, 5_000)]),
        (watermark(CLICKS, TIME, 5, 3), "event_times", [WatermarkColumn("time", "time", NAMES, None)]),
        (
            watermark(project(CLICKS, alias(TIME, "at", 9)), column("at", 9), 5),
            "event_times",
            [WatermarkColumn("at", "time", NAMES, 5_000)],
        ),
        (
            watermark(project(CLICKS, alias(call("Cast", TIME, dataType="timestamp"), "at", 9)), column("at", 9), 5),
            "event_times",
            [WatermarkColumn("at", None, (), 5_000)],
        ),
        (
            watermark(project(CLICKS, NOW), column("now", 22), 5),
            "event_times",
            [WatermarkColumn("now", None, (), 5_000, is_of_clock=True)],
        ),
        # functions, sessions, state
        (with_state("FlatMapGroupsInPandasWithState", "NoTimeout"), "has_function", True),
        (with_state("TransformWithStateInPySpark", "None"), "has_function", True),
        (with_state("TransformWithState", "None"), "has_function", False),
        (filtered(below=with_state("TransformWithStateInPySpark", "None")), "ends_in_function", True),
        (
            Operator("Aggregate", with_state("TransformWithStateInPySpark", "None")),
            "ends_in_function",
            False,
        ),
        (with_state("TransformWithStateInPySpark", "ProcessingTime"), "by_processing_time", True),
        (with_state("TransformWithStateInPySpark", "EventTime"), "by_processing_time", False),
        (with_state("TransformWithStateInPySpark", "EventTime$"), "by_event_time", True),
        (with_state("FlatMapGroupsInPandasWithState", "EventTimeTimeout"), "by_event_time", True),
        (with_state("FlatMapGroupsInPandasWithState", "NoTimeout"), "by_event_time", False),
        (with_state("TransformWithStateInPySpark", "None"), "initial_keys", []),
        (
            with_state(
                "TransformWithStateInPySpark",
                "None",
                hasInitialState=True,
                initGroupingAttrsLen=2,
                initialState=table(column("user", 31), column("other", 32), column("amount", 33)),
            ),
            "initial_keys",
            [{31}],
        ),
        # look-ups
        (joined(call("EqualTo", USER, KEY)), "looked_up", {("user", 11)}),
        (joined(call("EqualNullSafe", KEY, USER)), "looked_up", {("user", 11)}),
        (joined(call("LessThan", USER, KEY)), "looked_up", set()),
        (joined(call("EqualTo", USER, KEY), right=stream(KEY)), "looked_up", set()),
        (joined(call("EqualTo", USER, TIME)), "looked_up", set()),
        (joined(call("EqualTo", USER, call("Upper", KEY))), "looked_up", {("user", None)}),
        (joined(call("EqualTo", call("Upper", USER), KEY)), "looked_up", {("user", None)}),
        (
            joined(call("EqualTo", call("GetStructField", USER, name="Id"), KEY)),
            "looked_up",
            {("user", 11), ("id", 11)},
        ),
        (
            joined(call("EqualTo", column("own", 41), KEY), left=project(CLICKS, alias(USER, "own", 41))),
            "looked_up",
            {("user", 11)},
        ),
        (
            joined(
                call("EqualTo", USER, column("code", 42)),
                right=project(REGIONS, alias(call("Upper", KEY), "code", 42)),
            ),
            "looked_up",
            {("user", 42)},
        ),
        (
            Operator(
                "Filter",
                CLICKS,
                expressions=[call("InSubquery", USER, call("ListQuery"))],
                subqueries=[REGIONS],
            ),
            "looked_up",
            {("user", None)},
        ),
        # computations
        (filtered(call("Upper", USER)), "computed", {"user"}),
        (filtered(call("EqualTo", USER, literal("a", "string"))), "computed", {"user"}),
        (filtered(call("EqualTo", USER, TIME)), "computed", set()),
        (filtered(call("EqualNullSafe", USER, FIELD)), "computed", set()),
        (filtered(call("LessThan", USER, TIME)), "computed", {"user", "time"}),
        (filtered(call("Max", AMOUNT), call("IsNotNull", USER)), "computed", set()),
        (filtered(call("Upper", FIELD)), "computed", {"start"}),
        (filtered(call("PythonUDF", USER)), "computed", set()),
        (filtered(call("PythonUDF", USER, FIELD)), "in_functions", {"user", "start"}),
        (filtered(call("Upper", USER)), "in_functions", set()),
        (
            filtered(call("Upper", column("own", 41)), below=project(CLICKS, alias(USER, "own", 41))),
            "computed",
            {"user"},
        ),
        (filtered(call("LessThan", KEY, literal(5))), "thresholds", {("key", "5")}),
        (filtered(call("GreaterThanOrEqual", literal(5, "decimal(3,1)"), KEY)), "thresholds", {("key", "5")}),
        (filtered(call("GreaterThan", call("Cast", KEY, dataType="long"), literal(5))), "thresholds", {("key", "5")}),
        (filtered(call("EqualTo", KEY, literal(5))), "thresholds", set()),
        (filtered(call("LessThan", KEY, literal("5", "string"))), "thresholds", set()),
        (filtered(call("LessThan", KEY, literal(None))), "thresholds", set()),
        (filtered(call("LessThan", KEY, call("Literal", value="5", dataType={"type": "array"}))), "thresholds", set()),
        (filtered(call("LessThan", KEY, REGION)), "thresholds", set()),
        (filtered(call("LessThan", AMOUNT, literal(5))), "thresholds", set()),
        (filtered(call("CovSample", AMOUNT, TIME), call("Sum", AMOUNT)), "inexact", {"CovSample"}),
        # columns of the result
        (project(CLICKS, NUMBER, USER), "nondeterministic", {"draw"}),
        (project(CLICKS, alias(call("Add", call("Rand"), literal(1)), "more", 26)), "nondeterministic", {"more"}),
        (project(project(CLICKS, NUMBER), alias(column("draw", 21), "twice", 23)), "nondeterministic", {"twice"}),
        (project(CLICKS, alias(column("_metadata", 50), "file", 24)), "nondeterministic", {"file"}),
        (project(CLICKS, alias(call("PythonUDF", udfDeterministic=False), "f", 25)), "nondeterministic", {"f"}),
        (project(CLICKS, alias(call("PythonUDF", udfDeterministic=True), "f", 25)), "nondeterministic", set()),
        (project(CLICKS, NOW), "nondeterministic", set()),
        (project(CLICKS, NOW, NUMBER), "of_clock", {"now"}),
        (offsets(), "of_places", {"partition", "offset"}),
        (stream(column("offset", 1), column("value", 2)), "of_places", set()),
        (project(CLICKS, alias(USER, "own", 41), TIME), "renamed", {"own": "User"}),
        (project(CLICKS, alias(call("Upper", USER), "own", 41)), "renamed", {}),
    ],
)
def test_a_fact_of_a_plan(plan: Operator, fact: str, expected: Any) -> None:
    assert getattr(plan_of(plan), fact) == expected
    assert operators_of(plan) == plan_of(plan).operators


ORDERS = ("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual")
PASSING_ON = (
    "Alias",
    "IsNotNull",
    "IsNull",
    "SortOrder",
    "AggregateExpression",
    "Count",
    "First",
    "Last",
    "Max",
    "Min",
)
INEXACT = ("StddevSamp", "VariancePop", "Skewness", "Kurtosis", "Corr", "CovPopulation", "RegrSlope", "RegrSXY")


@pytest.mark.parametrize("kind", ORDERS)
def test_each_order_has_a_threshold(kind: str) -> None:
    assert plan_of(filtered(call(kind, KEY, literal(5)))).thresholds == {("key", "5")}


@pytest.mark.parametrize("kind", PASSING_ON)
def test_an_expression_that_passes_a_column_on_computes_nothing(kind: str) -> None:
    below = call("Upper", call(kind, USER, name="own", exprId={"id": 9}))
    assert plan_of(filtered(below)).computed == frozenset()


@pytest.mark.parametrize("kind", INEXACT)
def test_an_aggregate_by_order_is_inexact(kind: str) -> None:
    assert plan_of(filtered(call(kind, AMOUNT))).inexact == {kind}


def test_a_plan_that_is_not_known_says_nothing() -> None:
    plan = Plan()
    assert not any(getattr(plan, field.name) for field in fields(plan))


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([WatermarkColumn("time", "time", ["user", "time"], 5)], {"clicks": 5}),
        ([WatermarkColumn("time", "time", ["user", "time"], None)], None),
        ([WatermarkColumn("time", "time", ["time"], 5)], None),
        ([WatermarkColumn("time", "time", ["user", "time"], delay_us) for delay_us in (5, 6)], None),
        ([WatermarkColumn("time", "time", ["user", "time"], 5)] * 2, {"clicks": 5}),
    ],
    ids=["one", "several below", "another input's", "two delays", "one twice"],
)
def test_the_delay_of_an_input_is_that_of_its_watermark(times: list[WatermarkColumn], expected: object) -> None:
    source: Any = SimpleNamespace(name="clicks", wire_schema=SimpleNamespace(names=["user", "time"]))
    assert delays_by_input(Plan(event_times=times), [source]) == expected


GROUPED = Operator(
    "Aggregate",
    CLICKS,
    output=[USER, column("total", 61), column("count", 62)],
    groupingExpressions=[USER],
    aggregateExpressions=[
        USER,
        alias(call("Add", call("AggregateExpression", AMOUNT), literal(1)), "total", 61),
        alias(call("PythonUDAF", AMOUNT), "count", 62),
    ],
)
BY_FUNCTION = Operator("FlatMapGroupsInPandasWithState", CLICKS, groupingAttributes=[USER])
BY_PROCESSOR = Operator("TransformWithStateInPySpark", CLICKS, groupingAttributesLen=1)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (CLICKS, None),
        (filtered(), None),
        (GROUPED, Grouping(["User"], ["User"])),
        (Operator("Distinct", CLICKS), Grouping(NAMES, NAMES)),
        (BY_FUNCTION, Grouping(["User"], ["User"])),
        (BY_PROCESSOR, Grouping(["User"], ["User"])),
        (
            project(GROUPED, alias(call("Upper", USER), "own", 71), alias(column("total", 61), "sum", 72)),
            Grouping(["User"], ["own"]),
        ),
        (project(GROUPED, alias(call("Concat", USER, column("total", 61)), "both", 71)), Grouping(["User"], [])),
        (Operator("Filter", GROUPED), Grouping(["User"], ["User"])),
        (Operator("Join", GROUPED, REGIONS), Grouping(["User"], ["User"])),
        (Operator("Join", REGIONS, GROUPED, output=[KEY, USER]), Grouping(["User"], ["User"])),
        (Operator("Union", GROUPED, Operator("Distinct", CLICKS)), Grouping(["User"], [])),
        (Operator("Join", table(USER), CLICKS), None),
    ],
)
def test_the_grouping_of_a_result_is_that_of_the_operator_that_updates_it(
    plan: Operator, expected: Grouping | None
) -> None:
    execution = SimpleNamespace(analyzed=lambda: plan)
    frame: Any = SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: execution))
    assert grouping_of(frame) == expected
