"""Shrink a failing history: each round tries all smaller candidates in one query.

A Spark query takes seconds, whether it runs one candidate or a thousand. A round therefore tries the results of all
single simplification steps at once, instead of bisecting. One round also tries all histories of up to three of the
records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import itemgetter
from typing import Any, Generic, TypeVar

T = TypeVar("T")
SMALL = 3
MANY = 24
"""The largest number of records for which every choice of up to `SMALL` records is tried."""


class Deadline:
    """A time limit for shrinking; `has_stopped` is true if the limit ended a search that had untried candidates."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.has_stopped = seconds, False
        self.at = time.monotonic() + seconds

    def is_over(self) -> bool:
        """Return whether the time limit is over; if so, set `has_stopped`."""
        self.has_stopped |= time.monotonic() > self.at
        return self.has_stopped


@dataclass(frozen=True)
class Shrinker(Generic[T]):
    """Shrinks histories of any type.

    Attributes:
        size: A function that returns the size of a history as a tuple, the number of records first; a history with a
            smaller size is simpler.
        candidates: A function that yields the result of each simplification step, given a history and whether `fewer`
            is thorough. The shrinker ignores candidates that aren't smaller, and duplicates.
        combined: A function that yields further candidates for the next round, given a history and its failing
            candidates, the smallest first.
    """

    size: Callable[[T], tuple[Any, ...]]
    candidates: Callable[[T, bool], Iterable[T]]
    combined: Callable[[T, Sequence[T]], Iterable[T]] = lambda history, failing: ()

    def shrink(
        self,
        history: T,
        fails: Callable[[Sequence[T]], Sequence[bool]],
        rounds: int = 8,
        at_once: int = 0,
        deadline: Deadline | None = None,
    ) -> T:
        """Return the smallest failing history found.

        Args:
            history: A failing history.
            fails: A function that takes a round's candidates, the smallest first, and returns for each candidate
                whether it fails.
            rounds: The maximum number of rounds.
            at_once: The largest number of candidates in a round, chosen evenly from all candidates; 0: no limit.
            deadline: The time after which no round starts.
        """
        return self.shrink_together([history], lambda asked: [fails(asked[0])], rounds, at_once, deadline)[0]

    def shrink_together(
        self,
        histories: Sequence[T],
        fails: Callable[[Sequence[Sequence[T]]], Sequence[Sequence[bool]]],
        rounds: int = 8,
        at_once: int = 0,
        deadline: Deadline | None = None,
    ) -> list[T]:
        """Shrink several histories as `shrink` does; each round runs the candidates of all histories in one query.

        Args:
            histories: The failing histories.
            fails: A function that takes the candidates of each history (none for a finished history), and returns for
                each candidate whether it fails.
            rounds: As for `shrink`.
            at_once: As for `shrink`, for each history.
            deadline: As for `shrink`.
        """
        running = [self._rounds(history, at_once) for history in histories]
        smallest = [next(steps) for steps in running]
        for _ in range(rounds):
            asked = [candidates for _, candidates in smallest]
            if not any(asked) or (deadline is not None and deadline.is_over()):
                break
            smallest = [steps.send(answers) for steps, answers in zip(running, fails(asked), strict=True)]
        return [history for history, _ in smallest]

    def _rounds(self, history: T, at_once: int) -> Generator[tuple[T, list[T]], Sequence[bool], None]:
        """Yield the smallest failing history with its candidates; the caller sends back whether each candidate
        fails.
        """
        combined: list[T] = []
        thorough_done = False
        while True:
            limit = self.size(history)
            thorough = not thorough_done and SMALL < limit[0] <= MANY
            thorough_done |= thorough
            distinct = {repr(other): other for other in (*combined, *self.candidates(history, thorough))}
            sized = sorted(((self.size(other), other) for other in distinct.values()), key=itemgetter(0))
            candidates = [other for size, other in sized if size < limit]
            if at_once and candidates:
                candidates = candidates[:: -(-len(candidates) // at_once)]
            answers = yield history, candidates
            failing = [candidate for candidate, fails in zip(candidates, answers, strict=True) if fails]
            if not failing:
                break
            combined, history = list(self.combined(history, failing)), failing[0]
        while True:
            yield history, []


def one_by_one(fails: Callable[[T], bool], deadline: Deadline) -> Callable[[Sequence[T]], list[bool]]:
    """Return a function `fails` for `shrink` that tries a round's candidates in turn, until a candidate fails."""

    def failing(candidates: Sequence[T]) -> list[bool]:
        for index, candidate in enumerate(candidates):
            if deadline.is_over():
                break
            if fails(candidate):
                return [other == index for other in range(len(candidates))]
        return [False] * len(candidates)

    return failing


def fewer(records: Sequence[T], thorough: bool) -> Iterator[list[T]]:
    """Yield the records without a half, a quarter, two or one of them; if `thorough`, first yield each choice of 1 to 3
    records.
    """
    if thorough:
        for count in range(1, SMALL + 1):
            yield from map(list, combinations(records, count))
    for width in (len(records) // 2, len(records) // 4, 2, 1):
        for start in range(0, len(records), max(width, 1)):
            yield [*records[:start], *records[start + width :]]
