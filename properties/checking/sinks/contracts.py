"""A sink in the table of sinks and faults: the promise in its documentation, its writing function and its readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from ....reference.core.errors import install_command
from ...generators.columns.forms.rows import Row
from ...system.installed.requirements import installed
from ...system.installed.spark_versions import arrow_table_of
from .places import AFTER, BEFORE, DyingPlace, Places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

Promise: TypeAlias = Literal["exactly once", "at least once", "nothing"]
SinkResult: TypeAlias = Literal["rows", "totals"]
WriteBatch: TypeAlias = "Callable[[DataFrame | pa.Table, int, str, Places], None]"
Own: TypeAlias = "Callable[[DataStreamWriter, str, Places], StreamingQuery]"
Writer: TypeAlias = Literal["spark", "python"]
GUIDE = "https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html"


@dataclass(frozen=True)
class SinkContract:
    """A sink.

    Attributes:
        name: The sink's name on the command line.
        says: The sink's way of writing, in one sentence.
        promises: The documented delivery guarantee for each row when the query's process dies.
        document: The document that states the guarantee.
        read: The readers; each returns the rows in a target.
        write: The function for `foreachBatch`, which can stop the query at a planned point of a write; None: Spark's
            own sink has no such function.
        own: The function that starts a query with a sink of Spark's own.
        file: The name of the target's file or folder.
        result: The content that the sink writes: the input's rows, or a total for each key.
        places: The points of a write at which a fault can stop the query.
        writer: The process that writes the rows: Spark's tasks, or this Python process.
        library: The Python package that the sink requires; empty: none.
        extra: The optional dependency group of streamproof that installs the required package.
        settings: Settings of the Spark session.
        memory: Whether the target is a table in Spark's memory.
    """

    name: str
    says: str
    promises: Promise
    document: str
    read: Callable[[str], list[Row]]
    write: WriteBatch | None = None
    own: Own | None = None
    file: str = "result"
    result: SinkResult = "rows"
    places: Sequence[DyingPlace] = (BEFORE, AFTER)
    writer: Writer = "python"
    library: str = ""
    extra: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    memory: bool = False

    @property
    def missing(self) -> str:
        """The reason why the sink can't run here; empty if the sink can run."""
        if not self.library or installed(self.library):
            return ""
        return f"{self.library} isn't installed: {install_command(self.extra)}"


def table_of(rows: Any) -> pa.Table:
    """Return the rows of a micro-batch."""
    return rows if isinstance(rows, pa.Table) else arrow_table_of(rows)


def halves(rows: Any) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Split the ordered rows of a micro-batch into halves; most histories with several rows have rows in both
    halves.
    """
    found = sorted(tuple(row.values()) for row in table_of(rows).to_pylist())
    second = [row for row in found if _parity(row)]
    return [row for row in found if not _parity(row)], second


def _parity(row: tuple[Any, ...]) -> int:
    """Return the half (0 or 1) to which a row belongs by its number, or a total by its key."""
    return (row[3] if len(row) > 3 else ord(row[1][0])) % 2
