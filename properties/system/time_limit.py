"""The time limit of a whole check, which all that runs within it can ask for: what is left of it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator

_end = math.inf


@contextlib.contextmanager
def within_seconds(seconds: float) -> Iterator[None]:
    """Limit what runs within it to so many seconds, or to what is left of the limit around it."""
    global _end
    before, _end = _end, min(_end, time.monotonic() + seconds)
    try:
        yield
    finally:
        _end = before


def seconds_left() -> float:
    """Return the seconds that are left, 0 at the least; infinite where there is no limit."""
    return max(0.0, _end - time.monotonic())
