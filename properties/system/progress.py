"""Reports the progress of a check: one line every ten seconds, even during a long step."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

EVERY_S = 10.0
"""The seconds between two lines."""
_LOG = logging.getLogger("streamproof")


class Heartbeat:
    """Shows the current step, at most one line in ten seconds.

    Args:
        show: Shows a line.
        clock: Returns the time in seconds.
    """

    def __init__(self, show: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.show, self.clock, self.lock = show, clock, threading.Lock()
        self.step, self.since, self.shown = "", clock(), clock()

    def take(self, step: str) -> None:
        """Start a step, and show the step if a line is due."""
        with self.lock:
            self.step, self.since = step, self.clock()
        self.beat()

    def beat(self) -> None:
        """Show the step with its seconds so far, if a line is due."""
        with self.lock:
            now = self.clock()
            if self.step and now - self.shown >= EVERY_S:
                self.shown = now
                self.show(f"{self.step} ({now - self.since:.0f} s)")

    @property
    def left_s(self) -> float:
        """Return the seconds until a line is due."""
        return max(self.shown + EVERY_S - self.clock(), 0.01)


class _Telling:
    """Shows the steps of a check, and their seconds: a heartbeat in a thread that starts with the first step."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self.heartbeat, self.ended = Heartbeat(show), threading.Event()
        self.thread: threading.Thread | None = None

    def take(self, step: str) -> None:
        if self.thread is None:
            self.heartbeat.shown = time.monotonic()
            self.thread = threading.Thread(target=self._beat, name="streamproof-progress", daemon=True)
            self.thread.start()
        self.heartbeat.take(step)

    def _beat(self) -> None:
        while not self.ended.wait(self.heartbeat.left_s):
            self.heartbeat.beat()

    def end(self) -> None:
        self.ended.set()
        if self.thread is not None:
            self.thread.join()


_telling: _Telling | None = None


@contextlib.contextmanager
def telling(show: Callable[[str], None]) -> Iterator[None]:
    """Show the progress of checks in the block, one line every ten seconds; a check under ten seconds shows none.

    Args:
        show: A function that shows a line; a separate thread calls this function.
    """
    global _telling
    before, _telling = _telling, _Telling(show)
    try:
        yield
    finally:
        ended, _telling = _telling, before
        ended.end()


def doing(step: str) -> None:
    """Report the next step before it starts, in the log and to the listener."""
    _LOG.info(step)
    if _telling is not None:
        _telling.take(step)


def tell(line: str) -> None:
    """Report a message immediately, to the listener or as a warning in the log."""
    if _telling is not None:
        _telling.heartbeat.show(line)
    else:
        _LOG.warning(line)
