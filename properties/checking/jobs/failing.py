"""Finds the history that makes a shared query fail, with as few rows as a short time allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...generators.columns.model import JobHistory
from ...generators.shrinking import Deadline

TRIED = 12
"""The largest number of rows that are tried alone, each with its own query."""


def failing_history(
    histories: Sequence[JobHistory],
    fails: Callable[[Sequence[JobHistory]], bool],
    deadline: Deadline | None = None,
) -> JobHistory | None:
    """Return the smallest history that makes a query fail, as far as a short search finds it; None: no history fails
    alone, or every history fails.

    The last failing query of the search ran the returned history.

    Args:
        histories: The histories of the failing shared query.
        fails: The function that returns whether a query over some histories fails.
        deadline: The time after which the search starts no further query. If no history has failed alone by then, the
            result is None too.
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
    """Yield, for each row, the history with only this row: first in a batch of its own, then in the row's own batch.

    Lastly, yield the whole history without the empty batches at its end.
    """
    for record in found.unreadable[:TRIED]:
        yield JobHistory(((),), unreadable=(record._replace(batch=0),))
        yield replace(found.silent, unreadable=(record,))
    placed = [(number, arrival) for number, batch in enumerate(found.batches) for arrival in batch]
    for number, arrival in placed[:TRIED]:
        yield JobHistory(((arrival,),))
        batches = [(arrival,) if at == number else () for at in range(len(found.batches))]
        yield replace(found.with_batches(batches), unreadable=())
    if (used := found.used) < len(found.batches):
        yield found.first(used)
