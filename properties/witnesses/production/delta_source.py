"""The rows that a query has read from a Delta table.

Source: Delta's `DeltaSource` and `DeltaSourceOffset`. An offset contains a version of the table and the index of a file
in this version. A query first reads the table's files at a version, by time and name, and then the files that each
later version adds, in the order of the version's log.
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
"""The newest supported version of Delta's offsets."""
BASE = -1
"""The index before all files of a version."""
CHANGES, DELETES = "ignoreChanges", "ignoreDeletes"
SKIPS = "skipChangeCommits"
_FEED = ("readchangefeed", "readchangedata")


class Offset(NamedTuple):
    """A position in a table.

    Attributes:
        version: The version.
        ordinal: The index of the last file that was read from the version.
        is_initial: Whether the file belongs to all files of the table at the version, rather than only to the files
            that the version adds.
    """

    version: int
    ordinal: int
    is_initial: bool


def read_delta(place: ReadSource) -> Again:
    """Read the rows of a Delta table that each micro-batch has read.

    Raises:
        BadInput: The table's location is unknown, the table is another table, files are deleted, or the table uses
            deletion vectors or column mapping.
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
                f"{self.name} was read from a Delta table: give its location, "
                f'reads={{"{place.source.name}": {{"format": "delta", "path": "s3a://…/table"}}}}'
            )
        if any(name in self.options for name in _FEED):
            raise BadInput(f"{self.name} was read from Delta's change feed, which can't be read again: use check_job")
        starting = self.options.get("startingversion")
        if "startingtimestamp" in self.options or not (starting is None or starting.isdecimal()):
            raise BadInput(
                f"{self.name}: reads doesn't start at a version: give the number of the version at which the "
                'query began, as "startingVersion": "12"'
            )
        self.starting = None if starting is None else int(starting)
        self.ends = [end and self._offset(end) for end in place.ends]
        self.log = DeltaLog(Files(place.spark, self.options["path"]))
        if not self.log.names:
            raise BadInput(f"{self.log.files.where()} isn't a Delta table: give the folder with its _delta_log")
        self.exclude = re.compile(self.options["excluderegex"]) if "excluderegex" in self.options else None
        self.metadata = self._metadata()

    def _offset(self, end: Mapping[str, Any]) -> Offset:
        version = end.get("sourceVersion", 1)
        if version > NEWEST_OFFSET:
            raise BadInput(
                f"{self.place.checkpoint.files.where()} contains Delta's offsets of version {version}, but this "
                f"streamproof reads them up to version {NEWEST_OFFSET}: a newer Delta wrote them"
            )
        return Offset(end["reservoirVersion"], end["index"], end["isStartingVersion"])

    def _metadata(self) -> DeltaAction:
        """Return the table's metadata at the end.

        Raises:
            BadInput: The folder contains another table, or the table uses unsupported names or columns.
        """
        _, metadata = self.log.snapshot(self.log.versions[-1] if self.log.versions else 0)
        where, source = self.log.files.where(), self.place.source
        (id_read,) = {end["reservoirId"] for end in self.place.ends if end}
        if metadata.get("id") != id_read:
            raise BadInput(
                f"{where} is the Delta table {metadata.get('id')}, but the query has read the table {id_read}: give "
                "the path of the table that the query has read"
            )
        if metadata.get("configuration", {}).get("delta.columnMapping.mode", "none") != "none":
            raise BadInput(
                f"{where} maps the names of its columns (delta.columnMapping.mode), which isn't supported yet: judge "
                "the job with check_job"
            )
        columns = StructType.fromJson(json.loads(metadata["schemaString"])).names
        missing = [name for name in source.wire_schema.names if name not in columns]
        if missing:
            raise BadInput(
                f"{where} has the columns {', '.join(columns)}, but not {', '.join(missing)}: declare the table's "
                "columns in the Input"
            )
        return metadata

    def takes(self, add: DeltaAction) -> bool:
        """Return whether the query has read a file: the query's options may exclude files by their names."""
        return self.exclude is None or self.exclude.search(add["path"]) is None

    def files(self) -> Iterator[tuple[int, DeltaAction]]:
        """Yield the files that each micro-batch has read, with the batch's number."""
        start: Offset | None = None
        for batch, end in zip(self.place.checkpoint.batches, self.ends, strict=True):
            if end is None or end == start:
                continue
            yield from ((batch.number, add) for add in self._between(start or self._start(end), end))
            start = end

    def _start(self, end: Offset) -> Offset:
        """Return the position at which a query started, from the end of its first micro-batch with rows."""
        if self.starting is not None:
            return Offset(self.starting, BASE, False)
        return Offset(end.version if end.is_initial else end.version - 1, BASE, True)

    def _between(self, start: Offset, end: Offset) -> Iterator[DeltaAction]:
        """Yield the files after one position, up to another position."""
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
        """Return the files that the query reads from a version.

        Raises:
            BadInput: The version deletes rows, and the query's options don't define how the query continued.
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
            f'only reads with an option: set the query\'s option in reads, such as "{needed[-1]}": "true"'
        )

    def _is_set(self, option: str) -> bool:
        return str(self.options.get(option.lower(), "false")).lower() == "true"

    def rows(self, files: Sequence[tuple[int, DeltaAction]]) -> Iterable[tuple[int, Row]]:
        """Return the rows of files, each with its micro-batch's number.

        Raises:
            BadInput: A file is deleted, or some of its rows are marked as deleted.
        """
        source, where = self.place.source, self.log.files.where()
        marked = next((add["path"] for _, add in files if add.get("deletionVector")), None)
        if marked is not None:
            raise BadInput(
                f"{where}: rows of {marked} are marked as removed by a deletion vector, which isn't supported yet: "
                "judge the job with check_job"
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
        """Return the values of a column that isn't in the files, from their texts in the log."""
        from pyspark.sql import functions as F

        texts = sorted({text for of_file in partitions.values() if (text := of_file.get(name)) is not None})
        frame = self.place.spark.createDataFrame([(text,) for text in texts], "text string")
        rows = rows_of(arrow_table_of(frame.select("text", F.col("text").cast(schema[name].dataType).alias("value"))))
        return {None: None, **{row["text"]: row["value"] for row in rows}}
