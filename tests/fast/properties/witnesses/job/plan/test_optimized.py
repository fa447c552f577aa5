"""The known divergences that reach a plan, by the plan that the optimizer makes of it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from given_plans import DELAY_MS, Expression, Members, Operator, column
from streamproof.properties.witnesses.job.plan.optimized import (
    FILTERED_WATERMARK,
    PRUNED_TIME,
    REDUNDANT_SESSIONS,
    divergences_of,
)

CLOCK = "is clock"


class Condition(Expression):
    """An expression with Spark's text, its two sides, and the field that it takes."""

    def toString(self) -> str:
        sides = [child.toString() if isinstance(child, Condition) else child.name() for child in self.below]
        return f"{self.kind}({', '.join(sides)})"

    def left(self) -> Expression:
        return self.below[0]

    def right(self) -> Expression:
        return self.below[-1]

    def child(self) -> Expression:
        return self.below[0]

    def extractFieldName(self) -> str:
        return self.name()


class Node(Operator):
    """An operator that Spark makes anew over other children."""

    def withNewChildren(self, below: Any) -> Node:
        return Node(self.kind, *below, output=self.columns, streams=self.streams, **self.given)

    def child(self) -> Operator:
        return self.below[0]


def timed(name: str, number: int, has_delay: bool) -> Expression:
    made = column(name, number)
    vars(made)["metadata"] = lambda: SimpleNamespace(contains=lambda key: has_delay and key == DELAY_MS)
    return made


USER, TIME = timed("User", 1, False), timed("time", 2, True)
CLICKS = Node("StreamingRelation", output=[USER, TIME], streams=True)
PRUNED = Node("StreamingRelation", output=[USER], streams=True)
PAID, IS_USER = Condition("GreaterThan", USER), Condition("IsNotNull", USER)
IS_FIELD = Condition("IsNotNull", Condition("GetStructField", USER, name="Id"))
SESSIONS = Node("Aggregate", CLICKS, groupingExpressions=[USER, column("session_window", 3)])
WINDOWS = Node("Aggregate", CLICKS, groupingExpressions=[USER, column("window", 3)])


def where(below: Operator, condition: Condition) -> Node:
    return Node("Filter", below, condition=condition)


def late(below: Operator) -> Node:
    return Node("EventTimeWatermark", below)


def as_it_is(plan: Any) -> Any:
    return plan


def becomes(plan: Any) -> Callable[[Any], Any]:
    """Return an optimizer that makes a whole query another, and leaves what is below a watermark."""
    whole = ("Filter", "Deduplicate", "DeduplicateWithinWatermark", "Aggregate")
    return lambda given: plan if given.kind in whole else given


def found(analyzed: Operator, optimize: Callable[[Any], Any], nullable: tuple[str, ...] = ()) -> list[str]:
    optimizer = SimpleNamespace(execute=optimize)
    session: Any = SimpleNamespace(
        _jsparkSession=SimpleNamespace(sessionState=lambda: SimpleNamespace(optimizer=lambda: optimizer)),
        _jvm=SimpleNamespace(PythonUtils=SimpleNamespace(toSeq=Members)),
    )
    return divergences_of(session, analyzed, CLOCK, nullable)


BOTH = Condition("And", PAID, IS_USER)
OF_CLOCK = Condition("Not", column(CLOCK, 9))
WITH_CLOCK = Node("Union", CLICKS, PRUNED, output=[USER, TIME, column(CLOCK, 9)])


@pytest.mark.parametrize(
    ("analyzed", "optimize", "nullable", "expected"),
    [
        (where(late(CLICKS), PAID), as_it_is, (), []),
        (where(late(CLICKS), PAID), becomes(late(where(CLICKS, PAID))), (), [FILTERED_WATERMARK]),
        (where(late(CLICKS), BOTH), becomes(late(where(CLICKS, BOTH))), (), [FILTERED_WATERMARK]),
        (where(late(CLICKS), IS_USER), becomes(late(where(CLICKS, IS_USER))), (), []),
        (where(late(CLICKS), IS_USER), becomes(late(where(CLICKS, IS_USER))), ("user",), [FILTERED_WATERMARK]),
        (where(late(CLICKS), IS_FIELD), becomes(late(where(CLICKS, IS_FIELD))), ("user",), []),
        (where(late(CLICKS), IS_FIELD), becomes(late(where(CLICKS, IS_FIELD))), ("id",), [FILTERED_WATERMARK]),
        (where(late(where(CLICKS, PAID)), PAID), becomes(late(where(CLICKS, PAID))), (), []),
        (Node("Deduplicate", CLICKS), becomes(Node("Deduplicate", PRUNED)), (), [PRUNED_TIME]),
        (
            Node("DeduplicateWithinWatermark", CLICKS),
            becomes(Node("DeduplicateWithinWatermark", PRUNED)),
            (),
            [PRUNED_TIME],
        ),
        (Node("Deduplicate", PRUNED), becomes(Node("Distinct", PRUNED)), (), []),
        (SESSIONS, becomes(WINDOWS), (), [REDUNDANT_SESSIONS]),
        (WINDOWS, becomes(CLICKS), (), []),
        (where(late(WITH_CLOCK), OF_CLOCK), becomes("never asked"), (), []),
    ],
)
def test_a_divergence_reaches_a_plan_that_the_optimizer_changes_so(
    analyzed: Operator, optimize: Callable[[Any], Any], nullable: tuple[str, ...], expected: list[str]
) -> None:
    assert found(analyzed, optimize, nullable) == expected
