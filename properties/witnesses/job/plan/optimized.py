"""The known divergences of Spark's optimizer that affect a job's plan and change its rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .expressions import DELAY_MS
from .plans import SESSION, class_of, members, walk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILTERED_WATERMARK = "filter below the watermark"
PRUNED_TIME, REDUNDANT_SESSIONS = "event time pruned", "session windows removed"
_DEDUPLICATIONS = ("Deduplicate", "DeduplicateWithinWatermark")


class _Condition(NamedTuple):
    """The condition of a filter.

    Attributes:
        text: The condition, as Spark shows it.
        not_null: The lower-case names of the columns, if the condition only excludes nulls; otherwise None.
    """

    text: str
    not_null: frozenset[str] | None


def divergences_of(spark: SparkSession, analyzed: Any, clock: str, nullable: Collection[str]) -> list[str]:
    """Return the names of the known divergences of Spark's optimizer that affect a streaming plan.

    Args:
        spark: The session that runs the plan.
        analyzed: The analyzed plan.
        clock: The column that marks the check's own rows before a watermark; the optimizer moves no filter of the job
            past the filter on this column.
        nullable: The columns of the inputs that may be null, in lower case.
    """
    optimizer, in_production = spark._jsparkSession.sessionState().optimizer(), _without(clock, analyzed, spark)
    written, planned = ([*walk(plan)] for plan in (in_production, optimizer.execute(in_production)))
    counts = {PRUNED_TIME: _timed, REDUNDANT_SESSIONS: _of_sessions}
    found = [name for name, count in counts.items() if sum(map(count, planned)) < sum(map(count, written))]
    moved = _below_watermarks(planned) - _below_watermarks(written, optimizer.execute)
    return found + [FILTERED_WATERMARK] * any(one.not_null is None or one.not_null & {*nullable} for one in moved)


def _timed(node: Any) -> bool:
    """Return whether a node is a deduplication whose input has a watermark."""
    return class_of(node) in _DEDUPLICATIONS and any(
        column.metadata().contains(DELAY_MS) for column in members(node.child().output())
    )


def _of_sessions(node: Any) -> bool:
    """Return whether a node is an aggregate by session windows."""
    return class_of(node) == "Aggregate" and any(SESSION in one.sql() for one in members(node.groupingExpressions()))


def _without(clock: str, plan: Any, spark: SparkSession) -> Any:
    """Return a plan without the rows of a check's clock, and without the filters by their column."""
    below = [_without(clock, node, spark) for node in members(plan.children())]
    kind = class_of(plan)
    if kind == "Filter" and clock in plan.condition().toString():
        return below[0]
    if kind == "Union" and any(column.name() == clock for column in members(plan.output())):
        return below[0]
    return plan.withNewChildren(spark._jvm.PythonUtils.toSeq(below))  # type: ignore[union-attr]


def _below_watermarks(nodes: Iterable[Any], change: Callable[[Any], Any] = lambda below: below) -> set[_Condition]:
    """Return the conditions of the filters that process rows before a watermark, after a change to this part of the
    plan.
    """
    watermarks = (node for node in nodes if class_of(node) == "EventTimeWatermark")
    return {condition for node in watermarks for condition in _conditions(change(node.child()))}


def _conditions(plan: Any) -> Iterator[_Condition]:
    """Yield the conditions of a plan's filters, split at AND."""
    left = [node.condition() for node in walk(plan) if class_of(node) == "Filter"]
    while left:
        condition = left.pop()
        if class_of(condition) == "And":
            left += [condition.left(), condition.right()]
        else:
            yield _Condition(condition.toString(), _not_null(condition))


def _not_null(condition: Any) -> frozenset[str] | None:
    if class_of(condition) != "IsNotNull":
        return None
    if class_of(condition.child()) == "GetStructField":
        return frozenset({condition.child().extractFieldName().lower()})
    return frozenset(column.name().lower() for column in members(condition.references().toSeq()))
