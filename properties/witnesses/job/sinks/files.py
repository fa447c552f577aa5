"""Stores in folders of files; if Spark's log exists, only the files in the log count."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from .....reference.core.errors import BadInput
from ....generators.columns.forms.rows import Row
from ....system.arguments import short
from ..rows import rows_of
from .store import SinkStore

LOG = "_spark_metadata"
NULL = "__HIVE_DEFAULT_PARTITION__"
"""Spark's name of the partition folder for null."""


@dataclass(frozen=True)
class FileStore(SinkStore):
    """Files of a single format in a folder and its subfolders."""

    def rows(self, target: str) -> list[Row]:
        """Return the rows of all files; a column missing from a file is null."""
        found = [dict(row) | columns for path, columns in files_in(Path(target)) for row in self.rows_of_file(path)]
        names = dict.fromkeys(name for row in found for name in row)
        return [{name: row.get(name) for name in names} for row in found]

    @abstractmethod
    def rows_of_file(self, path: Path) -> list[Row]:
        """Return the rows of a file.

        Raises:
            BadInput: The file isn't in the store's format.
        """


@dataclass(frozen=True)
class ParquetFiles(FileStore):
    """Parquet files."""

    name = "Sink.parquet"

    def rows_of_file(self, path: Path) -> list[Row]:
        # Spark's old timestamp format counts nanoseconds, which end in 2262.
        try:
            return [*rows_of(pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read())]
        except pa.ArrowInvalid as error:
            raise BadInput(f"{self.name}: {path} isn't parquet: {error}: write nothing else below the target") from None


@dataclass(frozen=True)
class JsonFiles(FileStore):
    """JSON Lines files, compressed or not, as Spark writes them: without null members."""

    name = "Sink.json"

    @property
    def leaves_nulls_out(self) -> bool:
        return True

    def rows_of_file(self, path: Path) -> list[Row]:
        rows: list[Row] = []
        with pa.input_stream(str(path), compression="detect") as stream:
            lines = stream.read().split(b"\n")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_float=Decimal)
            except ValueError:  # not JSON, or not UTF-8
                row = None
            if not isinstance(row, dict):
                raise BadInput(
                    f"{self.name}: {path}, line {number}, has {short(line.decode(errors='replace'))}: write each row "
                    "as a JSON object in a line of its own, and nothing else below the target"
                )
            rows.append(row)
        return rows


def files_in(target: Path) -> Iterator[tuple[Path, dict[str, str | None]]]:
    """Yield the files of a folder in order, or a single file, with the columns in partition folder names."""
    if target.is_file():
        yield target, {}
        return
    logged = [log.parent for log in sorted(target.rglob(LOG))]
    of_logs = {path for folder in logged for path in _named_by_log(folder)}
    for path in sorted(target.rglob("*")):
        relative = path.relative_to(target)
        if not path.is_file() or any(part[0] in "_." and "=" not in part for part in relative.parts):
            continue
        if path in of_logs or not any(path.is_relative_to(folder) for folder in logged):
            pairs = (part.partition("=") for part in relative.parts[:-1] if "=" in part)
            yield path, {unquote(name): None if value == NULL else unquote(value) for name, _, value in pairs}


def _named_by_log(folder: Path) -> list[Path]:
    """Return the files in the log of Spark's file sink; other files belong to uncommitted batches."""
    from ...spark.session import spark_session

    named = spark_session(any_provider=True).read.text(str(folder)).inputFiles()
    return [Path(unquote(urlparse(uri).path)) for uri in named]
