"""The run that is judged: the batches that it has read, as a history, and the rows that it has written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .....reference.core.errors import BadInput
from .....reference.spark.watermarks import micro_batches
from ....generators.columns.model import Arrival, JobHistory, Source
from ....laws.expected.judging import Judge
from ....system.progress import doing
from ....witnesses.job.plan.plans import delays_by_input
from ....witnesses.production.checkpoint import Checkpoint, read_checkpoint
from ....witnesses.production.inputs import read_inputs, sources_by_input
from ....witnesses.production.output import Target, Written, read_output
from ....witnesses.production.reading import Reading
from ....witnesses.run_options import WATERMARK_POLICY
from ....witnesses.spark.session import session_for_query
from ..arguments import CheckOptions

BOUNDED = frozenset(
    {
        *("Aggregate", "EventTimeWatermark", "Expand", "Filter", "Generate", "LocalRelation", "LogicalRelation"),
        *("MapInArrow", "MapInPandas", "Project", "SubqueryAlias", "Union", "View"),
    }
)
"""Operators that in append mode keep no row longer than its times and the job's durations say."""


@dataclass(frozen=True)
class ProductionRun:
    """The run: its batches as a history, and the rows that it wrote.

    Attributes:
        checkpoint: Its checkpoint.
        history: The rows of all batches; their own event times move the watermark.
        numbers: The id of each batch; None: it ended with the first whose log is kept, or before it.
        watermarks_ms: The watermark that each batch went by.
        written: The rows of its output.
        unreadable: The number of records whose payload is no row.
        otherwise: The same with other batches where those without an id aren't known; None: all batches are known.
        lacking: The names of the inputs that don't have the rows of the batches without an id any more.
        earlier_ms: The largest event time at which such rows can count, in milliseconds since 1970.
    """

    checkpoint: Checkpoint
    history: JobHistory
    numbers: Sequence[int | None]
    watermarks_ms: Sequence[int]
    written: Written
    unreadable: int
    otherwise: JobHistory | None = None
    lacking: Sequence[str] = ()
    earlier_ms: int = 0

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
) -> tuple[ProductionRun, CheckOptions]:
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
        doing(f"{judge.name}: reading what {len(found.batches)} batches have read")
        read = read_inputs(spark, found, folders, sources, readings)
        written = read_output(spark, output, found, declared.schema)
    whole = ProductionRun(found, _history(read.batches), read.numbers, (), written, read.unreadable)
    if read.lacking:
        earlier_ms = _earlier_ms(found, judge, options, read.lacking)
        whole = replace(whole, lacking=read.lacking, earlier_ms=earlier_ms)
    elif not read.in_order and None in read.numbers:
        count = read.numbers.count(None)
        together = tuple(arrival for batch in read.batches[:count] for arrival in batch)
        batches, numbers = [together, *read.batches[count:]], [None, *read.numbers[count:]]
        whole = replace(whole, history=_history(batches), numbers=numbers, otherwise=whole.history)
    return replace(whole, watermarks_ms=_watermarks(whole, judge, options)), options


def _history(batches: Sequence[tuple[Arrival, ...]]) -> JobHistory:
    return JobHistory((*batches, ()), name="the run")


def _earlier_ms(checkpoint: Checkpoint, judge: Judge, options: CheckOptions, lacking: Sequence[str]) -> int:
    """Return the largest event time at which rows of the first batches can count: the next watermark says it.

    Raises:
        BadInput: Rows with later times may depend on them, too, or there is no such watermark.
    """
    plan, batches, sources = judge.declared.plan, checkpoint.batches, options.runner.sources
    delays_us = delays_by_input(plan, sources)
    if not delays_us and len(sources) == len(plan.event_times) == 1 and sources[0].wire_time is None:
        delays_us = {sources[0].name: max(plan.delays_us)}  # the job reads the time from the payload
    others = sorted(name for name in plan.operators if name not in BOUNDED and not name.startswith("StreamingRelation"))
    one_clock = len(sources) == 1 or options.run.watermark_policy == "max"
    why = ""
    if options.run.mode != "append":
        why = f"in {options.run.mode} mode"
    elif others:
        why = f"with the operator {others[0]}"
    elif not delays_us or not one_clock or len(batches) < 2:
        why = "without a watermark of its own that says how far they went"
    if why:
        raise BadInput(
            f"input {lacking[0]} no longer has the rows from before batch {batches[0].number + 1}, and a job {why} may "
            "depend on them for ever: keep the rows, or set spark.sql.streaming.minBatchesToRetain to the number of "
            "batches that are to be judged, and judge the next run from its start"
        )
    assert delays_us
    # A session that begins later may go on with them. Spark cuts times to milliseconds.
    sessions_us = sum(plan.durations_us) if plan.has_sessions else 0
    return batches[1].watermark_ms + (max(delays_us.values()) + sessions_us) // 1_000 + 1


def _watermarks(run: ProductionRun, judge: Judge, options: CheckOptions) -> list[int]:
    """Return each batch's watermark: the checkpoint's, or, if its log is gone, the watermark that its rows reach."""
    known: dict[int | None, int] = {batch.number: batch.watermark_ms for batch in run.checkpoint.batches}
    if run.otherwise is not None:
        known[None] = run.checkpoint.batches[0].watermark_ms  # the largest of theirs
    plan, sources = judge.declared.plan, options.runner.sources
    delays_us = delays_by_input(plan, sources) or dict.fromkeys(
        (source.name for source in sources), min(plan.delays_us, default=0)
    )
    largest = [{source.name: source.latest_us(batch) for source in sources} for batch in run.history.batches]
    policy = options.run.watermark_policy
    reckoned = micro_batches(largest, delays_us, policy=policy, trigger="available_now", follows=False)
    return [known.get(number, each.eviction_ms) for number, each in zip(run.numbers, reckoned, strict=False)]
