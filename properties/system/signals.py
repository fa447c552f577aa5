"""Handle Ctrl-C, SIGTERM and SIGHUP in the same way: end the started processes, and report the results so far.

The first signal ends the JVMs at once, so that no call into a JVM blocks, and interrupts the command. While the command
is ending, further signals have no effect. This module is imported before all slow imports.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_received: list[int] = []
_ends: list[Callable[[], None]] = []
_leaving = False


def install() -> None:
    """Handle the signals in this process from now on; ignored signals, as under `nohup`, stay ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGINT)):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _handle)


def _handle(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    _silence_threads()
    for end in [*_ends]:
        with contextlib.suppress(Exception):
            end()
    if not _leaving:
        raise KeyboardInterrupt


def _silence_threads() -> None:
    """Keep the threads that communicate with a JVM, and finalizers, from printing a traceback when the JVM ends."""
    threading.excepthook = lambda raised: None
    sys.unraisablehook = lambda raised: None
    servers: Any = sys.modules.get("socketserver")
    if servers is not None:
        servers.BaseServer.handle_error = lambda server, request, address: None


def on_signal(end: Callable[[], None]) -> None:
    """Call `end` when a signal arrives; `end` must neither wait nor take a lock."""
    _ends.append(end)


def received() -> str:
    """Return the name of the first received signal, such as `SIGINT`; empty if there was none."""
    return signal.Signals(_received[0]).name if _received else ""


def leave() -> None:
    """Ignore the signals from now on, because the process is about to end."""
    global _leaving
    _leaving = True


@contextlib.contextmanager
def interrupting() -> Iterator[None]:
    """Raise KeyboardInterrupt if a signal arrived, instead of the block's error: the end of a JVM breaks any call."""
    try:
        yield
    except BaseException as error:
        if _received and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
    if _received:
        raise KeyboardInterrupt
