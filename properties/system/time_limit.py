"""The time limit of a whole check; its parts can read the time left."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator

_end = math.inf


@contextlib.contextmanager
def within_seconds(seconds: float) -> Iterator[None]:
    """Limit the block to a number of seconds, or to the time left of an outer limit."""
    global _end
    before, _end = _end, min(_end, time.monotonic() + seconds)
    try:
        yield
    finally:
        _end = before


def seconds_left() -> float:
    """Return the seconds left, at least 0; infinite without a limit."""
    return max(0.0, _end - time.monotonic())
