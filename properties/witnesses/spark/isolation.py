"""Isolates definitions that crash a shared query, for example by ending the worker, so that other definitions get
results.

A logic that raises an exception doesn't crash the query, because the query reports the error as the history's output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from .failures import QueryFailed

Found = TypeVar("Found")
Isolated: TypeAlias = list[tuple[list[int], Found | QueryFailed]]

MOST = 3
"""The largest number of definitions that fail alone; if more definitions fail, the definitions aren't the cause."""


def isolated(
    definitions: Sequence[Sequence[int]], run: Callable[[list[int]], Found], *, others_ran: bool = False
) -> Isolated[Found]:
    """Run all definitions together; if the run fails, run each half, and so on, until each failing definition runs
    alone.

    A definition that fails alone runs once more, because another cause may have ended its worker.

    Args:
        definitions: The numbers of each definition's histories.
        run: Runs the histories with these numbers in one query.
        others_ran: Whether other queries succeeded before; then the machine isn't the cause of a failure of all
            queries.

    Returns:
        The results of the numbers that ran together, and the failure for each definition that fails alone.

    Raises:
        QueryFailed: Too many definitions fail alone, or no query succeeds.
    """
    failures: list[QueryFailed] = []

    def parts(some: Sequence[Sequence[int]], again: bool = False) -> Isolated[Found]:
        numbers = sorted(number for definition in some for number in definition)
        try:
            return [(numbers, run(numbers))]
        except QueryFailed as failed:
            if len(some) > 1:
                half = len(some) // 2
                return parts(some[:half]) + parts(some[half:])
            if not again:
                return parts(some, again=True)
            failures.append(failed)
            if len(failures) > MOST:
                raise
            return [(numbers, failed)]

    found = parts(definitions)
    if not others_ran and len(failures) == len(found):
        raise failures[0]
    return found
