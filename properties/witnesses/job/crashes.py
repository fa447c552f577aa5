"""Lets a query die where that is planned, in the function that `foreachBatch` is given."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ...system.exits import without_exit
from ..run_options import Crash, Moment, RunOptions
from ..spark.query import PlannedCrash
from .contract import location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Crashes:
    """The crashes of a query.

    Args:
        run: How the query is run.

    Attributes:
        planned: The crashes that haven't happened yet, by the number of the micro-batch and the moment in it.
        happened: The crashes that have happened, in order, each with whether the micro-batch had rows.
        with_rows: The numbers of the micro-batches with rows in which the query has died.
    """

    def __init__(self, run: RunOptions) -> None:
        self.planned = {(at.batch * run.steps + (not at.data), at.moment): at for at in run.crash_in}
        self.happened: list[tuple[Crash, bool]] = []
        self.with_rows: set[int] = set()

    @contextlib.contextmanager
    def within(self) -> Iterator[None]:
        """Let functions that are given to `foreachBatch` within it raise where a crash is planned."""
        from pyspark.sql.streaming.readwriter import DataStreamWriter

        original = DataStreamWriter.foreachBatch

        def for_each_batch(writer: DataStreamWriter, function: Callable[[DataFrame, int], None]) -> DataStreamWriter:
            def and_crash(rows: DataFrame, batch_id: int) -> None:
                self._crash(rows, batch_id, "before its output")
                with without_exit(location(function)):  # Spark would wait for it forever
                    function(rows, batch_id)
                self._crash(rows, batch_id, "between its output and its commit")

            return original(writer, and_crash)

        DataStreamWriter.foreachBatch = for_each_batch  # type: ignore[assignment,method-assign]
        try:
            yield
        finally:
            DataStreamWriter.foreachBatch = original  # type: ignore[method-assign]

    def _crash(self, rows: DataFrame, number: int, moment: Moment) -> None:
        """Raise where a crash is planned, once each, and note whether the micro-batch has rows."""
        at = self.planned.pop((number, moment), None)
        if at is not None:
            has_rows = not rows.isEmpty()
            self.happened.append((at, has_rows))
            self.with_rows |= {number} if has_rows else set()
            raise PlannedCrash
