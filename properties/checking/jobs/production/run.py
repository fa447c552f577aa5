"""A run in production: its input rows by batch, as a history, and the rows that it wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .....reference.spark.watermarks import micro_batches
from ....generators.columns.model import JobHistory, Source
from ....laws.expected.judging import Judge
from ....system.progress import doing
from ....witnesses.job.plan.plans import delays_by_input
from ....witnesses.production.checkpoint import Checkpoint, read_checkpoint
from ....witnesses.production.inputs import read_inputs, sources_by_input
from ....witnesses.production.output import OutputTarget, Written, read_output
from ....witnesses.production.reading import Reading
from ....witnesses.run_options import WATERMARK_POLICY
from ....witnesses.spark.session import session_for_query
from ..arguments import CheckOptions
from ..verdicts import Inconclusive


@dataclass(frozen=True)
class ProductionRun:
    """The input rows of a run by batch, as a history, and the rows that the run wrote.

    Attributes:
        checkpoint: The run's checkpoint.
        history: The input rows of all batches; only their event times move the watermark.
        numbers: The id of each batch; None: the rows are from the first batch with a log, or from earlier batches.
        watermarks_ms: The watermark of each batch.
        written: The rows that the run wrote.
        unreadable: The number of records with a payload that can't be parsed.
    """

    checkpoint: Checkpoint
    history: JobHistory
    numbers: Sequence[int | None]
    watermarks_ms: Sequence[int]
    written: Written
    unreadable: int

    def clock(self, sources: Sequence[Source]) -> list[int]:
        """Return the largest event time up to the end of each batch (µs since 1970)."""
        reached, clock = 0, []
        for batch in self.history.batches:
            times = [time_us for source in sources if (time_us := source.latest_us(batch)) is not None]
            reached = max([reached, *times])
            clock.append(reached)
        return clock


def read_run(
    judge: Judge, options: CheckOptions, checkpoint: str, output: OutputTarget, readings: Mapping[str, Reading]
) -> tuple[ProductionRun, CheckOptions]:
    """Read a run in production, and return it with the query's options.

    Args:
        judge: The judge of the job.
        options: The options that the user gives.
        checkpoint: The folder of the query's checkpoint.
        output: The query's output.
        readings: How to read each input.

    Raises:
        BadInput: The checkpoint, a source or the output is unreadable, or belongs to another job.
        Inconclusive: The checkpoint no longer records which rows the first batches read.
    """
    __tracebackhide__ = True
    sources, declared, run = options.runner.sources, judge.declared, options.run
    with session_for_query(run.settings, any_provider=True) as spark:
        found = read_checkpoint(spark, checkpoint)
        if not found.has_all_rows:
            raise Inconclusive(
                f"inconclusive: {found.files.where()} no longer has the logs from before batch "
                f"{found.batches[0].number:,}, which record the rows of each batch: with more than one source, "
                "Kafka or a Delta table, let spark.sql.streaming.minBatchesToRetain keep the logs of all "
                "batches to judge",
                job=judge.name,
            )
        # The checkpoint keeps a query's first watermark policy, even if the session's setting changes later.
        kept = {name: value for name, value in found.settings.items() if name == WATERMARK_POLICY}
        options = replace(options, run=replace(run, settings={**run.settings, **kept}))
        folders = sources_by_input(found, declared.plan, sources)
        doing(f"{judge.name}: reading the rows that {len(found.batches)} batches read")
        read = read_inputs(spark, found, folders, sources, readings)
        written = read_output(spark, output, found, declared.schema)
    history = JobHistory((*read.batches, ()), name="the run")
    whole = ProductionRun(found, history, read.numbers, (), written, read.unreadable)
    return replace(whole, watermarks_ms=_watermarks(whole, judge, options)), options


def _watermarks(run: ProductionRun, judge: Judge, options: CheckOptions) -> list[int]:
    """Return each batch's watermark: from the checkpoint, or from the rows if the batch's log is deleted."""
    known: dict[int | None, int] = {batch.number: batch.watermark_ms for batch in run.checkpoint.batches}
    plan, sources = judge.declared.plan, options.runner.sources
    delays_us = delays_by_input(plan, sources) or dict.fromkeys(
        (source.name for source in sources), min(plan.delays_us, default=0)
    )
    largest = [{source.name: source.latest_us(batch) for source in sources} for batch in run.history.batches]
    policy = options.run.watermark_policy
    reckoned = micro_batches(largest, delays_us, policy=policy, trigger="available_now", follows=False)
    return [known.get(number, each.eviction_ms) for number, each in zip(run.numbers, reckoned, strict=False)]
