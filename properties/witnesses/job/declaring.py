"""Locks that are held while a user's code runs and Spark's classes may be patched."""

from __future__ import annotations

import threading
from types import TracebackType


class Lock:
    """A reentrant lock that other threads can take over if its owner never returns."""

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
        """Let other threads take the lock although a thread still holds it."""
        self._lock = threading.RLock()


DECLARING = threading.RLock()
"""Held while a thread declares a job, because its patches of Spark's classes would affect jobs of other threads."""

PATCHING = Lock()
"""Held while a script runs, and while a sink's function writes a batch. Both functions patch Spark's writer classes,
and Spark may call a sink's function while the sink's script is still running.
"""
