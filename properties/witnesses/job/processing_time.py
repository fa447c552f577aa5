"""Runs the micro-batches of a query at times that a check sets: the processing time of timeouts, timers and functions.

Spark takes the time of a micro-batch from the clock of its query. No public call sets that, but Spark tells a listener
of a query before the query asks for the time first. There the query is given a clock of ours.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...system.java_fields import private_fields
from .contract import folder_of_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
"""Without it a query with timeouts of processing time runs batches without data for ever."""
_FIELD = "triggerClock"


class _Clock:
    """A clock of Spark's that shows the time of the micro-batch after the last one that is committed.

    Args:
        checkpoint: The folder of the query's checkpoint.
        time_ms: Returns the time (milliseconds since 1970) of a micro-batch by its number.
    """

    def __init__(self, checkpoint: Path, time_ms: Callable[[int], int]) -> None:
        self.commits, self.time_ms = checkpoint / "commits", time_ms

    def getTimeMillis(self) -> int:
        names = [path.name for path in self.commits.glob("*")]  # none before the first commit
        return self.time_ms(max((int(name) for name in names if name.isdigit()), default=-1) + 1)

    def nanoTime(self) -> int:
        return time.monotonic_ns()

    def waitTillTime(self, targetTime: int) -> int:
        return targetTime

    class Java:
        implements = ("org.apache.spark.util.Clock",)


@contextlib.contextmanager
def at_times(spark: SparkSession, time_ms: Callable[[int], int]) -> Iterator[None]:
    """Within it, the queries that are started run their micro-batches at times that are given.

    Where a version of Spark keeps its own clock, its progress says so.

    Args:
        spark: The session.
        time_ms: Returns the time (milliseconds since 1970) of a micro-batch by its number.
    """
    from pyspark.sql.streaming import StreamingQueryListener

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            query = spark._jsparkSession.streams().get(str(event.id)).streamingQuery()
            _set_clock(query, _Clock(folder_of_checkpoint(query), time_ms))

        def onQueryProgress(self, event: Any) -> None:
            pass

        def onQueryIdle(self, event: Any) -> None:
            pass

        def onQueryTerminated(self, event: Any) -> None:
            pass

    listener = Listener()
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)


def _set_clock(query: Any, clock: _Clock) -> None:
    for field in private_fields(query, _FIELD):
        field.set(query, clock)
