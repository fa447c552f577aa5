"""Lets a user's function start its query as a check needs it: dying where that is planned, and in micro-batches."""

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
    """Let what is given to `foreachBatch` and `foreach` within it raise where a crash is planned.

    Args:
        dying: Wraps a function for `foreachBatch`.
        of_rows: Wraps a function or an object for `foreach`.
        where: What messages call the function that starts the query.
        triggers: Gets the triggers that are asked for and replaced.

    Raises:
        BadInput: A query asks for real-time mode.
    """
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    original, trigger = DataStreamWriter.foreachBatch, DataStreamWriter.trigger
    foreach = DataStreamWriter.foreach

    def for_each_batch(writer: DataStreamWriter, function: OfBatch) -> DataStreamWriter:
        def not_ending(rows: DataFrame, batch_id: int) -> None:
            with without_exit(location(function)):  # Spark would wait for it forever
                try:
                    connect.call(sent, rows, batch_id)
                except (KeyboardInterrupt, GeneratorExit) as error:  # py4j's thread would die without an answer
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
                f"{where} asks for real-time mode, trigger(realTime=…), which reads no files, as the check's inputs "
                "are, and has no foreachBatch: give the query another trigger in its test; invariants(…) calls "
                "functions with state once a row, as that mode does"
            )
        if named.get("processingTime") is not None:
            triggers.append(f"processingTime={named['processingTime']!r}")
            named["processingTime"] = "0 seconds"  # the check decides which rows are in a batch, and waits for none
        return trigger(writer, **named)

    patches: dict[str, Any] = {"foreachBatch": for_each_batch, "foreach": for_each_row, "trigger": of_batches}
    with mock.patch.multiple(DataStreamWriter, **patches):
        yield


@contextlib.contextmanager
def started_queries(
    spark: SparkSession, storing: Callable[[DataFrame], AbstractContextManager[None]]
) -> Iterator[list[StreamingQuery]]:
    """Note the queries that are started within it: one that has ended is no longer among the session's.

    Those that another thread starts in a session of its own are another check's.

    Args:
        spark: The session of the check.
        storing: Takes the result of a query; a block in which the query is started, for it says where state goes.
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
