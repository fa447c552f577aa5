"""Reads the rows of a source again, in the order in which the query has read these rows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ....reference.core.errors import BadInput
from ...generators.columns.forms.rows import Row
from ...generators.columns.model import Source
from ...system.installed.spark_versions import arrow_table_of
from ...system.visible import first_cause, first_line, visible
from .checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = {
    "avro": "avro",
    "csv": "csv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "orc": "orc",
    "parquet": "parquet",
    "txt": "text",
}
"""Spark's formats by file extension."""
COMPRESSED = ("gz", "bz2", "zst", "snappy", "lz4", "deflate")
FILE, BLOCK, NUMBER = "__streamproof_file", "__streamproof_block", "__streamproof_number"


@dataclass(frozen=True)
class Reading:
    """The format and options of the second read of a source.

    Attributes:
        format: Spark's format (None for the format of the files' extensions).
        options: The reader's options.
    """

    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadSource:
    """A source of a query, with the source's folder in the checkpoint and the options of the second read.

    Attributes:
        spark: The session.
        checkpoint: The query's checkpoint.
        folder: The name of the source's folder in the checkpoint.
        source: The input.
        reading: The format and options of the read.
    """

    spark: SparkSession
    checkpoint: Checkpoint
    folder: str
    source: Source
    reading: Reading

    @property
    def first(self) -> int:
        """Return the id of the first micro-batch whose logs exist; the logs contain the batch's end, but not its
        start.
        """
        return self.checkpoint.batches[0].number

    @property
    def ends(self) -> list[Any]:
        """Return each micro-batch's end in the source, as the source's own JSON (None: no rows of the source)."""
        return [batch.ends.get(self.folder) for batch in self.checkpoint.batches]


Again: TypeAlias = "Iterable[tuple[int, Row | None]]"
"""The rows of a source, read again, each with the number of its micro-batch (None: the record's payload isn't a row).

Rows before the first micro-batch with a log have lower numbers, which show only their order.
"""


def in_order(frame: DataFrame, paths: Sequence[str]) -> tuple[pa.Table, list[str]]:
    """Return the rows of files in the order of the files and of their rows, and the path of each row's file.

    Args:
        frame: The frame that reads the files.
        paths: The paths of the files, as in Spark's logs.
    """
    from pyspark.sql import functions as F

    names = frame.columns
    numbers = {_plain(path): number for number, path in enumerate(paths)}
    more = [F.col("_metadata.file_path").alias(FILE), F.col("_metadata.file_block_start").alias(BLOCK)]
    table = arrow_table_of(frame.select(*(F.col(f"`{name}`") for name in names), *more))
    files = table.column(FILE).combine_chunks().dictionary_encode()
    of_files = pa.array([numbers[_plain(path)] for path in files.dictionary.to_pylist()], pa.int64())
    table = table.append_column(NUMBER, of_files.take(files.indices))
    table = table.take(pc.sort_indices(table, [(NUMBER, "ascending"), (BLOCK, "ascending")]))
    return table.select(names), [paths[number] for number in table.column(NUMBER).to_pylist()]


def _plain(path: str) -> str:
    """Return a file's address in a normal form, because Spark writes both `file:///tmp/a%20b` and `file:/tmp/a%20b`."""
    return re.sub("^([A-Za-z][A-Za-z0-9+.-]*):/+", r"\1:/", unquote(path))


def format_of(where: str, name: str, paths: Sequence[str]) -> str:
    """Return Spark's format of files from their extensions.

    Raises:
        BadInput: The files have several formats, or an unknown format.
    """
    found = set()
    for path in paths:
        ends = [end for end in PurePosixPath(path).name.lower().split(".")[1:] if end not in COMPRESSED]
        found.add(FORMATS.get(ends[-1], "") if ends else "")
    if len(found) == 1 and "" not in found:
        return found.pop()
    raise BadInput(
        f"{where}: the file names of {visible(name)} don't show the format, such as "
        f'{visible(PurePosixPath(paths[0]).name)}: give it, reads={{"{name}": "json"}}'
    )


@contextlib.contextmanager
def reported_reading(what: str) -> Iterator[None]:
    """Raise `BadInput` if Spark can't read the rows in the block.

    Args:
        what: The name of the rows in messages.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        said = first_line(_root(error)).rstrip(".")
        if "PATH_NOT_FOUND" in said or "FileNotFoundException" in str(error):
            raise BadInput(
                f"{what} can't be read again: {said}; restore the file: the run can't be judged without the rows that "
                "it read"
            ) from None
        raise BadInput(f"{what} can't be read again: {said}; correct reads=") from None


def _root(error: Any) -> str:
    """Return the text of an error; for a Java error, the text of its root cause."""
    java = getattr(error, "java_exception", None)
    return str(error) if java is None else str(first_cause(java).toString())


def with_time(source: Source, row: dict[str, Any]) -> Row:
    """Return a row with its event time as a column of timestamps."""
    if source.encoding is not None and source.encoding.place is not None:
        row = {**source.encoding.place.flat(row)}
    form = source.encoding and source.encoding.form
    return {**row, source.time: form.time(row[source.time])} if form else row
