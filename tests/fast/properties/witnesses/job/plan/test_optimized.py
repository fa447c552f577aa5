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


def timed(name: str, number: int, has_delay: bool) -> Expression:
    made = column(name, number)
    made.node["metadata"] = [DELAY_MS] * has_delay
    return made


USER, TIME = timed("User", 1, False), timed("time", 2, True)
CLICKS = Operator("StreamingRelation", output=[USER, TIME], streams=True)
PRUNED = Operator("StreamingRelation", output=[USER], streams=True)
PAID, IS_USER = Expression("GreaterThan", USER), Expression("IsNotNull", USER)
IS_FIELD = Expression("IsNotNull", Expression("GetStructField", USER, name="Id"))
SESSIONS = Operator("Aggregate", CLICKS, groupingExpressions=[USER, column("session_window", 3)])
WINDOWS = Operator("Aggregate", CLICKS, groupingExpressions=[USER, column("window", 3)])


def where(below: Operator, condition: Expression) -> Operator:
    return Operator("Filter", below, condition=condition)


def late(below: Operator) -> Operator:
    return Operator("EventTimeWatermark", below)


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


BOTH = Expression("And", PAID, IS_USER)
OF_CLOCK = Expression("Not", column(CLOCK, 9))
WITH_CLOCK = Operator("Union", CLICKS, PRUNED, output=[USER, TIME, column(CLOCK, 9)])


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
        (Operator("Deduplicate", CLICKS), becomes(Operator("Deduplicate", PRUNED)), (), [PRUNED_TIME]),
        (
            Operator("DeduplicateWithinWatermark", CLICKS),
            becomes(Operator("DeduplicateWithinWatermark", PRUNED)),
            (),
            [PRUNED_TIME],
        ),
        (Operator("Deduplicate", PRUNED), becomes(Operator("Distinct", PRUNED)), (), []),
        (SESSIONS, becomes(WINDOWS), (), [REDUNDANT_SESSIONS]),
        (WINDOWS, becomes(CLICKS), (), []),
        (where(late(WITH_CLOCK), OF_CLOCK), becomes("never asked"), (), []),
    ],
)
def test_a_divergence_reaches_a_plan_that_the_optimizer_changes_so(
    analyzed: Operator, optimize: Callable[[Any], Any], nullable: tuple[str, ...], expected: list[str]
) -> None:
    assert found(analyzed, optimize, nullable) == expected
