"""The run that is judged: the batches that it has read, as a history, and the rows that it has written."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .....reference.spark.watermarks import micro_batches
from ....generators.columns.model import JobHistory, Source
from ....laws.expected.judging import Judge
from ....witnesses.job.plans import delays_by_input
from ....witnesses.production.checkpoint import Checkpoint, read_checkpoint
from ....witnesses.production.inputs import BatchesRead, Reading, read_inputs, sources_by_input
from ....witnesses.production.output import Target, Written, read_output
from ....witnesses.run_options import WATERMARK_POLICY
from ....witnesses.spark.session import session_for_query
from ..arguments import CheckOptions

_LOG = logging.getLogger("streamproof")


@dataclass(frozen=True)
class Run:
    """The run: its batches as a history, and the rows that it wrote.

    Attributes:
        checkpoint: Its checkpoint.
        history: The rows of all batches; their own event times move the watermark.
        numbers: The id of each batch; None: it was before the first whose log is kept.
        watermarks_ms: The watermark that each batch went by.
        written: The rows of its output.
        unreadable: The number of records whose payload is no row.
    """

    checkpoint: Checkpoint
    history: JobHistory
    numbers: Sequence[int | None]
    watermarks_ms: Sequence[int]
    written: Written
    unreadable: int

    def clock(self, sources: Sequence[Source]) -> list[int]:
        """Return the largest event time by the end of each batch, in microseconds since 1970."""
        reached, clock = 0, []
        for batch in self.history.batches:
            times = [time_us for source in sources if (time_us := source.latest_us(batch)) is not None]
            reached = max([reached, *times])
            clock.append(reached)
        return clock


def read_run(
    judge: Judge, options: CheckOptions, checkpoint: str, output: Target, readings: Mapping[str, Reading]
) -> tuple[Run, CheckOptions]:
    """Read a run, and return it with the options that the query has gone by.

    Args:
        judge: The judge of the job.
        options: The options that were given.
        checkpoint: The folder of the query's checkpoint.
        output: What the query has written.
        readings: How each input is read.

    Raises:
        BadInput: The checkpoint, a source or the output can't be read, or is of another job.
    """
    sources, declared, run = options.runner.sources, judge.declared, options.run
    with session_for_query(run.settings, any_provider=True) as spark:
        found = read_checkpoint(spark, checkpoint)
        # A query keeps the policy that it began with, whatever its session says.
        kept = {name: value for name, value in found.settings.items() if name == WATERMARK_POLICY}
        options = replace(options, run=replace(run, settings={**run.settings, **kept}))
        folders = sources_by_input(found, declared.plan, sources)
        _LOG.info("%s: reading what %d batches have read", judge.name, len(found.batches))
        read = read_inputs(spark, found, folders, sources, readings)
        written = read_output(spark, output, found, declared.schema)
    history = JobHistory((*read.batches, ()), name="the run")
    watermarks = _watermarks(found, read, history, judge, options)
    return Run(found, history, read.numbers, watermarks, written, read.unreadable), options


def _watermarks(
    checkpoint: Checkpoint, read: BatchesRead, history: JobHistory, judge: Judge, options: CheckOptions
) -> list[int]:
    """Return the watermark of each batch: that of the checkpoint, or what follows from the rows where that is cut."""
    known = {batch.number: batch.watermark_ms for batch in checkpoint.batches}
    plan, sources = judge.declared.plan, options.runner.sources
    delays_us = delays_by_input(plan, sources) or dict.fromkeys(
        (source.name for source in sources), min(plan.delays_us, default=0)
    )
    largest = [{source.name: source.latest_us(batch) for source in sources} for batch in history.batches]
    policy = options.run.watermark_policy
    reckoned = micro_batches(largest, delays_us, policy=policy, trigger="available_now", follows=False)
    return [
        each.eviction_ms if number is None else known[number]
        for number, each in zip(read.numbers, reckoned, strict=False)
    ]
