"""Lets a write fail that a function for `foreachBatch` asks Spark for, with some of its rows written.

Spark writes each partition in a task of its own. A database has the rows of the tasks that have ended, whatever becomes
of the others: so it is where the process dies while they are at work.
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
"""How long a task waits for other tasks to end before it fails."""
_METHODS = ("writeTo", "mergeInto", "createOrReplaceTempView", "createTempView", "foreachPartition")
"""The methods of a frame, beside `write`, by which its rows get to a table, or to a statement of SQL that inserts."""
_IN_PARTITION = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that number the rows of a partition."""


class Writes(Death):
    """Counts the writes of frames that a function asks Spark for, and lets one fail.

    Attributes:
        last: The place at which one fails, from 1 on: each write has as many as there are `CUTS`; None: none fails.
        reached: The number of places in the writes that it has asked for so far.
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
        """Count the writes that are asked for within it, and let one fail."""
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
        """Count a write; return where it fails, None if it doesn't."""
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
    """Return a frame whose tasks fail at one of the `CUTS`; None: the frame as it is."""
    from pyspark.sql import functions as F

    if cut is None:
        return frame
    partition = F.spark_partition_id()
    row = F.monotonically_increasing_id().bitwiseAND(F.lit(_IN_PARTITION))
    first_row, fails = row == F.lit(0), F.raise_error(F.lit(PlannedCrash.__name__)).isNull()
    # The first row waits before it fails, so that tasks that were started with its own can end.
    waits = F.expr(f"reflect('java.lang.Thread', 'sleep', {WAIT_MS}L)").eqNullSafe(F.lit(""))
    late = F.when(waits, F.lit(True)).otherwise(fails)
    at, end = {
        FIRST: (first_row & (partition > F.lit(0)), late),
        OTHERS: (first_row & (partition == F.lit(0)), late),
        ROW: (row == F.lit(1), fails),
    }[cut]
    return frame.where(F.when(at, end).otherwise(F.lit(True)))


def _after_a_row(function: Callable[[Iterable[Any]], Any]) -> Callable[[Iterable[Any]], Any]:
    """Return a function for `foreachPartition` that dies after a row of each partition.

    Spark hands rows to Python by the dozen, so those before a row that fails never come there.
    """
    message = PlannedCrash.__name__

    def until_second(rows: Iterable[Any]) -> Iterator[Any]:  # within a function: it goes to the workers by value
        for number, row in enumerate(rows):
            if number:
                raise RuntimeError(message)
            yield row

    return lambda rows: function(until_second(rows))


def _is_planned(error: BaseException | None) -> bool:
    """Whether an error, or its cause, comes from a write that was to fail."""
    return error is not None and (PlannedCrash.__name__ in str(error) or _is_planned(error.__cause__))
