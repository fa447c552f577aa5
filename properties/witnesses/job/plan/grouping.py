"""The columns that identify a row of a job's result table, from the grouping in its analyzed plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .plans import class_of, members

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BY_FUNCTION = ("FlatMapGroups", "TransformWithState")
"""Operators whose rows a user's function returns: a key column is recognized by its name alone."""
_AGGREGATES = ("AggregateExpression", "PythonUDAF")


@dataclass(frozen=True)
class Grouping:
    """The grouping of the operator that updates the rows of a result.

    Attributes:
        by: The grouping's expressions, as the plan names them; empty for an aggregate over all rows.
        columns: The result columns that derive only from the grouping, such as the window's start, under any name. If a
            function returns the rows, the columns with a grouping column's name.
    """

    by: Sequence[str]
    columns: Sequence[str]


def grouping_of(frame: DataFrame) -> Grouping | None:
    """Return the grouping of a streaming result (None: no operator updates rows)."""
    plan = frame._jdf.queryExecution().analyzed()
    found = _grouping(plan)
    if found is None:
        return None
    by, known = found
    return Grouping(by, [column.name() for column in members(plan.output()) if column.exprId().id() in known])


def _grouping(plan: Any) -> tuple[list[str], set[int]] | None:
    """Return the grouping, and the ids of the plan's output columns that derive only from the grouping."""
    kind = class_of(plan)
    if kind == "Aggregate":
        made = {column.exprId().id() for column in members(plan.aggregateExpressions()) if not _aggregates(column)}
        return [by.sql() for by in members(plan.groupingExpressions())], made
    if kind == "Distinct":
        columns = [*members(plan.output())]
        return [column.name() for column in columns], {column.exprId().id() for column in columns}
    if kind.startswith(_BY_FUNCTION):
        names = _grouping_names(plan, kind)
        return names, {column.exprId().id() for column in members(plan.output()) if column.name() in names}
    streams = [child for child in members(plan.children()) if child.isStreaming()]
    below = [found for child in streams if (found := _grouping(child)) is not None]
    if not below:
        return None
    if len(streams) > 1:
        return below[0][0], set()
    by, known = below[0]
    if kind == "Project":
        known |= {column.exprId().id() for column in members(plan.projectList()) if _ids_used(column) <= known}
    return by, known


def _grouping_names(plan: Any, kind: str) -> list[str]:
    if kind.startswith("TransformWithStateIn"):
        columns = [*members(plan.children().apply(0).output())][: plan.groupingAttributesLen()]
    else:
        columns = [*members(plan.groupingAttributes())]
    return [column.name() for column in columns]


def _ids_used(expression: Any) -> set[int]:
    return {used.exprId().id() for used in members(expression.references().toSeq())}


def _aggregates(expression: Any) -> bool:
    return class_of(expression) in _AGGREGATES or any(map(_aggregates, members(expression.children())))
