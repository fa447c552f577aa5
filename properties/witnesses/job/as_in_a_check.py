"""Patches Spark's writers, so that a query that user code starts has the check's micro-batches and planned crashes."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from unittest import mock

from ....reference.core.errors import BadInput
from ...system.exits import without_exit
from ..spark.engine import OfBatch
from ..spark.platform import connect
from .contract import location
from .declaring import PATCHING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@contextlib.contextmanager
def as_in_a_check(
    dying: Callable[[OfBatch], OfBatch],
    of_rows: Callable[[Any], Any],
    where: str,
    triggers: list[str],
) -> Iterator[None]:
    """Within the block, wrap functions passed to `foreachBatch` and `foreach`, so that they can raise planned crashes.

    Args:
        dying: Wraps a function for `foreachBatch`.
        of_rows: Wraps a function or an object for `foreach`.
        where: The name of the function that starts the query, for messages.
        triggers: Receives the user's processing-time triggers, which the check replaces.

    Raises:
        BadInput: A query uses real-time mode.
    """
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    original, trigger = DataStreamWriter.foreachBatch, DataStreamWriter.trigger
    foreach = DataStreamWriter.foreach

    def for_each_batch(writer: DataStreamWriter, function: OfBatch) -> DataStreamWriter:
        def not_ending(rows: DataFrame, batch_id: int) -> None:
            # raise an error, because Spark waits forever for a function that exits
            with without_exit(location(function)):
                try:
                    connect.call(sent, rows, batch_id)
                # these exceptions would end py4j's thread, and Spark would get no answer
                except (KeyboardInterrupt, GeneratorExit) as error:
                    raise BadInput(f"{location(function)} raised {type(error).__name__}") from error

        def by_itself(rows: DataFrame, batch_id: int) -> None:
            with PATCHING:
                dies(rows, batch_id)

        sent, dies = connect.as_sent(function), dying(not_ending)
        return original(writer, by_itself)

    def for_each_row(writer: DataStreamWriter, f: Any) -> DataStreamWriter:
        return foreach(writer, of_rows(f))

    def of_batches(writer: DataStreamWriter, **named: Any) -> DataStreamWriter:
        if named.get("realTime") is not None:
            raise BadInput(
                f"{where} uses real-time mode, trigger(realTime=…), which a check can't run: real-time mode has no "
                "foreachBatch, and reads no files, which are the check's inputs. Give the query another trigger in "
                "its test. invariants(…) calls stateful functions once a row, as real-time mode does"
            )
        if named.get("processingTime") is not None:
            triggers.append(f"processingTime={named['processingTime']!r}")
            named["processingTime"] = "0 seconds"  # no waiting for a trigger: the check chooses each micro-batch's rows
        return trigger(writer, **named)

    patches: dict[str, Any] = {"foreachBatch": for_each_batch, "foreach": for_each_row, "trigger": of_batches}
    with mock.patch.multiple(DataStreamWriter, **patches):
        yield


@contextlib.contextmanager
def started_queries(
    spark: SparkSession, storing: Callable[[DataFrame], AbstractContextManager[None]]
) -> Iterator[list[StreamingQuery]]:
    """Record the queries started within the block, because the session forgets a query that has ended.

    A query that another thread starts in another session belongs to another check, and isn't recorded.

    Args:
        spark: The session of the check.
        storing: Takes a query's DataFrame; returns the context in which the query starts, which chooses the state
            store.
    """
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    queries: list[StreamingQuery] = []
    thread = threading.get_ident()

    def noting(start: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(start)
        def started(writer: DataStreamWriter, *given: Any, **named: Any) -> Any:
            if threading.get_ident() != thread and writer._df.sparkSession._jsparkSession != spark._jsparkSession:
                return start(writer, *given, **named)
            with storing(writer._df):
                queries.append(start(writer, *given, **named))
            return queries[-1]

        return started

    patches: dict[str, Any] = {name: noting(getattr(DataStreamWriter, name)) for name in ("start", "toTable")}
    with mock.patch.multiple(DataStreamWriter, **patches):
        yield queries
