"""How a job uses the tables that don't change: by a key that histories have too, in a join or as an initial state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .plans import Plan, members

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class TablesUsed:
    """How a job uses the tables that don't change.

    Attributes:
        by_key: By table the columns by which it is an initial state, or is joined.
        initial: The tables that are an initial state; None among them: an initial state that is none of the tables.
    """

    by_key: Mapping[str, frozenset[str]] = field(default_factory=dict)
    initial: frozenset[str | None] = frozenset()


def tables_used(plan: Plan, tables: Mapping[str, DataFrame]) -> TablesUsed:
    """Return how a job with this plan uses the tables that it was given."""
    if not (plan.initial_keys or (plan.equated and tables)):
        return TablesUsed()
    ids = {name: _column_ids(frame) for name, frame in tables.items()}
    keys = plan.equated.union(*plan.initial_keys)
    by_key = {name: frozenset(column for id, column in of.items() if id in keys) for name, of in ids.items()}
    initial: set[str | None] = set()
    for key in plan.initial_keys:
        initial |= {name for name, of in ids.items() if key & of.keys()} or {None}
    return TablesUsed(by_key, frozenset(initial))


def _column_ids(frame: DataFrame) -> dict[int, str]:
    columns = members(frame._jdf.queryExecution().analyzed().output())
    return {column.exprId().id(): str(column.name()) for column in columns}
