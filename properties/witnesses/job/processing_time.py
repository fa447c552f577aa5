"""Sets the processing time of a query's micro-batches, which timeouts, timers and functions read.

Spark takes the time of a micro-batch from the clock of its query. No public method sets this clock, but Spark calls a
listener before the query first reads the clock. The listener replaces the query's clock.
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
"""With Spark's default, a query with processing-time timeouts runs batches without data forever."""
_FIELD = "triggerClock"


class _Clock:
    """A Spark clock that returns the time of the micro-batch after the last committed micro-batch.

    Args:
        checkpoint: The folder of the query's checkpoint.
        time_ms: Returns the time (milliseconds since 1970) of a micro-batch by its number.
    """

    def __init__(self, checkpoint: Path, time_ms: Callable[[int], int]) -> None:
        self.commits, self.time_ms = checkpoint / "commits", time_ms

    def getTimeMillis(self) -> int:
        names = [path.name for path in self.commits.glob("*")]  # no files before the first commit
        return self.time_ms(max((int(name) for name in names if name.isdigit()), default=-1) + 1)

    def nanoTime(self) -> int:
        return time.monotonic_ns()

    def waitTillTime(self, targetTime: int) -> int:
        return targetTime

    class Java:
        implements = ("org.apache.spark.util.Clock",)


@contextlib.contextmanager
def at_times(spark: SparkSession, time_ms: Callable[[int], int]) -> Iterator[None]:
    """Within the block, let started queries run their micro-batches at the given times.

    If a version of Spark keeps its own clock, the query's progress shows other times.

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
