"""The rows that a query has read from a Delta table.

Source: Delta's `DeltaSource` and `DeltaSourceOffset`. An offset has a version of the table and the index of a file in
it. A query reads first the files that the table has at a version, by time and name; then the files that each later
version adds, in the order of its log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql.types import StructType

from ....reference.core.errors import BadInput
from ...generators.columns.forms.rows import Row
from ...system.installed.spark_versions import arrow_table_of, struct_of_arrow
from ..job.rows import rows_of
from .delta_log import DeltaAction, DeltaLog, changing
from .files import Files
from .reading import Again, ReadSource, in_order, reported_reading, with_time

NEWEST_OFFSET = 3
"""The newest version of Delta's offsets that is read."""
BASE = -1
"""The index before all files of a version."""
CHANGES, DELETES = "ignoreChanges", "ignoreDeletes"
SKIPS = "skipChangeCommits"
_FEED = ("readchangefeed", "readchangedata")


class Offset(NamedTuple):
    """A position in a table.

    Attributes:
        version: The version.
        ordinal: The index of the last file that was read of it.
        is_initial: Whether it is among the files that the table had at the version, and not among those that it adds.
    """

    version: int
    ordinal: int
    is_initial: bool


def read_delta(place: ReadSource) -> Again:
    """Read the rows of a Delta table that each micro-batch has read.

    Raises:
        BadInput: It isn't said where the table is, it is another table, or files are gone; or it has deletion vectors
            or a mapping of columns.
    """
    table = _Table(place)
    return table.rows([(number, add) for number, add in table.files() if table.takes(add)])


