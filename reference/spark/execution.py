"""The execution of a plan: its micro-batches, the query's watermark, and the watermarks of each operator.

Sources, of Spark 3.5 and 4.x: `EventTimeWatermarkExec` (event times are floored to milliseconds), `WatermarkTracker`
(the progress of each watermark and of the query's watermark, which never goes back), `PropagateWatermarkSimulator` (an
operator's input has the smallest watermark of the nodes that feed it; the previous micro-batch's watermark decides
which rows are late), `IncrementalExecution.shouldRunAnotherBatch` (batches without data).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from .aggregates import Row
from .plans import Node, Scan, WithWatermark

Batch: TypeAlias = Mapping[str, Sequence[Row]]
"""The rows of each input with new data, by the input's name; event times are microseconds since 1970."""


class ExecutedBatch(NamedTuple):
    """A micro-batch of a query.

    Attributes:
        batch: The ordinal of this batch among the batches with data; a batch without data has the ordinal of the batch
            before it.
        has_data: Whether this batch contains data.
        watermark_ms: The query's watermark during the batch (milliseconds since 1970).
        rows: The rows that the batch emits.
    """

    batch: int
    has_data: bool
    watermark_ms: int
    rows: Sequence[Row]


class Execution:
    """A query that executes a plan.

    Args:
        plan: The plan.
        policy: Whether the query's watermark is the smallest or the largest of several watermarks.
        without_data: Whether Spark runs batches without data (`spark.sql.streaming.noDataMicroBatches.enabled`).
        starts: The ordinals of the batches before which the query restarts, and loses its watermarks' progress; none by
            default.

    Attributes:
        watermark_ms: The query's watermark in the next micro-batch, never before 1970.
        before_ms: The query's watermark in the last micro-batch.
    """

    def __init__(
        self,
        plan: Node,
        *,
        policy: Literal["min", "max"] = "min",
        without_data: bool = True,
        starts: Collection[int] = (),
    ) -> None:
        self.choose, self.without_data, self.starts = min if policy == "min" else max, without_data, starts
        self.nodes: list[tuple[Node, tuple[int, ...]]] = []  # each node with the indexes of its inputs
        self._place(plan)
        self.steps = [None if isinstance(node, Scan) else node.start() for node, _ in self.nodes]
        self.largest_ms = {place: 0 for place, (node, _) in enumerate(self.nodes) if isinstance(node, WithWatermark)}
        self.watermark_ms = self.before_ms = 0

    def _place(self, node: Node) -> int:
        below = tuple(map(self._place, node.inputs))
        self.nodes.append((node, below))
        return len(self.nodes) - 1

    def run(self, batches: Iterable[Batch]) -> list[ExecutedBatch]:
        """Run batches, each followed by the batches without data that the plan's operators ask for."""
        done: list[ExecutedBatch] = []
        for number, batch in enumerate(batches):
            if number in self.starts:
                self.largest_ms = dict.fromkeys(self.largest_ms, 0)
            if batch:  # without new data Spark runs no batch
                done.append(self.micro_batch(number, batch))
            while self.without_data and done and self.asks_for_batch_without_data():
                done.append(self.micro_batch(number, None))
        return done

    def run_at(self, watermarks_ms: Sequence[tuple[bool, int]], batches: Sequence[Batch]) -> list[ExecutedBatch]:
        """Run batches under given watermarks, which the rows don't move.

        Args:
            watermarks_ms: For each micro-batch: whether the micro-batch contains data, and the query's watermark.
            batches: The batches.
        """
        left = [(number, batch) for number, batch in enumerate(batches) if batch]
        done: list[ExecutedBatch] = []
        number = 0
        for has_data, self.watermark_ms in watermarks_ms:
            number, batch = left.pop(0) if has_data and left else (number, None)
            done.append(self.micro_batch(number, batch))
        return done

    def micro_batch(self, number: int, batch: Batch | None) -> ExecutedBatch:
        """Run a micro-batch, and move the watermark."""
        late_ms, eviction_ms = self.inputs_ms(self.before_ms), self.inputs_ms(self.watermark_ms)
        rows: list[Sequence[Row]] = []
        for place, (node, below) in enumerate(self.nodes):
            step = self.steps[place]
            if isinstance(node, Scan) or step is None:
                rows.append((batch or {}).get(node.name, ()) if isinstance(node, Scan) else ())
                continue
            rows.append(step([rows[one] for one in below], late_ms[place], eviction_ms[place]))
            if isinstance(node, WithWatermark):
                times_us = [row[node.column] for row in rows[place] if row[node.column] is not None]
                reached_ms = max(times_us, default=0) // 1_000 - node.delay_us // 1_000
                self.largest_ms[place] = max(self.largest_ms[place], reached_ms)
        done = ExecutedBatch(number, batch is not None, self.watermark_ms, rows[-1])
        self.before_ms = self.watermark_ms
        self.watermark_ms = max(self.watermark_ms, self.choose(self.largest_ms.values(), default=0))
        return done

    def inputs_ms(self, watermark_ms: int) -> list[int]:
        """Return the watermark at each node's input, given the query's watermark; 0 if no earlier node has one."""
        of_inputs: list[int] = []
        of_outputs: list[int | None] = []
        for node, below in self.nodes:
            least = self.least_ms([of_outputs[one] for one in below])
            of_inputs.append(max(least or 0, 0) if watermark_ms else 0)
            if isinstance(node, WithWatermark):
                of_outputs.append(watermark_ms)
            else:
                of_outputs.append(None if least is None else node.watermark_ms(least))
        return of_inputs

    def least_ms(self, watermarks_ms: Iterable[int | None]) -> int | None:
        """Return the smallest of several watermarks; None if there is no watermark."""
        return min((each for each in watermarks_ms if each is not None), default=None)

    def asks_for_batch_without_data(self) -> bool:
        """Return whether an operator asks for a batch without data, because its input's watermark has moved."""
        before, now = self.inputs_ms(self.before_ms), self.inputs_ms(self.watermark_ms)
        return any(
            node.asks_for_batch_without_data and now[place] > before[place]
            for place, (node, _) in enumerate(self.nodes)
        )
