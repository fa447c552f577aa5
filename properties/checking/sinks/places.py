"""The points of a sink's write at which a query's process dies, or waits to be killed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...witnesses.spark.failures import PlannedCrash

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DyingPlace: TypeAlias = Literal[
    "before its write", "behind its check", "within a write", "between two writes", "after its write"
]
BEFORE: DyingPlace = "before its write"
CHECKED: DyingPlace = "behind its check"
WITHIN: DyingPlace = "within a write"
BETWEEN: DyingPlace = "between two writes"
AFTER: DyingPlace = "after its write"
PER_BATCH = 100
"""The row numbers of batch n start at n times this number."""
SETTLES_S = 1.0
"""How long (s) one partition's task waits within a write, so that the other partition's task can end."""
_LOOKS_S = 0.02


@dataclass(frozen=True)
class Places:
    """A point of a write at which a query stops, at most once.

    A file records that the query has stopped, because Spark's tasks share no memory.

    Attributes:
        place: The place; None: the query doesn't stop.
        batch: The number of the micro-batch in which the query stops.
        marker: The file that the query creates when it stops.
        waits: Whether all tasks wait until the file `{marker}.go` exists; if not, a task fails.
    """

    place: DyingPlace | None = None
    batch: int = -1
    marker: str = ""
    waits: bool = False

    def reach(self, place: DyingPlace, batch: int) -> None:
        """Stop the query if the given point of a write is the planned point.

        Raises:
            RuntimeError: The planned death of the query.
        """
        if (place, batch) == (self.place, self.batch) and (self.waits or not self.is_met):
            self.stop()

    @property
    def is_met(self) -> bool:
        """Whether the query has stopped."""
        return bool(self.marker) and Path(self.marker).exists()

    def stop(self) -> None:
        """Stop here.

        Raises:
            RuntimeError: The planned death of the query.
        """
        marker = Path(self.marker)
        marker.touch()
        if not self.waits:
            raise RuntimeError(PlannedCrash.__name__)
        while marker.exists() and not Path(f"{marker}.go").exists():
            time.sleep(_LOOKS_S)

    def frame(self, rows: DataFrame) -> DataFrame:
        """Return the rows; Return the rows with a filter that stops Spark's tasks before the first row, or within the
        write of one partition.
        """
        if self.place not in (BEFORE, WITHIN):
            return rows
        from pyspark.sql import functions as F

        def passes(number: int) -> bool:
            is_second = bool(number % 2)
            is_there = number // PER_BATCH == self.batch and (self.place == BEFORE or is_second)
            if is_there and (self.waits or not self.is_met):
                time.sleep(SETTLES_S * (is_second and not self.is_met))
                self.stop()
            return True

        return rows.where(
            F.udf(lambda number: passes(number), "boolean")("id")
        )  # a lambda, because Spark warns about type hints


NOWHERE = Places()
