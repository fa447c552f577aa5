"""The rows that a query has read from files."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from urllib.parse import unquote

from ...system.installed.spark_versions import struct_of_arrow
from ..job.rows import rows_of
from .reading import Again, ReadSource, format_of, in_order, reported_reading, with_time


def read_files(place: ReadSource) -> Again:
    """Read the rows of a file source, whose own log lists all files that it has ever read.

    For files read before the checkpoint's first micro-batch, each batch of the source's own log counts as a
    micro-batch.

    Raises:
        BadInput: A file or a log is unreadable, or a format is unknown.
    """
    checkpoint, first = place.checkpoint, place.first
    ends = [(end or {}).get("logOffset", -1) for end in place.ends]
    begins = ends[0]
    numbers: dict[str, int] = {}
    for own, path in checkpoint.files_read(place.folder, ends[-1]):
        if own > ends[-1]:
            continue  # an uncommitted micro-batch
        # For batches up to the first existing log, only their order is known.
        before = first > 0 and own <= begins
        numbers[path] = own - begins + first - 1 if before else checkpoint.batches[bisect_left(ends, own)].number
    return _rows(place, numbers)


def _rows(place: ReadSource, numbers: Mapping[str, int]) -> Again:
    """Return the rows of files, each with its micro-batch's number."""
    source, reading, paths = place.source, place.reading, [*numbers]
    if not paths:
        return []
    form = reading.format or format_of(place.checkpoint.files.where(), source.name, paths)
    reader = place.spark.read.format(form).options(**reading.options).schema(struct_of_arrow(source.wire_schema))
    with reported_reading(f"input {source.name}"):
        table, order = in_order(reader.load([unquote(path) for path in paths]), paths)
    return ((numbers[path], with_time(source, row)) for row, path in zip(rows_of(table), order, strict=True))
