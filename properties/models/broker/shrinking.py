"""Shrink a stale history: remove lines one by one, as long as the result is sometimes stale.

Each smaller history is played many times concurrently, because staleness on a broker is random. A smaller history is
accepted only after a stale result, so chance can only make the final history too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ....reference.core.history import History
from .judging import Stale

REPEATS = 20
"""The number of repetitions of each smaller history."""
MOST_LINES = 40
"""The largest number of lines of a history to shrink; a longer history would cost too many plays."""

Ask = Callable[[Sequence[History]], Sequence[Stale | None]]
"""Plays histories, and judges the result of each; None if the result is right."""


@dataclass(frozen=True)
class Shrunk:
    """A stale history from which no line could be removed.

    Attributes:
        stale: The history, with its result.
        times: The number of the `REPEATS` repetitions that were stale in the same way.
    """

    stale: Stale
    times: int


def shrink(stale: Stale, kind: str, ask: Ask) -> Shrunk:
    """Remove lines from a stale history as long as the result is stale in the same way (one of `judging.KINDS`)."""
    while True:
        candidates = [stale.history, *shorter(stale.history)]
        found = ask([history for history in candidates for _ in range(REPEATS)])
        again = [
            [one for one in found[start : start + REPEATS] if one is not None and kind in one.kinds]
            for start in range(0, len(found), REPEATS)
        ]
        most = max(again[1:], key=len, default=[])
        if not most:
            return Shrunk(stale, len(again[0]))
        stale = most[0]


def shorter(history: History) -> Iterator[History]:
    """Yield the history without one line, for each line; equal histories once."""
    seen = set()
    for index in range(len(history.lines) if len(history.lines) <= MOST_LINES else 0):
        smaller = history.with_lines((*history.lines[:index], *history.lines[index + 1 :]))
        if (text := smaller.to_text()) not in seen:
            seen.add(text)
            yield smaller
