"""`subtract`, SQL's EXCEPT: the different rows of a stream that aren't in a table that doesn't change.

Sources: `Dataset.except` ("rows in this Dataset but not in another", each once), `ReplaceExceptWithAntiJoin` and
`ReplaceDistinctWithAggregate`: a streaming query runs it as an aggregation by all columns, above an anti join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .aggregates import Row
from .groups import Groups
from .plans import Aggregation, Node, StepFunction, rebuilt


@dataclass(frozen=True)
class Subtraction(Node):
    """`subtract` of a table; nulls are equal.

    Attributes:
        table: The rows of the table, which has the columns of the input.
    """

    table: tuple[Row, ...]
    is_stateful: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[str]:
        """All columns: rows are alike in all of them."""
        return frozenset(self.columns)

    def start(self) -> StepFunction:
        """Return the operator before any row: each row that isn't in the table is emitted once."""
        seen = {tuple(row[name] for name in self.columns) for row in self.table}

        def batch(rows: Sequence[Sequence[Row]], late_ms: int, eviction_ms: int) -> Sequence[Row]:
            emitted = []
            for row in rows[0]:
                values = tuple(row[name] for name in self.columns)
                if values not in seen:
                    seen.add(values)
                    emitted.append(row)
            return emitted

        return batch


def as_aggregation(plan: Node) -> Node:
    """Return a plan whose subtractions are aggregations, which in update mode emit a row in each batch that has it."""

    def change(node: Node) -> Node:
        if not isinstance(node, Subtraction):
            return node
        return Aggregation((_Anti(node.inputs, node.table),), Groups(node.columns, None, {}, "update"))

    return rebuilt(plan, change)


@dataclass(frozen=True)
class _Anti(Node):
    """The rows of a stream that aren't in a table."""

    table: tuple[Row, ...]

    def start(self) -> StepFunction:
        """Return the operator."""
        known = {tuple(row[name] for name in self.columns) for row in self.table}
        return lambda rows, late_ms, eviction_ms: [
            row for row in rows[0] if tuple(row[name] for name in self.columns) not in known
        ]