class _Table:
    """A table that a query has read."""

    def __init__(self, place: ReadSource) -> None:
        self.place, self.name = place, f"input {place.source.name}"
        self.options = {name.lower(): value for name, value in place.reading.options.items()}
        if "path" not in self.options:
            raise BadInput(
                f"{self.name} was read from a Delta table: say where it is, "
                f'reads={{"{place.source.name}": {{"format": "delta", "path": "s3a://…/table"}}}}'
            )
        if any(name in self.options for name in _FEED):
            raise BadInput(f"{self.name} was read from Delta's change feed, which can't be read again: use check_job")
        starting = self.options.get("startingversion")
        if "startingtimestamp" in self.options or not (starting is None or starting.isdecimal()):
            raise BadInput(
                f"{self.name}: reads has another start than a version: give the number of the version with which the "
                'query began, as "startingVersion": "12"'
            )
        self.starting = None if starting is None else int(starting)
        self.ends = [end and self._offset(end) for end in place.ends]
        self.log = DeltaLog(Files(place.spark, self.options["path"]))
        if not self.log.names:
            raise BadInput(f"{self.log.files.where()} is no Delta table: give the folder with its _delta_log")
        self.exclude = re.compile(self.options["excluderegex"]) if "excluderegex" in self.options else None
        self.metadata = self._metadata()

    def _offset(self, end: Mapping[str, Any]) -> Offset:
        version = end.get("sourceVersion", 1)
        if version > NEWEST_OFFSET:
            raise BadInput(
                f"{self.place.checkpoint.files.where()} has Delta's offsets of version {version}, and this streamproof "
                f"reads them up to version {NEWEST_OFFSET}: a newer Delta wrote them"
            )
        return Offset(end["reservoirVersion"], end["index"], end["isStartingVersion"])

    def _metadata(self) -> DeltaAction:
        """Return the table's metadata at the end.

        Raises:
            BadInput: It is another table, or has names or columns that can't be read.
        """
        _, metadata = self.log.snapshot(self.log.versions[-1] if self.log.versions else 0)
        where, source = self.log.files.where(), self.place.source
        (id_read,) = {end["reservoirId"] for end in self.place.ends if end}
        if metadata.get("id") != id_read:
            raise BadInput(
                f"{where} is the Delta table {metadata.get('id')}, and the query has read the table {id_read}: give "
                "that table's path, as it was before it was made again"
            )
        if metadata.get("configuration", {}).get("delta.columnMapping.mode", "none") != "none":
            raise BadInput(
                f"{where} maps the names of its columns (delta.columnMapping.mode), which can't be read yet: judge the "
                "job with check_job"
            )
        columns = StructType.fromJson(json.loads(metadata["schemaString"])).names
        missing = [name for name in source.wire_schema.names if name not in columns]
        if missing:
            raise BadInput(
                f"{where} has the columns {', '.join(columns)}, and not {', '.join(missing)}: give the Input the "
                "table's columns"
            )
        return metadata

    def takes(self, add: DeltaAction) -> bool:
        """Return whether the query has read a file: it may exclude files by their names."""
        return self.exclude is None or self.exclude.search(add["path"]) is None

    def files(self) -> Iterator[tuple[int, DeltaAction]]:
        """Yield the files that each micro-batch has read, with the number of the batch."""
        start: Offset | None = None
        for batch, end in zip(self.place.checkpoint.batches, self.ends, strict=True):
            if end is None or end == start:
                continue
            yield from ((batch.number, add) for add in self._between(start or self._start(end), end))
            start = end

    def _start(self, end: Offset) -> Offset:
        """Return where a query began whose first micro-batch with rows has an end."""
        if self.starting is not None:
            return Offset(self.starting, BASE, False)
        return Offset(end.version if end.is_initial else end.version - 1, BASE, True)

    def _between(self, start: Offset, end: Offset) -> Iterator[DeltaAction]:
        """Yield the files after a position up to another."""
        version = start.version
        if start.is_initial:
            files, _ = self.log.snapshot(version)
            yield from (add for index, add in enumerate(files) if index > start.ordinal and (version, index) <= end[:2])
            version += 1
        for number in range(version, end.version + 1):
            if number == end.version and end.ordinal < 0:
                return
            yield from (
                add
                for index, add in enumerate(self._added(number))
                if (number, index) > start[:2] and (number, index) <= end[:2]
            )

    def _added(self, version: int) -> list[DeltaAction]:
        """Return the files that the query takes of a version.

        Raises:
            BadInput: It removes rows, and the query's options don't say how it went on.
        """
        actions = self.log.actions(version)
        added, removed = (changing(actions, kind) for kind in ("add", "remove"))
        if not removed:
            return added
        if self._is_set(SKIPS):
            return []
        needed = [CHANGES] if added else [CHANGES, DELETES]
        if any(map(self._is_set, [*needed, "ignoreFileDeletion"])):
            return added
        raise BadInput(
            f"version {version:,} of {self.log.files.where()} {'changes' if added else 'removes'} rows, which a query "
            f'reads with an option alone: name the query\'s option in reads, such as "{needed[-1]}": "true"'
        )

    def _is_set(self, option: str) -> bool:
        return str(self.options.get(option.lower(), "false")).lower() == "true"

    def rows(self, files: Sequence[tuple[int, DeltaAction]]) -> Iterable[tuple[int, Row]]:
        """Return the rows of files, each with the number of its micro-batch.

        Raises:
            BadInput: A file is gone, or rows of it are marked as removed.
        """
        source, where = self.place.source, self.log.files.where()
        marked = next((add["path"] for _, add in files if add.get("deletionVector")), None)
        if marked is not None:
            raise BadInput(
                f"{where}: rows of {marked} are marked as removed by a deletion vector, which can't be read yet: judge "
                "the job with check_job"
            )
        numbers: dict[str, list[int]] = {}
        partitions: dict[str, Mapping[str, str | None]] = {}
        for number, add in files:
            address = add["path"] if ":" in add["path"] else f"{self.log.files.address}/{add['path']}"
            numbers.setdefault(address, []).append(number)
            partitions[address] = add.get("partitionValues") or {}
        if not numbers:
            return []
        schema = struct_of_arrow(source.wire_schema)
        outside = [*self.metadata.get("partitionColumns", [])]
        inside = StructType([field for field in schema.fields if field.name not in outside])
        values = {name: self._partition_values(name, schema, partitions) for name in schema.names if name in outside}
        paths = [*numbers]
        with reported_reading(self.name):
            frame = self.place.spark.read.schema(inside).parquet(*map(unquote, paths))
            table, order = in_order(frame, paths)
        known = {
            path: {name: of_texts[texts.get(name)] for name, of_texts in values.items()}
            for path, texts in partitions.items()
        }
        return (
            (number, with_time(source, {**row, **known[path]}))
            for row, path in zip(rows_of(table), order, strict=True)
            for number in numbers[path]
        )

    def _partition_values(
        self, name: str, schema: StructType, partitions: Mapping[str, Mapping[str, str | None]]
    ) -> dict[str | None, Any]:
        """Return the values of a column that the files don't have, by their texts in the log."""
        from pyspark.sql import functions as F

        texts = sorted({text for of_file in partitions.values() if (text := of_file.get(name)) is not None})
        frame = self.place.spark.createDataFrame([(text,) for text in texts], "text string")
        rows = rows_of(arrow_table_of(frame.select("text", F.col("text").cast(schema[name].dataType).alias("value"))))
        return {None: None, **{row["text"]: row["value"] for row in rows}}
