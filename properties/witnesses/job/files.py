"""The files that a job's query streams from: for each micro-batch one of each input, and one of the clock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from ...generators.columns.model import Source, from_microseconds
from ..spark.query import hand_over, schema_of_file
from .clock import TIME, Watermarks, clock_behind_watermarks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Tables: TypeAlias = Mapping[str, pa.Table]
"""The rows of one batch, by the name of the input."""
_CLOCK_SCHEMA = pa.schema([(TIME, pa.timestamp("us", "UTC"))])


class InputFiles:
    """The inputs of a query, as folders of files.

    Args:
        spark: The session.
        folder: The query's folder.
        sources: The job's inputs.
        batches: The rows of each input, by batch.
        clock: The event time (microseconds since 1970) to which the watermarks move in each batch; empty: no clock.
        steps: How many micro-batches each batch takes; the rows are in the first.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        sources: Sequence[Source],
        batches: Sequence[Tables],
        clock: Sequence[int],
        steps: int,
    ) -> None:
        self.spark, self.sources, self.batches, self.clock, self.steps = spark, sources, batches, clock, steps
        self.available = 0
        self.schemas: dict[str, StructType] = {}
        self.folders: dict[str, Path] = {}
        for number, (name, schema) in enumerate(self._schemas()):
            self.folders[name] = folder / f"input {number}"  # Spark skips or splits some of the names
            self.folders[name].mkdir()
            self.schemas[name] = schema_of_file(spark, schema, folder / f"schema {number}.parquet")

    def _schemas(self) -> Iterator[tuple[str, pa.Schema]]:
        yield from ((source.name, source.schema) for source in self.sources)
        if self.clock:
            yield TIME, _CLOCK_SCHEMA

    def streams(self) -> list[DataFrame]:
        """Return the inputs as streams."""
        return [self._stream(source.name) for source in self.sources]

    def watermarks(self) -> contextlib.AbstractContextManager[Watermarks]:
        """Let watermarks that are declared within follow the clock, too."""
        return clock_behind_watermarks((lambda: self._stream(TIME)) if self.clock else None)

    def _stream(self, name: str) -> DataFrame:
        reader = self.spark.readStream.schema(self.schemas[name]).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folders[name]))

    def make_available(self, count: int) -> None:
        """Write the files of the first `count` batches, each a second younger than the one before it."""
        for number in range(self.available * self.steps, count * self.steps):
            batch, rest = divmod(number, self.steps)
            tables = dict(self.batches[batch])
            if self.clock:
                tables[TIME] = pa.table({TIME: [from_microseconds(self.clock[batch])]}, _CLOCK_SCHEMA)
            for name, table in tables.items():
                hand_over(table.schema.empty_table() if rest else table, number, self.folders[name])
        self.available = max(self.available, count)
