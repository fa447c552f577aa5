"""How a plan's comparisons are followed back to the columns of its inputs, and how a job uses its tables."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from given_plans import Expression, Operator, alias, column, literal, project, stream, table
from streamproof.properties.generators.columns.terms import COLUMN, CONSTANT, Term
from streamproof.properties.witnesses.job.plan.expressions import MAX_DEPTH, MAX_TERMS, TermReader, trees_of
from streamproof.properties.witnesses.job.plan.plans import Plan, plan_of
from streamproof.properties.witnesses.job.plan.tables import TablesUsed, tables_used

USER, AMOUNT = column("user", 1), column("amount", 2)
CLICKS, VIEWS = stream(USER, AMOUNT), stream(column("viewer", 5), column("seconds", 6))
FIVE = literal(5)


def of(name: str, *beside: str) -> Term:
    return Term(COLUMN, (), (beside or ("user", "amount"), name))


def less(left: Expression, right: Expression = FIVE) -> Expression:
    return Expression("LessThan", left, right)


def read(expression: Expression, made: tuple[Expression, ...] = (), zone: str = "UTC") -> Term | None:
    given = {1: (("user", "amount"), "user"), 2: (("user", "amount"), "amount")}
    trees = {one.node["exprId"]["id"]: trees_of(_nodes(one))[-1] for one in made}
    return TermReader(given, trees, {}, 0, zone).read(trees_of(_nodes(expression))[-1])


def _nodes(expression: Expression) -> list[dict[str, Any]]:
    return [{**node, "class": node["class"].rpartition(".")[2]} for node in expression.nodes()]


def nested(depth: int) -> Expression:
    return Expression("Upper", nested(depth - 1)) if depth else USER


NTZ = datetime(1970, 1, 1, 0, 0, 1)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, "integer", None),
        ("7", "byte", 7),
        ("7", "short", 7),
        ("7", "integer", 7),
        ("7", "long", 7),
        ("7.5", "float", 7.5),
        ("7.5", "double", 7.5),
        ("7.50", "decimal(5,2)", Decimal("7.50")),
        ("7", "string", "7"),
        ("7", "varchar(3)", "7"),
        ("7", "char(3)", "7"),
        ("true", "boolean", True),
        ("false", "boolean", False),
        ("2024-02-29", "date", date(2024, 2, 29)),
        ("2024-01-01 02:00:00", "timestamp", datetime(2024, 1, 1, 1, tzinfo=UTC)),
        ("1000000", "timestamp_ntz", NTZ),
    ],
)
def test_a_literal_is_the_value_of_its_type(value: str | None, kind: str, expected: object) -> None:
    term = read(literal(value, kind), zone="Europe/Berlin")
    assert term == Term(CONSTANT, (), expected)
    assert type(term.value) is type(expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (USER, of("user")),
        (column("other", 9), Term("Made")),
        (Expression("Upper", USER, dataType="string"), Term("Upper", (of("user"),), "string")),
        (Expression("GetStructField", USER, name="Id"), Term("Field", (of("user"),), "Id")),
        (Expression("GetStructField", USER, name=["Id"]), Term("Field", (of("user"),))),
        (Expression("Left", USER, literal(2)), ("Substring", 1, 2)),
        (Expression("Right", USER, literal(2)), ("Substring", -2, 2)),
        (Expression("GetStructField", USER, name="id"), Term("Field", (of("user"),), "id")),
        (Expression("GetStructField", USER), Term("Field", (of("user"),))),
        (Expression("Cast", USER, dataType={"type": "struct"}), Term("CastOfNested", (of("user"),))),
        (
            Expression("Cast", USER, dataType="date", timeZoneId="UTC"),
            Term("Cast", (of("user"),), "date", "UTC"),
        ),
        (Expression("Cast", USER, dataType="date", timeZoneId=["UTC"]), Term("Cast", (of("user"),), "date")),
        (Expression("With", Expression("CommonExpressionRef"), AMOUNT), of("amount")),
        (literal("x", "binary"), None),
        (literal("x"), None),
        (Expression("Literal", value="x", dataType={"type": "array"}), None),
        (nested(MAX_DEPTH), "a term"),
        (nested(MAX_DEPTH + 1), None),
        (Expression("Concat", *[USER] * (MAX_TERMS - 1)), "a term"),
        (Expression("Concat", *[USER] * MAX_TERMS), None),
    ],
)
def test_an_expression_is_read_as_a_term_of_the_inputs_columns(expression: Expression, expected: Any) -> None:
    term = read(expression)
    if expected == "a term":
        assert term is not None
    elif isinstance(expected, tuple) and not isinstance(expected, Term):
        kind, first, length = expected
        assert term == Term(kind, (of("user"), Term(CONSTANT, (), first), Term(CONSTANT, (), length)))
    else:
        assert term == expected


def test_a_field_of_a_star_has_the_name_of_its_alias() -> None:
    made = alias(Expression("GetStructField", USER), "id", 7)
    assert read(column("id", 7), (made,)) == Term("Field", (of("user"),), "id")
    assert read(column("n", 8), (alias(AMOUNT, "n", 8),)) == of("amount")


def constant(value: object) -> Term:
    return Term(CONSTANT, (), value)


def compared(below: Operator, *conditions: Expression) -> Operator:
    return Operator("Filter", below, expressions=conditions)


UNION = Operator("Union", CLICKS, VIEWS)
BOTH = (of("amount"), constant(5))


def shown(terms: Any) -> list[tuple[str, Any]]:
    return [(term.kind, term.children) for term in terms]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (compared(CLICKS, less(AMOUNT)), [("LessThan", BOTH)]),
        (compared(CLICKS, Expression("Least", AMOUNT, FIVE)), [("LessThan", BOTH)]),
        (compared(CLICKS, Expression("Greatest", AMOUNT, FIVE)), [("GreaterThan", BOTH)]),
        (compared(CLICKS, less(AMOUNT, USER)), []),
        (compared(CLICKS, Expression("Upper", AMOUNT)), []),
        (
            compared(CLICKS, Expression("And", less(AMOUNT), Expression("GreaterThan", AMOUNT, FIVE))),
            [("LessThan", BOTH), ("GreaterThan", BOTH)],
        ),
        (compared(project(CLICKS, alias(AMOUNT, "own", 7)), less(column("own", 7))), [("LessThan", BOTH)]),
        (
            compared(UNION, less(AMOUNT)),
            [("LessThan", BOTH), ("LessThan", (of("seconds", "viewer", "seconds"), constant(5)))],
        ),
        (
            compared(CLICKS, Expression("With", less(Expression("CommonExpressionRef")), AMOUNT)),
            [("LessThan", BOTH)],
        ),
    ],
    ids=["less", "least", "greatest", "two columns", "none", "and", "alias", "union", "with"],
)
def test_comparisons_with_constants_are_followed_to_the_inputs(plan: Operator, expected: Any) -> None:
    assert shown(plan_of(plan).comparisons) == expected


NAMES, STATE = table(column("Key", 11), column("name", 12)), table(column("User", 21), column("n", 22))


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Plan(), TablesUsed()),
        (
            Plan(looked_up=frozenset({("user", 11)})),
            TablesUsed({"names": {"Key": "user"}, "state": {}}),
        ),
        (
            Plan(looked_up=frozenset({("user", 99), ("zone", None), ("at", 22)})),
            TablesUsed({"names": {}, "state": {"n": "at"}}, elsewhere=frozenset({"user", "zone"})),
        ),
        (
            Plan(initial_keys=[frozenset({21})]),
            TablesUsed({"names": {}, "state": {"User": "user"}}, frozenset({"state"})),
        ),
        (
            Plan(initial_keys=[frozenset({21}), frozenset({99})]),
            TablesUsed({"names": {}, "state": {"User": "user"}}, frozenset({"state", None})),
        ),
    ],
    ids=["unused", "a lookup", "elsewhere", "a state", "a state of no table"],
)
def test_a_job_uses_tables_by_the_columns_that_its_plan_names(plan: Plan, expected: TablesUsed) -> None:
    def frame(of: Operator) -> Any:
        return SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: SimpleNamespace(analyzed=lambda: of)))

    assert tables_used(plan, {"names": frame(NAMES), "state": frame(STATE)}) == expected
