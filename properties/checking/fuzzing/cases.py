"""A case of the fuzzer: a query with its input rows, its run options, and the reference's expected rows."""

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
"""A batch's rows in the compared columns, without order."""
Bags: TypeAlias = "list[RowBag]"
"""A bag of rows for each batch."""


@dataclass(frozen=True)
class PlanCase:
    """A query with its input rows and its run options.

    Attributes:
        query: The query.
        batches: The input rows of each batch.
        how: The options of the query's run.
        nothing_late: Whether no row is late and the last batches close all windows and groups.
    """

    query: Query
    batches: tuple[Batch, ...]
    how: HowRun = field(default_factory=HowRun)
    nothing_late: bool = False

    @property
    def histories(self) -> set[int]:
        """The numbers of the histories that have input rows."""
        found = {row["h"] for batch in self.batches for rows in batch.values() for row in rows}
        return found - {CLOCK}

    @property
    def columns(self) -> list[str] | None:
        """The columns of the result that the fuzzer compares between runs; None: the value of each column may vary
        between runs.
        """
        exact = exact_columns(self.query.plan)
        return None if exact is None else [name for name in self.query.plan.columns if name in exact]

    def bags(self, batches: Sequence[Sequence[Row]], columns: Sequence[str] | None = None) -> Bags:
        """Return each batch's rows as a multiset, in the given columns, by default in all compared columns."""
        columns = self.columns or [] if columns is None else columns
        return [Counter(tuple(row[name] for name in columns) for row in batch) for batch in batches]

    @property
    def emits(self) -> bool:
        """Return whether a history has expected rows; if the result has no column with the history, whether there are
        any expected rows.
        """
        rows = (row for bag in self.expected() for row in bag)
        columns = self.columns or []
        return any("h" not in columns or row[columns.index("h")] not in (CLOCK, None) for row in rows)

    @property
    def starts(self) -> frozenset[int]:
        """The batches before which the query restarts."""
        return frozenset({one + 1 for one in self.how.restarts} | {*self.how.deaths})

    def expected(
        self,
        plan: Node | None = None,
        watermarks_ms: Sequence[tuple[bool, int]] | None = None,
        starts: Collection[int] = (),
    ) -> Bags:
        """Return the rows that each batch should emit, according to the reference.

        Args:
            plan: A plan that Spark may run instead of the written plan; None: the written plan.
            watermarks_ms: The watermarks of Spark's micro-batches; None: the reference computes the watermarks from the
                input rows.
            starts: The batches before which a restarted query loses the largest event time of each input.
        """
        query = self.query
        execution = Execution(plan or query.plan, policy=query.policy, without_data=query.without_data, starts=starts)
        by_rows = watermarks_ms is None
        done = execution.run(self.batches) if by_rows else execution.run_at(watermarks_ms or (), self.batches)
        emitted: list[Sequence[Row]] = [[] for _ in self.batches]
        for micro in done:
            kept = [] if self.query.mode == "complete" else emitted[micro.batch]
            emitted[micro.batch] = [*kept, *micro.rows]
        if self.query.mode == "complete":  # in complete mode, a batch without new data repeats the previous table
            for number, batch in enumerate(self.batches):
                emitted[number] = emitted[number] if batch or not number else emitted[number - 1]
        return self.bags(emitted)


def first_difference(
    wanted: Sequence[RowBag], found: Sequence[RowBag]
) -> tuple[int, list[tuple[Any, ...]], list[tuple[Any, ...]]] | None:
    """Return the first batch with different rows, its missing rows, and its surplus rows; None: all batches are
    equal.
    """
    for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
        if one != other:
            return number, [*(one - other).elements()], [*(other - one).elements()]
    return None
