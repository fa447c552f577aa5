"""Finds the smallest history, and the fewest changes to the run, with which a job still differs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ...generators.columns.histories.shrinking import shrink
from ...generators.columns.histories.standing_alone import standing_alone
from ...generators.columns.model import JobHistory
from ...generators.shrinking import Deadline, one_by_one
from ...laws.expected.judging import Judge, Judgement
from ...laws.variation import Variation
from ...system.progress import doing
from ...system.time_limit import seconds_left
from ...witnesses.job.running import QueryOutput
from .draws import Draws

MAX_WITHOUT_CLOCK = 3
"""The number of forms of a counterexample without the check's clock that are tried, each with its own query."""
MAX_PARTS = 4
"""The number of single changes of a variation that are tried, each with its own query."""
SHRINKING = 2
"""The time limit of shrinking, as a multiple of the time that the check took to find the violation."""
SHRINKING_S = 30
"""The smallest time limit of shrinking by that multiple is 30 s. `seconds` and the remaining time of the whole check
also limit shrinking.
"""
LEAST_S = 10
"""Shrinking may always take at least 10 s."""


def deadline_of_shrinking(started: float, seconds: float) -> Deadline:
    """Return the deadline of shrinking that starts now, in a check that started at `started` (`time.monotonic()`)."""
    usual = max(SHRINKING * (time.monotonic() - started), SHRINKING_S)
    return Deadline(min(usual, seconds, max(seconds_left(), LEAST_S)))


def shrunk(
    judge: Judge, draws: Draws, history: JobHistory, variation: Variation, *, output: QueryOutput, deadline: Deadline
) -> tuple[JobHistory, Variation]:
    """Return the smallest differing history found before the deadline, and the part of the variation that shows the
    difference.

    The history contains late rows only if the check draws late rows.

    Args:
        judge: The judge that compares the job with the oracle.
        draws: The object that draws histories.
        history: The history.
        variation: The query's run options.
        output: The output of the query that ran the history.
        deadline: The deadline of shrinking.
    """
    rows = len(history.arrivals)
    doing(f"{judge.name}: shrinking: rows: {rows}; at most {deadline.seconds:.0f} s")
    part = narrowed(judge, history, variation, output=output, deadline=deadline)

    def differs_alone(candidate: JobHistory) -> bool:
        return judge.compare_alone(candidate, part).differs

    def differ(candidates: Sequence[JobHistory]) -> Sequence[bool]:
        doing(f"{judge.name}: shrinking: rows: {rows}; smaller histories to try: {len(candidates)}")
        if judge.witness.alone:
            return one_by_one(differs_alone, deadline)(candidates)
        return [compared.differs for compared in judge.compare(candidates, part)]

    delay_us = None if draws.takes_late else draws.out_of_order_us
    return shrink(history, draws.inputs, differ, delay_us=delay_us, deadline=deadline), part


def narrowed(
    judge: Judge, history: JobHistory, variation: Variation, *, output: QueryOutput, deadline: Deadline
) -> Variation:
    """Return the smallest part of a variation with which the job still differs on a history.

    The search always tries the first parts, which name the points at which the shared query died; a separate query may
    die at other points.
    """
    smallest, output_of_part = variation, output
    while smallest.parts is not None and (smallest is variation or not deadline.is_over()):
        for part in smallest.parts(output_of_part)[:MAX_PARTS]:
            compared = judge.compare_alone(history, part)
            if compared.differs:
                smallest, output_of_part = part, compared.output
                break
        else:
            break
    return smallest


def plainest(
    judge: Judge, draws: Draws, history: JobHistory, variation: Variation, *, deadline: Deadline
) -> tuple[JobHistory, Judgement]:
    """Return the most readable form of the history on which the job still differs, and the comparison.

    The most readable form has no clock rows, as if a person had written it. If the job agrees on this form, only empty
    batches after the difference are left out.
    """
    compared = judge.compare_alone(history, variation)
    first = None if compared.difference is None else compared.difference.when
    shorter = _without_empty_end(history) if first is None else history.first(first + 1)
    plainer = [shorter] * (len(shorter.batches) < len(history.batches))
    if not (draws.closes or variation.run.processing_time):  # no clock rows needed to close windows or time batches
        sooner = variation.run.trigger == "available_now"
        plainer[:0] = standing_alone(history, draws.inputs, first, sooner=sooner)[:MAX_WITHOUT_CLOCK]
    for plain in plainer:
        if deadline.is_over():
            break
        plain_compared = judge.compare_alone(plain, variation)
        if plain_compared.differs:
            return plain, plain_compared
    return history, compared


def _without_empty_end(history: JobHistory) -> JobHistory:
    """Return a history without the empty batches at its end, except for the last batch, whose clock may close
    windows.
    """
    ended = history.first(history.used)
    return replace(ended, batches=(*ended.batches, ()), clock=(*ended.clock, *history.clock[-1:]))
