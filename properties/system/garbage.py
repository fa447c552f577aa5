"""Keep Python's cycle collector from scanning millions of records again and again."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

THRESHOLDS = 50_000, 10, 5
"""The thresholds of Python's three generations, as in `gc.set_threshold`.

With Python's default thresholds, collections take a fifth of the time of drawing, running and judging histories, and
find almost nothing.
"""


@contextlib.contextmanager
def searched_seldom() -> Iterator[None]:
    """Run the cycle collector rarely during a block that creates many objects and few cycles."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
