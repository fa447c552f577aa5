"""The connections through which Spark's JVM calls a query's Python functions. The connections end with the query,
unlike Spark's own connections.

Each query with a Python function has its own connection, with a file descriptor and a thread of this process.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Callbacks:
    """The connections of queries that are stopped together."""

    def __init__(self) -> None:
        self._threads: dict[Any, int] = {}

    def noted(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wrap a function that Spark calls, and record the connection of the call."""

        def called(*given: P.args, **named: P.kwargs) -> R:
            from pyspark import SparkContext

            client = SparkContext._gateway and SparkContext._gateway._gateway_client
            connection = getattr(client, "get_thread_connection", lambda: None)()
            if connection is not None and not connection.initiated_from_client:
                self._threads[connection] = threading.get_ident()
            return function(*given, **named)

        return called

    @property
    def frames(self) -> list[FrameType]:
        """Return the code positions of the threads that run the functions, or wait for calls."""
        all_frames = sys._current_frames()
        return [all_frames[thread] for thread in [*self._threads.values()] if thread in all_frames]

    def close(self) -> None:
        """Close the connections; a query whose function is still running fails, and can be stopped."""
        while self._threads:
            connection, _ = self._threads.popitem()
            # The connection's own thread waits for the query, and would close the connection only at the query's end.
            with contextlib.suppress(OSError, AttributeError):
                connection.socket.shutdown(socket.SHUT_RDWR)
