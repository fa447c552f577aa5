"""Isolates what kills a query that many definitions share, such as a logic that ends its worker, so that the others
still get their answers.

A logic that raises is no such thing: the query reports that as what the history emits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from .failures import QueryFailed

Found = TypeVar("Found")
Isolated: TypeAlias = list[tuple[list[int], Found | QueryFailed]]

MOST = 3
"""With more definitions than these failing alone, it isn't they that make queries fail."""


def isolated(
    definitions: Sequence[Sequence[int]], run: Callable[[list[int]], Found], *, others_ran: bool = False
) -> Isolated[Found]:
    """Run all together; where that fails run each half, and so on, until those that fail are alone.

    One that fails alone is run once more, for its worker may have been ended from outside.

    Args:
        definitions: The numbers of each definition's histories.
        run: Runs the histories of some numbers in one query.
        others_ran: Whether other queries succeeded before, so that it isn't the machine that makes all of them fail.

    Returns:
        What came out of numbers that ran together, and for those of a definition that fails alone its failure.

    Raises:
        QueryFailed: More definitions fail alone than are isolated, or no query succeeds.
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
