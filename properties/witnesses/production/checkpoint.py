"""The checkpoint of a streaming query: its committed micro-batches, and each micro-batch's end in the sources.

Sources, of Spark 3.5 to 4.3: `OffsetSeqLog` (one file per micro-batch: a version, the watermark and settings as JSON,
then the end of each source; version 2 names the sources), `CommitLog`, `FileStreamSourceLog` (the files of each batch
of a file source; every tenth entry contains all earlier files), `KafkaSourceInitialOffsetWriter`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from ....reference.core.errors import BadInput
from .files import Files, numbered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSIONS = {"v1": False, "v2": True}
"""The supported versions of the offset log, each with whether it names the sources."""
_NAMED = re.compile(r"(\w+):(.*)", re.DOTALL)


@dataclass(frozen=True)
class CommittedBatch:
    """A micro-batch that the query has committed.

    Attributes:
        number: The micro-batch's id, which counts from 0.
        started_ms: The micro-batch's start, in milliseconds since 1970.
        watermark_ms: The micro-batch's watermark, in milliseconds since 1970; 0 before the query's first watermark.
        ends: The micro-batch's end in each source, as the source's own JSON (None: no rows of the source).
    """

    number: int
    started_ms: int
    watermark_ms: int
    ends: Mapping[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of a query.

    Attributes:
        files: Its files.
        query: The id of the query.
        batches: The committed micro-batches whose logs still exist, in order; at least one.
        sources: The names of the folders of the query's sources: numbers, or the sources' names.
        settings: The settings of the query.
        running: The id of the uncommitted micro-batch (None if there is none).
    """

    files: Files
    query: str
    batches: Sequence[CommittedBatch]
    sources: Sequence[str]
    settings: Mapping[str, str]
    running: int | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether the logs of all micro-batches exist. Spark deletes all logs except the last 100."""
        return self.batches[0].number == 0

    @property
    def has_all_rows(self) -> bool:
        """Return whether the checkpoint shows each batch's rows: all logs still exist, or the only source is a file
        source, whose own log lists all files.
        """
        end = self.batches[-1].ends.get(self.sources[0]) if len(self.sources) == 1 else None
        return self.is_whole or (isinstance(end, dict) and "logOffset" in end)

    def files_read(self, source: str, last: int) -> list[tuple[int, str]]:
        """Return the files that a file source has read, each with the number of the source's own batch, in order.

        Args:
            source: The source's folder.
            last: The source's last batch; -1 for none.

        Raises:
            BadInput: A log of the source's batches is missing or unreadable.
        """
        folder = f"sources/{source}"
        names = self.files.names(folder)
        compact = last_compact(names)
        logs = [f"{compact}.compact"] * (compact >= 0)
        kept = [number for number in numbered(names) if number > compact]
        if missing := sorted({*range(compact + 1, last + 1)}.difference(kept)):
            raise BadInput(
                f"{self.files.where(f'{folder}/{missing[0]}')} is missing, but lists files that the query has read: "
                "copy the whole checkpoint"
            )
        logs += map(str, kept)
        found: dict[tuple[int, str], None] = {}
        for log in logs:
            for entry in entries(self.files, f"{folder}/{log}", least=1):
                found[entry["batchId"], entry["path"]] = None
        return sorted(found, key=lambda each: each[0])

    def start_of(self, source: str) -> Any:
        """Return the start of a source with offsets, such as Kafka, as its own JSON (None if unknown)."""
        if "0" not in self.files.names(f"sources/{source}"):
            return None
        text = self.files.text(f"sources/{source}/0").lstrip("\0")
        return _json(self.files, f"sources/{source}/0", text.partition("\n")[2] if text.startswith("v") else text)


def read_checkpoint(spark: SparkSession, path: str) -> Checkpoint:
    """Read a query's checkpoint. The query may be running, because each log is written only once.

    Raises:
        BadInput: The folder isn't a checkpoint or is incomplete, no batch is committed, or a newer Spark wrote the
            checkpoint.
    """
    files = Files(spark, path)
    committed, offsets = (numbered(files.names(log)) for log in ("commits", "offsets"))
    if not offsets:
        raise BadInput(
            f"{files.where()} isn't a checkpoint of a streaming query: give its checkpointLocation, the folder with "
            "offsets, commits and sources"
        )
    if not committed:
        raise BadInput(f"{files.where()}: the query has committed no batch yet: run it first")
    both, last = {*committed} & {*offsets}, max(committed)
    kept = [*takewhile(both.__contains__, range(last, -1, -1))][::-1]
    if not kept:
        raise BadInput(
            f"{files.where()} is incomplete: batch {last} is committed, but offsets/{last} is missing: copy the whole "
            "folder"
        )
    batches, settings, names = [], {}, []
    for number in kept:
        version, metadata, *ends = _lines(files, f"offsets/{number}")
        if version not in VERSIONS:
            raise BadInput(
                f"{files.where(f'offsets/{number}')} has the version {version[:20]!r}, but this streamproof reads "
                f"{' and '.join(VERSIONS)}: a newer Spark wrote it"
            )
        if VERSIONS[version]:
            pairs = [match.groups() for end in ends if (match := _NAMED.fullmatch(end))]
        else:
            pairs = [(str(index), end) for index, end in enumerate(ends)]
        said = _json(files, f"offsets/{number}", metadata)
        settings, names = said.get("conf", {}), [name for name, _ in pairs]
        read = {name: None if end == "-" else _json(files, f"offsets/{number}", end) for name, end in pairs}
        batches.append(CommittedBatch(number, said["batchTimestampMs"], said["batchWatermarkMs"], read))
    query = _json(files, "metadata", files.text("metadata")).get("id", "") if "metadata" in files.names() else ""
    return Checkpoint(files, query, batches, names, settings, max(offsets) if max(offsets) > last else None)


def last_compact(names: Sequence[str]) -> int:
    """Return the number of the last compacted log entry, which contains all earlier entries; -1 if there is none."""
    return max((int(name.removesuffix(".compact")) for name in names if name.endswith(".compact")), default=-1)


def entries(files: Files, name: str, least: int = 0) -> list[Any]:
    """Return the entries of a log's file: the JSON lines after the line with the version.

    Args:
        files: The files.
        name: The name of the log's file.
        least: The smallest number of entries in the log's file.

    Raises:
        BadInput: The file is truncated, or an entry isn't JSON.
    """
    return [_json(files, name, line) for line in _lines(files, name, 1 + least)[1:]]


def _lines(files: Files, name: str, least: int = 2) -> list[str]:
    """Return the lines of a log, at least the given number.

    Raises:
        BadInput: The log contains fewer lines, because the file was copied incompletely.
    """
    lines = files.text(name).split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    if len(lines) < least:
        raise BadInput(f"{files.where(name)} is truncated: copy the whole checkpoint")
    return lines


def _json(files: Files, name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise BadInput(f"{files.where(name)} isn't a Spark log, or is truncated: {text[:40]!r}") from None
