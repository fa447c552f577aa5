"""The known divergences of Spark's optimizer that reach a job's plan, and so change its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .plans import DELAY_MS, SESSION, class_of, members, walk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PRUNED_TIME, REDUNDANT_SESSIONS = "event time pruned", "session windows removed"
_DEDUPLICATIONS = ("Deduplicate", "DeduplicateWithinWatermark")


def divergences_of(frame: DataFrame) -> list[str]:
    """Return the names of the known divergences that reach a streaming result's plan, by what the optimizer leaves."""
    execution = frame._jdf.queryExecution()
    analyzed = execution.analyzed()
    optimizer = frame.sparkSession._jsparkSession.sessionState().optimizer()
    written, planned = ([*walk(plan)] for plan in (analyzed, optimizer.execute(analyzed)))
    counts = {PRUNED_TIME: _timed, REDUNDANT_SESSIONS: _of_sessions}
    return [name for name, count in counts.items() if sum(map(count, planned)) < sum(map(count, written))]


def _timed(node: Any) -> bool:
    """Whether a node is a deduplication whose input has an event time with a watermark."""
    return class_of(node) in _DEDUPLICATIONS and any(
        column.metadata().contains(DELAY_MS) for column in members(node.child().output())
    )


def _of_sessions(node: Any) -> bool:
    """Whether a node is an aggregate by session windows."""
    return class_of(node) == "Aggregate" and any(SESSION in one.sql() for one in members(node.groupingExpressions()))
