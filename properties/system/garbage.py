"""Keep Python's cycle collector from scanning millions of records again and again."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

THRESHOLDS = 50_000, 10, 5
"""The number of new objects that sets off a search of the youngest, and of searches that set off the next generation's.

With Python's own thresholds, searches take a fifth of the time of drawing, playing and judging, and find almost
nothing.
"""


@contextlib.contextmanager
def searched_seldom() -> Iterator[None]:
    """Run the cycle collector seldom during a block that creates many objects and few cycles."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
