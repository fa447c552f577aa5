"""Of the histories of a query that failed, the one that makes it fail, with as few rows as can be found quickly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...generators.columns.model import JobHistory

TRIED = 12
"""The maximum of rows that are tried alone, each in its own query."""


def failing_history(
    histories: Sequence[JobHistory], fails: Callable[[Sequence[JobHistory]], bool]
) -> JobHistory | None:
    """Return the smallest history found on which a job fails alone; None: it fails on none, or whatever arrives.

    Args:
        histories: Histories that share a query, which fails.
        fails: Whether a query over histories fails.
    """
    if fails([history.silent for history in histories]):
        return None
    suspects = list(histories)
    while len(suspects) > 1:
        half = suspects[: len(suspects) // 2]
        suspects = half if fails(half) else suspects[len(half) :]
    (found,) = suspects
    if not fails([found]):
        return None
    for record in found.unreadable[:TRIED]:
        for alone in (
            JobHistory(((),), unreadable=(record._replace(batch=0),)),
            replace(found.silent, unreadable=(record,)),
        ):
            if fails([alone]):
                return alone
    for number, arrival in enumerate(found.arrivals[:TRIED]):
        for alone in (JobHistory(((arrival,),)), _with_one_row(found, number)):
            if fails([alone]):
                return alone
    return found


def _with_one_row(history: JobHistory, number: int) -> JobHistory:
    kept = history.arrivals[number]
    batch = next(at for at, rows in enumerate(history.batches) if any(row is kept for row in rows))
    batches = [(kept,) if at == batch else () for at in range(len(history.batches))]
    return replace(history.with_batches(batches), unreadable=())
