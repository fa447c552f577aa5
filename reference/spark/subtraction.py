"""`subtract`, SQL's EXCEPT: the distinct rows of a stream that a static table doesn't contain.

Sources: `Dataset.except` ("rows in this Dataset but not in another", each once), `ReplaceExceptWithAntiJoin` and
`ReplaceDistinctWithAggregate`: a streaming query runs `subtract` as an anti join, then an aggregation by all columns.
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
        table: The table's rows, with the columns of the input.
    """

    table: tuple[Row, ...]
    is_stateful: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[str]:
        """All columns, because rows are compared in full."""
        return frozenset(self.columns)

    def start(self) -> StepFunction:
        """Return the operator with empty state: each row that the table doesn't contain is emitted once."""
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
    """Return a plan with aggregations in place of subtractions: in update mode, each batch emits its rows again."""

    def change(node: Node) -> Node:
        if not isinstance(node, Subtraction):
            return node
        return Aggregation((_Anti(node.inputs, node.table),), Groups(node.columns, None, {}, "update"))

    return rebuilt(plan, change)


@dataclass(frozen=True)
class _Anti(Node):
    """The rows of a stream that a table doesn't contain."""

    table: tuple[Row, ...]

    def start(self) -> StepFunction:
        """Return the operator."""
        known = {tuple(row[name] for name in self.columns) for row in self.table}
        return lambda rows, late_ms, eviction_ms: [
            row for row in rows[0] if tuple(row[name] for name in self.columns) not in known
        ]
