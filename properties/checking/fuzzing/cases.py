"""A case: a query, its rows, and how it is run; and what the reference expects of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ....reference.spark.aggregates import Row
from ....reference.spark.execution import Batch, Execution
from ....reference.spark.plans import Node
from ...generators.plans.drawing import Query
from ...generators.plans.exactness import exact_columns
from ...generators.plans.rows import CLOCK
from ...witnesses.plans.running import HowRun

RowBag: TypeAlias = "Counter[tuple[Any, ...]]"
"""Rows in the compared columns, in no order."""
Bags: TypeAlias = "list[RowBag]"
"""The rows of each batch."""


@dataclass(frozen=True)
class PlanCase:
    """A query, its rows, and how it is run.

    Attributes:
        query: The query.
        batches: The rows of each batch.
        how: How it is run.
        nothing_late: Whether no row is late, and the last batches close everything.
    """

    query: Query
    batches: tuple[Batch, ...]
    how: HowRun = field(default_factory=HowRun)
    nothing_late: bool = False

    @property
    def histories(self) -> set[int]:
        """The histories that have rows."""
        found = {row["h"] for batch in self.batches for rows in batch.values() for row in rows}
        return found - {CLOCK}

    @property
    def columns(self) -> list[str] | None:
        """The columns that are compared; None: nothing of the result is the same in each run."""
        exact = exact_columns(self.query.plan)
        return None if exact is None else [name for name in self.query.plan.columns if name in exact]

    def bags(self, batches: Sequence[Sequence[Row]], columns: Sequence[str] | None = None) -> Bags:
        """Return rows as they are compared: in the given columns, by default in all that are compared."""
        columns = self.columns or [] if columns is None else columns
        return [Counter(tuple(row[name] for name in columns) for row in batch) for batch in batches]

    @property
    def starts(self) -> frozenset[int]:
        """The batches before which the query starts anew."""
        return frozenset({one + 1 for one in self.how.restarts} | {*self.how.deaths})

    def expected(
        self,
        plan: Node | None = None,
        watermarks_ms: Sequence[tuple[bool, int]] | None = None,
        starts: Collection[int] = (),
    ) -> Bags:
        """Return the rows of each batch by the reference.

        Args:
            plan: A plan that Spark runs in place of the query's; None: the query's, as it is written.
            watermarks_ms: The watermarks that Spark's micro-batches had; None: those that the rows move.
            starts: The batches before which the query forgets the times that its inputs have reached.
        """
        query = self.query
        execution = Execution(plan or query.plan, policy=query.policy, without_data=query.without_data, starts=starts)
        by_rows = watermarks_ms is None
        done = execution.run(self.batches) if by_rows else execution.run_at(watermarks_ms or (), self.batches)
        emitted: list[Sequence[Row]] = [[] for _ in self.batches]
        for micro in done:
            kept = [] if self.query.mode == "complete" else emitted[micro.batch]
            emitted[micro.batch] = [*kept, *micro.rows]
        if self.query.mode == "complete":  # a batch without new data leaves the table as it is
            for number, batch in enumerate(self.batches):
                emitted[number] = emitted[number] if batch or not number else emitted[number - 1]
        return self.bags(emitted)


def first_difference(
    wanted: Sequence[RowBag], found: Sequence[RowBag]
) -> tuple[int, list[tuple[Any, ...]], list[tuple[Any, ...]]] | None:
    """Return the first batch that differs, with its missing and its surplus rows; None: there is none."""
    for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
        if one != other:
            return number, [*(one - other).elements()], [*(other - one).elements()]
    return None
