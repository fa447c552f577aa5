"""The smallest stale history: one line after another is left out, for as long as it still ends stale at times.

What is left out is tried many times at once, for on a broker nothing is stale for certain. Whatever is accepted did end
stale, so that chance makes a history longer than it need be at the most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ....reference.core.history import History
from .judging import Stale

REPEATS = 20
"""How often each smaller history is played."""
MOST_LINES = 40
"""Longer histories aren't shrunk: there would be too much to play."""

Ask = Callable[[Sequence[History]], Sequence[Stale | None]]
"""Plays histories, and judges each: None where the result is right."""


@dataclass(frozen=True)
class Shrunk:
    """A stale history from which no line could be left out.

    Attributes:
        stale: The history, with what came of it.
        times: How often it was stale again in the same way, of `REPEATS`.
    """

    stale: Stale
    times: int


def shrink(stale: Stale, kind: str, ask: Ask) -> Shrunk:
    """Leave lines out of a stale history while it is stale in a way, of `judging.KINDS`."""
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
    """Yield the histories with one line less, those that are equal once."""
    seen = set()
    for index in range(len(history.lines) if len(history.lines) <= MOST_LINES else 0):
        smaller = history.with_lines((*history.lines[:index], *history.lines[index + 1 :]))
        if (text := smaller.to_text()) not in seen:
            seen.add(text)
            yield smaller
