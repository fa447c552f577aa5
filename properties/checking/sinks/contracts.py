"""A sink of the table: its promise and the document, its write, and its readers."""

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
        name: Its name on the command line.
        says: The way it writes, in one sentence.
        promises: The promise for each row when the query's process dies.
        document: The document of the promise.
        read: Returns the rows that a reader finds in a target.
        write: The function of `foreachBatch`, which stops at its places; None: one of Spark's own sinks.
        own: Starts one of Spark's own sinks.
        file: The name of its target.
        result: The kind of its rows: the input's rows, or a total for each key.
        places: The places at which it can stop.
        writer: The writing process: Spark's tasks, or this process.
        library: The required Python package; empty: none.
        extra: The extra of streamproof that installs the package.
        settings: Settings of the session.
        memory: Whether the target is in Spark's memory.
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
        """The reason why the sink can't run here; empty if it can."""
        if not self.library or installed(self.library):
            return ""
        return f"{self.library} isn't installed: {install_command(self.extra)}"


def table_of(rows: Any) -> pa.Table:
    """Return the rows of a micro-batch."""
    return rows if isinstance(rows, pa.Table) else arrow_table_of(rows)


def halves(rows: Any) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the ordered rows of a micro-batch in two parts, which both contain rows of most larger histories."""
    found = sorted(tuple(row.values()) for row in table_of(rows).to_pylist())
    second = [row for row in found if _parity(row)]
    return [row for row in found if not _parity(row)], second


def _parity(row: tuple[Any, ...]) -> int:
    """Return a row's half: by its number, or for a total by its key."""
    return (row[3] if len(row) > 3 else ord(row[1][0])) % 2
