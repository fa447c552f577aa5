"""The locks that are held while code of the user's runs for which Spark's classes may be patched."""

from __future__ import annotations

import threading
from types import TracebackType


class Lock:
    """A lock that a thread may take again, and that can be given up if its thread doesn't return."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._taken = threading.local()

    def __enter__(self) -> None:
        lock = self._lock
        lock.acquire()
        self._taken.locks = [*getattr(self._taken, "locks", ()), lock]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._taken.locks.pop().release()

    def give_up(self) -> None:
        """Let other threads take it though one has it."""
        self._lock = threading.RLock()


DECLARING = threading.RLock()
"""One thread at a time declares a job: what patches Spark's classes for it would meet the jobs of other threads."""

PATCHING = Lock()
"""Held while a script runs, and while a sink's function writes a batch. Each patches the classes of writers, and Spark
may call the function before the script that started the query has ended."""
