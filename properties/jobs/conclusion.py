"""What a check of a job that found no difference has not shown: unmet coverage goals, and what was not checked."""

from __future__ import annotations

from collections.abc import Sequence

from ...reference.spark.durations import Duration
from .draws import Draws
from .histories.drawing import duration
from .judging import Judge
from .model import JobHistory
from .queries.running import RESTORED
from .variations import Variation

MIN_HISTORIES = 10
"""Fewer histories are inconclusive."""
MIN_EXPECTING = 0.05
"""The least share of histories on which a row is expected."""


def unmet_goals(
    judge: Judge, draws: Draws, variation: Variation, histories: Sequence[JobHistory], expecting: int
) -> list[str]:
    """Return the coverage goals that a check has left unmet, the most important first.

    Args:
        judge: Has compared the job on them.
        draws: What the histories were drawn from.
        variation: How the job's queries were run.
        histories: The histories.
        expecting: On how many of them a row was expected.
    """
    count, met = len(histories), judge.met
    missing = draws.unmet(histories)
    if count < MIN_HISTORIES:
        missing.insert(0, f"{MIN_HISTORIES} histories at the least")
    if expecting < MIN_EXPECTING * count:
        missing.insert(0, f"rows that are expected, on one in twenty histories (they are on {expecting})")
    of_oracle, delays = judge.oracle.watermark_delays_us, {*judge.declared.plan.delays_us}
    if judge.declared.plan.operators and of_oracle is not None and {*of_oracle.values()} - {0} != delays - {0}:
        # All inputs follow one clock, under which the largest of several delays is the only one that matters.
        both = ({*of_oracle.values()}, delays)
        named = [" and ".join(map(duration, sorted(each))) or "nothing" for each in both]
        missing.insert(0, f"watermarks that are delayed by {named[0]}, as expected (the job's are by {named[1]})")
    if met.crashed or not judge.is_sink:
        unmet = [goal for goal in variation.goals if goal not in met.covered]
        missing = [*(goal for goal in unmet if met.stateful or goal != RESTORED), *missing]
    return missing


def not_checked(judge: Judge, draws: Draws, out_of_order: Duration | None) -> list[str]:
    """Say what was not checked."""
    left, met = [], judge.met
    if not draws.takes_late:
        left.append("what becomes of late rows: what is expected knows none; a rule of Spark's or a class does")
        if out_of_order is None and draws.delay_us:
            left.append('whether the watermark\'s delay is long enough: out_of_order="…" says what is to be taken')
        if out_of_order is None and judge.is_sink:
            left.append('rows that come batches later than others: out_of_order="…" says by how much a Sink takes')
    if met.extra:
        left.append(f"the columns {', '.join(met.extra)}, of which nothing is expected")
    if met.left_out:
        left.append(f"the columns {', '.join(met.left_out)}, which are expected and the result doesn't have")
    return left
