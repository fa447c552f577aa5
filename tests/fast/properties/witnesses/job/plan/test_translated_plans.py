"""The parts of an analyzed plan that the reference's plan keeps: times, bounds of joins, windows and passed columns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from given_plans import Expression, Operator, alias, column, literal
from streamproof.properties.witnesses.job.plan.expressions import Tree, trees_of
from streamproof.properties.witnesses.job.plan.skeletons import (
    PlanOperator,
    _freed,
    _linear,
    _NoModel,
    _time_of_window,
    _Translation,
    _window_of,
)
from streamproof.reference.spark.aggregates import AggregateFunction
from streamproof.reference.spark.expressions import Expression as Made
from streamproof.reference.spark.expressions import column as made_column
from streamproof.reference.spark.groups import Groups
from streamproof.reference.spark.plans import Aggregation, Join, Project, Scan, Union, WithWatermark
from streamproof.reference.spark.stream_join import StreamJoin

AT, USER, PAID, WHO = column("at", 1), column("user", 2), column("paid", 3), column("who", 4)
VIEWS, PAYMENTS = Scan("0", ("at#1", "user#2")), Scan("1", ("paid#3", "who#4"))
TIMED, LATER = WithWatermark((VIEWS,), "at#1", 0), WithWatermark((PAYMENTS,), "paid#3", 0)
HOUR_US = 3_600_000_000


def tree_of(expression: Expression) -> Tree:
    return trees_of(nodes(expression))[-1]


def nodes(expression: Expression) -> list[dict[str, Any]]:
    return [{**node, "class": node["class"].rpartition(".")[2]} for node in expression.nodes()]


def hours(number: int) -> Expression:
    return literal(number * HOUR_US, "interval day to second")


def call(kind: str, *below: Expression, **node: Any) -> Expression:
    return Expression(kind, *below, **node)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (AT, ("at#1", 0)),
        (call("Cast", AT), ("at#1", 0)),
        (hours(2), (None, 2 * HOUR_US)),
        (call("UnaryMinus", hours(2)), (None, -2 * HOUR_US)),
        (call("UnaryMinus", AT), None),
        (call("UnaryMinus", USER, hours(1)), None),
        (call("Add", AT, hours(1)), ("at#1", HOUR_US)),
        (call("Add", hours(1), AT), ("at#1", HOUR_US)),
        (call("Subtract", AT, hours(1)), ("at#1", -HOUR_US)),
        (call("TimeAdd", call("Add", AT, hours(2)), call("UnaryMinus", hours(1))), ("at#1", HOUR_US)),
        (call("Subtract", hours(1), AT), None),
        (call("Add", AT, PAID), None),
        (call("Add", AT, call("Upper", USER)), None),
        (call("Add", AT), None),
        (call("Multiply", AT, hours(1)), None),
        (call("Cast", AT, hours(1)), None),
        (literal(5), None),
        (literal(None, "interval day to second"), None),
        (literal(3, "interval year to month"), None),
        (literal("2 hours", "interval"), (None, 2 * HOUR_US)),
        (literal("soon", "interval"), None),
    ],
    ids=lambda given: given.toString() if isinstance(given, Expression) else "",
)
def test_a_time_is_a_column_with_an_offset(expression: Expression, expected: Any) -> None:
    found = _linear(tree_of(expression))
    shown = found and (found[0] and f"{found[0].node['name']}#{found[0].node['exprId']['id']}", found[1])
    assert shown == expected


@pytest.mark.parametrize(
    ("kind", "one", "other", "expected"),
    [
        ("EqualTo", USER, WHO, (("user#2", "who#4"), 0, 0)),
        ("EqualNullSafe", WHO, USER, (("user#2", "who#4"), 0, 0)),
        ("LessThanOrEqual", AT, PAID, (("at#1", "paid#3"), 0, 1)),
        ("LessThan", AT, PAID, (("at#1", "paid#3"), -1, 1)),
        ("GreaterThanOrEqual", AT, PAID, (("at#1", "paid#3"), 0, -1)),
        ("GreaterThan", AT, PAID, (("at#1", "paid#3"), -1, -1)),
        ("GreaterThanOrEqual", PAID, call("Subtract", AT, hours(1)), (("at#1", "paid#3"), HOUR_US, 1)),
        ("LessThan", PAID, call("Add", AT, hours(2)), (("at#1", "paid#3"), 2 * HOUR_US - 1, -1)),
        ("Contains", USER, WHO, None),
        ("Or", USER, WHO, None),
        ("EqualTo", USER, call("Upper", WHO), None),
        ("EqualTo", USER, AT, None),
        ("EqualTo", PAID, WHO, None),
        ("EqualTo", USER, column("gone", 9), None),
        ("EqualTo", column("gone", 9), WHO, None),
    ],
)
def test_a_comparison_is_of_one_column_of_each_side_of_a_join(
    kind: str, one: Expression, other: Expression, expected: Any
) -> None:
    assert _Translation("clock", "append")._pair(tree_of(call(kind, one, other)), VIEWS, PAYMENTS) == expected


def test_a_comparison_has_two_operands() -> None:
    assert _Translation("clock", "append")._pair(tree_of(call("EqualTo", USER)), VIEWS, PAYMENTS) is None


def test_freed_columns_reach_the_top_beside_the_others() -> None:
    kept = Project((TIMED,), (("user#2", made_column("user#2")),))
    by = StreamJoin("inner", (("user#2",), ("who#4",)), ("at#1", "paid#3"), 0, 0)
    for plan in (VIEWS, TIMED, kept, Union((VIEWS, VIEWS)), Join((TIMED, LATER), by)):
        freed = _freed(_freed(plan, "x#8"), "y#9")
        assert {*freed.columns} == {*plan.columns, "x#8", "y#9"}
        assert _freed(freed, "x#8") is freed
    with pytest.raises(_NoModel):
        _freed(Aggregation((VIEWS,), Groups(("user#2",), None, {"n#7": AggregateFunction("count", None)})), "x#8")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (literal(5), Made("constant", value="5")),
        (USER, made_column("user#2")),
        (call("Upper", USER), Made("as timestamp", (made_column("user#2"),))),
        (call("Rand"), Made("constant", value=1)),
    ],
)
def test_above_an_aggregation_a_computed_column_is_of_its_first_column_or_constant(
    value: Expression, expected: Made
) -> None:
    below = Aggregation((VIEWS,), Groups(("user#2",), None, {"n#7": AggregateFunction("count", None)}))
    assert _Translation("clock", "append")._computed(below, "made#8", tree_of(value)) == (below, expected)


NULL = frozenset({"who#4"})


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (WHO, {"null"}),
        (USER, {"true", "false", "null"}),
        (alias(WHO, "who", 9), {"null"}),
        (literal(None, "boolean"), {"null"}),
        (literal("true", "boolean"), {"true"}),
        (literal("false", "boolean"), {"false"}),
        (call("IsNull", WHO), {"true"}),
        (call("IsNull", USER), {"true", "false"}),
        (call("IsNotNull", WHO), {"false"}),
        (call("IsNotNull", USER), {"true", "false"}),
        (call("Not", call("IsNull", WHO)), {"false"}),
        (call("Not", WHO), {"null"}),
        (call("And", WHO, call("IsNull", WHO)), {"null"}),
        (call("And", WHO, call("IsNotNull", WHO)), {"false"}),
        (call("And", call("IsNull", WHO), call("IsNull", WHO)), {"true"}),
        (call("Or", WHO, call("IsNull", WHO)), {"true"}),
        (call("Or", WHO, call("IsNotNull", WHO)), {"null"}),
        (call("Or", call("IsNotNull", WHO), call("IsNotNull", WHO)), {"false"}),
        (call("EqualTo", WHO, USER), {"null"}),
        (call("EqualTo", USER, WHO), {"null"}),
        (call("EqualTo", USER, AT), {"true", "false", "null"}),
        (call("In", WHO, USER), {"null"}),
        (call("In", USER, WHO), {"true", "false", "null"}),
        (call("Between", call("EqualTo", WHO, USER)), {"null"}),
        (call("Coalesce", WHO, USER), {"true", "false", "null"}),
        (call("Length"), {"true", "false", "null"}),
    ],
    ids=lambda given: given.toString() if isinstance(given, Expression) else "",
)
def test_the_values_of_a_condition_follow_from_the_columns_that_are_null(
    condition: Expression, expected: set[str]
) -> None:
    assert _Translation("clock", "append")._possible(tree_of(condition), NULL) == expected


def struct(start: Expression, end: Expression, *more: Expression) -> Expression:
    return call("CreateNamedStruct", literal("start", "string"), start, literal("end", "string"), end, *more)


CONVERTED = call("PreciseTimestampConversion", AT)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (struct(CONVERTED, call("TimeAdd", CONVERTED, hours(1))), (HOUR_US, None, 0)),
        (struct(CONVERTED, call("TimeAdd", CONVERTED, literal("1 hour", "string"))), (HOUR_US, None, 0)),
        (struct(CONVERTED, call("TimeAdd", CONVERTED, hours(0))), None),
        (struct(CONVERTED, call("TimeAdd", CONVERTED, hours(1), hours(2))), None),
        (struct(CONVERTED, CONVERTED), None),
        (struct(AT, call("TimeAdd", AT, hours(1))), None),
        (struct(call("PreciseTimestampConversion", literal(1)), hours(1)), None),
        (struct(CONVERTED, call("TimeAdd", CONVERTED, hours(1)), literal(1)), None),
        (call("CreateArray", *[CONVERTED, CONVERTED, CONVERTED, hours(1)]), None),
        (
            struct(
                call("Subtract", CONVERTED, call("Remainder", CONVERTED, literal(500, "long"))),
                call("PreciseTimestampConversion", call("Add", CONVERTED, literal(1_000, "long"))),
            ),
            (1_000, 500, 0),
        ),
    ],
)
def test_windows_are_read_off_the_struct_of_start_and_end(value: Expression, expected: Any) -> None:
    found = _window_of(tree_of(value))
    assert (found and tuple(found[0])) == expected
    assert found is None or found[1].node["name"] == "at"


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([call("EqualTo", USER, WHO)], ((("user#2",), ("who#4",)), ("at#1", "paid#3"), None, None)),
        ([call("EqualTo", AT, PAID)], ((("at#1",), ("paid#3",)), ("at#1", "paid#3"), 0, 0)),
        ([call("EqualTo", AT, WHO)], None),
        ([call("EqualTo", USER, PAID)], None),
        ([call("EqualTo", USER, call("Add", WHO, hours(1)))], None),
        ([call("Contains", AT, WHO)], None),
        ([call("Contains", USER, PAID)], None),
        ([call("Contains", USER, WHO)], ((), ("at#1", "paid#3"), None, None)),
        (
            [
                call(
                    "And",
                    call("GreaterThanOrEqual", PAID, AT),
                    call("LessThanOrEqual", PAID, call("Add", AT, hours(1))),
                )
            ],
            ((), ("at#1", "paid#3"), 0, HOUR_US),
        ),
        (
            [call("LessThanOrEqual", PAID, call("Add", AT, hours(number))) for number in (2, 1, 3)],
            ((), ("at#1", "paid#3"), None, HOUR_US),
        ),
        (
            [call("GreaterThanOrEqual", PAID, call("Subtract", AT, hours(number))) for number in (2, 1, 3)],
            ((), ("at#1", "paid#3"), HOUR_US, None),
        ),
        ([call("LessThan", USER, WHO)], ((), ("at#1", "paid#3"), None, None)),
        ([call("LessThan", AT, WHO)], ((), ("at#1", "who#4"), -1, None)),
        ([call("LessThan", USER, PAID)], ((), ("user#2", "paid#3"), -1, None)),
        ([call("LessThan", USER, WHO), call("LessThan", AT, PAID)], None),
    ],
)
def test_a_join_keeps_its_keys_and_the_narrowest_bounds_of_its_times(conditions: Any, expected: Any) -> None:
    translation = _Translation("clock", "append")
    sides: Any = SimpleNamespace(below={"left": TIMED, "right": LATER})
    translation.of = lambda operator: sides.below[operator]  # type: ignore[method-assign, assignment, index]
    node = SimpleNamespace(joinType=lambda: SimpleNamespace(toString=lambda: "Inner"))
    operator: Any = PlanOperator("Join", node, [*map(nodes, conditions)], ["left", "right"])  # type: ignore[list-item]
    if expected is None:
        with pytest.raises(_NoModel):
            translation._join(operator)
        return
    by = translation._join(operator).by  # type: ignore[attr-defined]
    keys, times, before, after = expected
    assert (by.keys, by.times, by.before_us, by.after_us) == (keys or ((), ()), times, before, after)


@pytest.mark.parametrize(
    ("kind", "condition", "expected"),
    [
        ("Inner", call("EqualTo", USER, WHO), (True, ("user#2",))),
        ("Inner", call("EqualTo", column("x", 7), WHO), (False, ())),
        ("LeftOuter", call("EqualTo", USER, WHO), (False, ("user#2",))),
        ("Inner", call("And", call("EqualTo", USER, WHO), call("EqualTo", WHO, USER)), (True, ("user#2",))),
    ],
)
def test_a_join_with_a_table_adds_its_columns_and_may_drop_rows(kind: str, condition: Any, expected: Any) -> None:
    translation = _Translation("clock", "append")
    translation.of = lambda operator: TIMED  # type: ignore[method-assign]
    stream: Any = PlanOperator("Stream", Operator("Stream", output=[AT, USER]), [])
    given = Operator("Join", output=[AT, USER, PAID, WHO], joinType=SimpleNamespace(toString=lambda: kind))
    found = translation._lookup(PlanOperator("Join", given, [nodes(condition)]), stream)
    assert found.columns == ("at#1", "user#2", "paid#3", "who#4")
    assert translation.lookups == [expected]


def test_a_generated_column_is_an_input_column_too() -> None:
    translation = _Translation("clock", "append")
    source = PlanOperator("StreamingRelation", Operator("StreamingRelation", output=[AT, USER], streams=True), [])
    generate = PlanOperator("Generate", Operator("Generate", output=[AT, USER, WHO, PAID], streams=True), [], [source])
    assert translation.of(generate) == Scan("0", ("at#1", "user#2", "who#4", "paid#3"))


@pytest.mark.parametrize(
    ("kinds", "is_time"),
    [
        (["PreciseTimestampConversion", "Subtract", "PreciseTimestampConversion", "GetStructField"], True),
        (["PreciseTimestampConversion", "Add", "PreciseTimestampConversion", "GetStructField"], False),
        (["Subtract", "PreciseTimestampConversion", "GetStructField"], False),
        ([], False),
    ],
)
def test_the_time_of_a_window_is_of_the_window_s_column(kinds: list[str], is_time: bool) -> None:
    def nested(of: Expression) -> Tree:
        for kind in reversed(kinds):
            of = call(kind, of)
        return tree_of(of)

    found = _time_of_window(nested(AT))
    assert (found is not None and found.node["name"] == "at") == is_time
    assert _time_of_window(nested(literal(1))) is None
