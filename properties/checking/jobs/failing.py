"""Of the histories of a query that failed, the one that makes it fail, with as few rows as can be found quickly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...generators.columns.model import JobHistory
from ...generators.shrinking import Deadline

TRIED = 12
"""The maximum of rows that are tried alone, each in its own query."""


def failing_history(
    histories: Sequence[JobHistory],
    fails: Callable[[Sequence[JobHistory]], bool],
    deadline: Deadline | None = None,
) -> JobHistory | None:
    """Return the smallest history found on which a job fails alone; None: it fails on none, or whatever arrives.

    The last query that failed was over that history.

    Args:
        histories: Histories that share a query, which fails.
        fails: Whether a query over histories fails.
        deadline: The time after which no query is begun. If none has failed alone until then, it is None, too.
    """

    def is_over() -> bool:
        return deadline is not None and deadline.is_over()

    if fails([history.silent for history in histories]):
        return None
    suspects = list(histories)
    while len(suspects) > 1 and not is_over():
        half = suspects[: len(suspects) // 2]
        suspects = half if fails(half) else suspects[len(half) :]
    found = suspects[0]
    if is_over() or not fails([found]):
        return None
    for alone in _with_fewer_rows(found):
        if is_over():
            break
        if fails([alone]):
            return alone
    return found


def _with_fewer_rows(found: JobHistory) -> Iterator[JobHistory]:
    """Yield the history with one record alone, or one row: in a batch of its own, and in the batch that it is in.

    Last comes the history without the empty batches at its end.
    """
    for record in found.unreadable[:TRIED]:
        yield JobHistory(((),), unreadable=(record._replace(batch=0),))
        yield replace(found.silent, unreadable=(record,))
    for number, arrival in enumerate(found.arrivals[:TRIED]):
        yield JobHistory(((arrival,),))
        yield _with_one_row(found, number)
    if (used := found.used) < len(found.batches):
        yield found.first(used)


def _with_one_row(history: JobHistory, number: int) -> JobHistory:
    kept = history.arrivals[number]
    batch = next(at for at, rows in enumerate(history.batches) if any(row is kept for row in rows))
    batches = [(kept,) if at == batch else () for at in range(len(history.batches))]
    return replace(history.with_batches(batches), unreadable=())
