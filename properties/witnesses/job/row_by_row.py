"""Calls a job's stateful functions once for each row of a batch, as Spark's real-time mode does.

Each call gets a row in Spark's order, the batch's watermark and processing time, and the state that the previous call
left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from unittest import mock

from ..spark.platform import connect

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor


@contextlib.contextmanager
def row_by_row() -> Iterator[None]:
    """Within the block, call the stateful functions that a job declares once for each row of a batch."""
    grouped = connect.classes().group
    methods = {name: getattr(grouped, name) for name in _TAKING if hasattr(grouped, name)}
    by_row: dict[str, Any] = {name: _by_row(name, method) for name, method in methods.items()}
    with mock.patch.multiple(grouped, **by_row):
        yield


def _by_row(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    parameter, made = _TAKING[name]

    def declare(grouped: Any, *arguments: Any, **named: Any) -> Any:
        if parameter in named:
            named[parameter] = made(named[parameter])
        elif arguments:
            arguments = (made(arguments[0]), *arguments[1:])
        return method(grouped, *arguments, **named)

    return declare


def _rows(given: Iterator[Any]) -> Iterator[Any]:
    """Yield rows one by one; a row of a pandas frame is a frame of one row."""
    for rows in given:
        if hasattr(rows, "iloc"):
            yield from (rows.iloc[at : at + 1].reset_index(drop=True) for at in range(len(rows)))
        else:
            yield rows


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for `applyInPandasWithState` that calls the given function once for each row."""

    def of_row(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        if state.hasTimedOut:
            yield from function(key, frames, state)
            return
        before = state._timeout_timestamp
        for row in _rows(frames):
            state._timeout_timestamp = before  # keep only the last call's timeout, as Spark does
            yield from function(key, iter([row]), state)

    return of_row


def _processor(processor: StatefulProcessor) -> StatefulProcessor:
    """Return a processor that passes its input rows one at a time to the given processor."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class OneAtATime(StatefulProcessor):
        def init(self, handle: Any) -> None:
            processor.init(handle)

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            for row in _rows(rows):
                yield from processor.handleInputRows(key, iter([row]), timerValues)

        def handleExpiredTimer(self, *arguments: Any, **named: Any) -> Iterator[Any]:
            return processor.handleExpiredTimer(*arguments, **named)

        def handleInitialState(self, *arguments: Any, **named: Any) -> None:
            processor.handleInitialState(*arguments, **named)

        def close(self) -> None:
            processor.close()

    return OneAtATime()


_TAKING: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "applyInPandasWithState": ("func", _function),
    "transformWithStateInPandas": ("statefulProcessor", _processor),
    "transformWithState": ("statefulProcessor", _processor),
}
"""The methods that take a stateful function, each with its parameter and the wrapper that calls the function row by
row.
"""
