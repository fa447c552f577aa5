"""Makes a write of a `foreachBatch` function fail after Spark has written some of its rows.

Spark writes each partition in a separate task. A database keeps the rows of finished tasks even if other tasks fail.
The simulated process therefore dies while some tasks are still running.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any
from unittest import mock

from ...spark.failures import PlannedCrash, is_users
from ...spark.platform import connect
from .steps import Death, line_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CUTS = (
    "after its first partition",
    "before its first partition, and after the others",
    "after a row of each partition",
)
"""Where a write fails, in words."""
FIRST, OTHERS, ROW = range(len(CUTS))
WAIT_MS = 1_000
"""The time that a task waits for other tasks before it fails."""
_METHODS = ("writeTo", "mergeInto", "createOrReplaceTempView", "createTempView", "foreachPartition")
"""The methods of a frame, besides `write`, that send its rows to a table, or to an SQL statement that inserts them."""
_IN_PARTITION = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that number the rows of a partition."""


class Writes(Death):
    """Counts the writes that a function requests from Spark, and makes a given write fail.

    Attributes:
        last: The index of the failure, from 1; each write can fail at each of `CUTS` (None: no failure).
        reached: The number of possible failures in the writes so far.
    """

    def __init__(self, last: int | None = None) -> None:
        self.last = last
        self._numbers = itertools.count()
        self.reached = 0

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            with self.counted():
                function(*arguments)
        except Exception as error:
            if not _is_planned(error):
                raise
            self.place = self.place or self._cut_in_words()

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count the writes within the block, and make a given write fail."""
        kind = connect.classes().frame
        original = {name: getattr(kind, name) for name in _METHODS if hasattr(kind, name)}
        write = kind.write

        def method(name: str) -> Callable[..., Any]:
            return lambda frame, *given, **named: original[name](self._failing(frame), *given, **named)

        def for_each_partition(frame: DataFrame, f: Callable[[Iterable[Any]], Any]) -> None:
            if (cut := self._next()) == ROW:
                original["foreachPartition"](frame, _after_a_row(f))
            else:
                original["foreachPartition"](failing(frame, cut), f)

        def for_each(frame: DataFrame, f: Callable[[Any], Any]) -> None:
            for_each_partition(frame, lambda rows: [f(row) for row in rows] and None)

        patches: dict[str, Any] = {name: method(name) for name in original}
        patches |= {"foreachPartition": for_each_partition, "foreach": for_each}
        with mock.patch.multiple(kind, write=property(lambda frame: write.fget(self._failing(frame))), **patches):
            yield

    def _failing(self, frame: DataFrame) -> DataFrame:
        return failing(frame, self._next())

    def _next(self) -> int | None:
        """Count a write; return the index in `CUTS` at which the write fails, or None."""
        number = next(self._numbers)
        self.reached = (number + 1) * len(CUTS)
        if self.last is None or number != (self.last - 1) // len(CUTS):
            return None
        return (self.last - 1) % len(CUTS)

    def _called(self, frame: FrameType, event: str, given: Any) -> Any:
        if not is_users(frame.f_code.co_filename):
            return None
        frame.f_trace_lines = False
        return self._raised

    def _raised(self, frame: FrameType, event: str, given: Any) -> Any:
        if event == "exception" and not self.place and _is_planned(given[1]):
            self.place = f"{self._cut_in_words()}, in {line_of(frame)}"
            self._die()
        return self._raised

    def _cut_in_words(self) -> str:
        assert self.last is not None
        return f"within a write, {CUTS[(self.last - 1) % len(CUTS)]}"


def failing(frame: DataFrame, cut: int | None) -> DataFrame:
    """Return a frame whose tasks fail at one of the `CUTS` (None: the unchanged frame)."""
    from pyspark.sql import functions as F

    if cut is None:
        return frame
    partition = F.spark_partition_id()
    row = F.monotonically_increasing_id().bitwiseAND(F.lit(_IN_PARTITION))
    first_row, fails = row == F.lit(0), F.raise_error(F.lit(PlannedCrash.__name__)).isNull()
    # The first row waits before the failure, so that tasks started at the same time can finish.
    waits = F.expr(f"reflect('java.lang.Thread', 'sleep', {WAIT_MS}L)").eqNullSafe(F.lit(""))
    late = F.when(waits, F.lit(True)).otherwise(fails)
    at, end = {
        FIRST: (first_row & (partition > F.lit(0)), late),
        OTHERS: (first_row & (partition == F.lit(0)), late),
        ROW: (row == F.lit(1), fails),
    }[cut]
    return frame.where(F.when(at, end).otherwise(F.lit(True)))


def _after_a_row(function: Callable[[Iterable[Any]], Any]) -> Callable[[Iterable[Any]], Any]:
    """Return a `foreachPartition` function that dies after a row of each partition.

    A row that fails in Spark would also lose the rows before it, because Spark sends rows to Python in groups.
    """
    message = PlannedCrash.__name__

    # a nested function, because Spark sends nested functions to the workers by value
    def until_second(rows: Iterable[Any]) -> Iterator[Any]:
        for number, row in enumerate(rows):
            if number:
                raise RuntimeError(message)
            yield row

    return lambda rows: function(until_second(rows))


def _is_planned(error: BaseException | None) -> bool:
    """Return whether an error or its cause comes from a write planned to fail."""
    return error is not None and (PlannedCrash.__name__ in str(error) or _is_planned(error.__cause__))
